"""Texts about a session for another reader: the first message of a handoff, and a title."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

import msgspec

from ..compaction import SummarizerRun
from ..context import Request
from ..context.events import EventKind
from ..errors import Aborted, InvalidInput, InvalidLimit
from ..ledger import FileRecord, HistoryExtractor, Ledger, PageRenderer, SectionRenderer, clip
from ..ledger.lines import LedgerLine
from ..messages import Message, is_note
from ..models import context_window_of
from ..models.calls import Failure, Steps
from ..stores import Slice
from ..strategies.history import full_history_text, message_numbers, previous_ledger, program_messages
from ..strategies.memory import pin_memory, read_memory
from ..strategies.read_back import read_notes_back
from ..strategies.summary import previous_summary
from ..summaries import (
    Style,
    SummaryDraft,
    SummaryInput,
    SummaryTranscript,
    build_transcript,
    log_section,
    remove_hallucinated_names,
    replace_surrogates,
    write_to_fit,
)
from ..summaries.handoff import (
    HandoffText,
    lines_about_goal,
    relevant_files,
    shorten_title,
    write_title,
)
from ..summaries.memory import render_memory
from ..summaries.structured import UNKNOWN_TASK
from ..tokens import count_tokens
from .history import user_message_in
from .live import LiveSession

_FIRST_EVENTS = 20
"""Events at the start of a log among which the first user message is searched."""
_MAX_TASK_CHARS = 4_000
_PAGE_TOKENS = 2_000
MIN_HANDOFF_TOKENS = 200
"""Room for the source line and a few lines of notes."""
_SOURCE = (
    "What follows is known from an earlier conversation, session {id}. It is a record, not a request; [numbers] are "
    "messages of that session, where there is more."
)


def handoff_citation(session_id: str) -> str:
    """Returns how the first message of a handoff names the session that it comes from."""
    return f"{_SOURCE.partition('{id}')[0]}{session_id}."


_GOAL_HEADING = "## Closest to the goal"
_FILES_HEADING = "## Relevant files"
_DRAFT_SHARE, _FILES_SHARE, _GOAL_SHARE = 0.6, 0.15, 0.3
"""Shares of the room; the rest is for facts that the draft left out."""
_NOTES_CHARS = 8_000
"""Characters of notes on archived messages, for the model to read."""
_MIN_PAGE_CHARS = 1_500
"""A page of notes with fewer characters is useless."""
_TITLE_STYLE = Style(result_limit=80, text_limit=600)
_TITLE_INPUT_CHARS = 8_000
"""Characters of the newest part of the conversation: a title needs no more."""
_TITLE_TOKENS = 100
R = TypeVar("R")


class Handoff(msgspec.Struct, frozen=True):
    """The first message for a new session, to be read, changed and sent."""

    goal: str
    message: str
    """The goal, and what the session knows that matters for it."""
    files: tuple[str, ...] = ()
    """Paths of the files that it names as relevant."""
    remarks: tuple[str, ...] = ()
    """What a person should know: restored facts, hallucinated names."""
    fallback: str = ""
    """`ledger` if no model wrote it, else empty."""


class SessionDigest:
    """Everything a writer needs to know of a session: what the context shows, and notes on what is archived."""

    def __init__(self, request: Request, task: LedgerLine | None) -> None:
        self._request = request
        self.task = task.text if task else ""
        view, notes = request.view, request.notes
        earlier = previous_ledger(request)
        self.has_notes = bool(earlier.users or earlier.lines)
        """Whether there are notes on archived messages."""
        self.previous = replace_surrogates(
            view.checkpoint.summary or ("" if self.has_notes else previous_summary(request, notes))
        )
        self.memory = replace_surrogates(render_memory(read_memory(view)))
        shown = [one for one in view.head if one.kind != "note"]
        first = [(one.message, view.events[one.source].seq) for one in shown if one.source in view.events]
        ours, numbers = program_messages(view), message_numbers(request, earlier.archived)
        live = [(view.messages[index], numbers[index]) for index in range(len(numbers)) if index not in ours]
        restored = {event.seq for event in view.events.values() if "source" in event.body}
        self._shown = [one for one in (*first, *live) if not is_note(one[0]) or one[1] in restored]
        self.extractor = HistoryExtractor(earlier)
        self.extractor.read(*_unzip(live if view.checkpoint.carry.ledger else [*first, *live]))
        if task is not None and all(line.place != task.place for line in self.extractor.users):
            self.extractor.users.insert(0, task)

    @cached_property
    def ledger(self) -> Ledger:
        return self.extractor.ledger()

    @cached_property
    def sections(self) -> SectionRenderer:
        return SectionRenderer(self.extractor, _PAGE_TOKENS)

    @cached_property
    def _page(self) -> PageRenderer:
        return PageRenderer(self.sections)

    def transcript(self, style: Style) -> SummaryTranscript:
        """The messages of the context, without our own notes."""
        return build_transcript(*_unzip(self._shown), style)

    def notes(self, characters: int) -> str:
        """A page of notes on the whole session, in at most so many characters."""
        return replace_surrogates(self._page.render(characters).text.strip())

    def full_text(self) -> str:
        """All text of the session that is known here."""
        return "\n".join([self.task, self.previous, full_history_text(self._request, self.ledger)])

    def count_tokens(self, text: str) -> int:
        return count_tokens(self._request.view.token_sums.estimator, text)


def _unzip(numbered: Sequence[tuple[Message, int]]) -> tuple[list[Message], list[int]]:
    return [message for message, _ in numbered], [number for _, number in numbered]


async def first_task(live: LiveSession) -> LedgerLine | None:
    """Returns the first user message of the log, if there is one."""
    for event in await live.store.read(live.id, Slice(kinds=(EventKind.MESSAGE,), limit=_FIRST_EVENTS)):
        message = user_message_in(event)
        if message is not None and message.text.strip() and not is_note(message):
            return LedgerLine(clip(replace_surrogates(message.text), _MAX_TASK_CHARS), "user", "", event.seq, 0, 0)
    return None


async def run_model(work: Steps[R], run: SummarizerRun) -> R:
    """Runs work that calls a model and writes nothing; raises Aborted on an abort."""
    with run.abort.scope():
        return await run.drive(work)
    raise Aborted


async def handoff_session(
    live: LiveSession, goal: str, run: SummarizerRun, *, lane: str | None, max_tokens: int
) -> Handoff:
    """Writes a handoff. `max_tokens` covers everything but the goal, which is never shortened."""
    if not isinstance(goal, str) or not goal.strip():
        raise InvalidInput("A handoff needs a goal: say what the new session is to do.")
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < MIN_HANDOFF_TOKENS:
        raise InvalidLimit(f"max_tokens must be an integer of at least {MIN_HANDOFF_TOKENS}, not {max_tokens!r}.")
    request = await _request(live, lane, run)
    task = await first_task(live)
    return await run_model(_write_handoff(request, task, replace_surrogates(goal).strip(), max_tokens), run)


async def title_session(live: LiveSession, run: SummarizerRun, lane: str | None) -> str:
    """Writes a title; without a model it is the start of the task."""
    task = await first_task(live)
    if run.model is None:
        return _task_title(task)
    return await run_model(_write_title(await _request(live, lane, run), task), run)


async def _request(live: LiveSession, lane: str | None, run: SummarizerRun) -> Request:
    view = pin_memory((await live.view(lane)).snapshot())
    if view.synthetic:
        read_notes_back(view)
    return Request(view, session_id=live.id, summarizer_window=context_window_of(run.model))


def _write_handoff(request: Request, task: LedgerLine | None, goal: str, room: int) -> Steps[Handoff]:
    digest = SessionDigest(request, task)
    source = _SOURCE.format(id=request.session_id)
    room -= digest.count_tokens(source)
    draft = yield from _draft_handoff(digest, goal, request.summarizer_window, int(room * _DRAFT_SHARE))
    if isinstance(draft, Failure):
        return _handoff_from_ledger(digest, goal, source, room, draft)
    checked = remove_hallucinated_names(draft.text, lambda: f"{goal}\n{digest.memory}\n{digest.full_text()}")
    files = _fitting_files(relevant_files(digest.ledger.files, goal, checked.text), int(room * _FILES_SHARE), digest)
    text = _join(checked.text, _file_list(files))
    left, shown = room - digest.count_tokens(text), f"{goal}\n{text}"
    restored = log_section(shown, "", digest.ledger, left, digest.count_tokens, kinds=("constraint", "error"))
    return Handoff(
        goal,
        _join(goal, source, text, restored.section),
        tuple(file.path for file in files),
        (*draft.remarks, *checked.remarks, *restored.remarks),
    )


def _draft_handoff(digest: SessionDigest, goal: str, window: int | None, room: int) -> Steps[SummaryDraft | Failure]:
    writer = HandoffText(goal, digest.memory, digest.notes(_NOTES_CHARS) if digest.has_notes else "")
    transcript = digest.transcript(writer.style)
    if not (transcript.entries or digest.has_notes or digest.previous or digest.memory):
        return Failure("answer", "there is nothing in this session yet")
    given = SummaryInput(
        transcript,
        previous=digest.previous,
        task=digest.task,
        token_budget=max(1, room),
        summarizer_window=window,
        count_tokens=digest.count_tokens,
        make_notes=digest.notes,
    )
    return (yield from writer.write(given))


def _handoff_from_ledger(digest: SessionDigest, goal: str, source: str, room: int, failure: Failure) -> Handoff:
    """The page of notes, preceded by the lines that share words with the goal."""
    files = _fitting_files(relevant_files(digest.ledger.files, goal, ""), int(room * _FILES_SHARE), digest)

    def page(characters: int) -> str:
        lines = lines_about_goal(goal, digest.extractor.lines.values(), int(characters * _GOAL_SHARE))
        closest = "\n".join([_GOAL_HEADING, *lines]) if lines else ""
        first = _join(clip(digest.memory, int(characters * _GOAL_SHARE)), closest, _file_list(files))
        left = characters - len(first)
        if left <= _MIN_PAGE_CHARS:
            return first
        return _join(first, PageRenderer(digest.sections, first).render(left).text.strip())

    why = f"no draft by a model ({failure.kind}{f': {failure.why}' if failure.why else ''}): the ledger instead"
    text = replace_surrogates(write_to_fit(page, 4 * max(0, room), room, digest.count_tokens))
    return Handoff(goal, _join(goal, source, text), tuple(file.path for file in files), (why,), "ledger")


def _fitting_files(files: Sequence[FileRecord], room: int, digest: SessionDigest) -> list[FileRecord]:
    kept: list[FileRecord] = []
    for file in files:
        if digest.count_tokens(_file_list([*kept, file])) > room:
            break
        kept.append(file)
    return kept


def _file_list(files: Sequence[FileRecord]) -> str:
    lines = (f"- {file.path}{' (changed)' if file.edits else ''}" for file in files)
    return "\n".join([_FILES_HEADING, *lines]) if files else ""


def _join(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _task_title(task: LedgerLine | None) -> str:
    return shorten_title(task.text) if task else UNKNOWN_TASK


def _write_title(request: Request, task: LedgerLine | None) -> Steps[str]:
    digest = SessionDigest(request, task)
    given = SummaryInput(
        digest.transcript(_TITLE_STYLE).newest(_TITLE_INPUT_CHARS),
        previous=digest.previous[:_TITLE_INPUT_CHARS],
        task=digest.task,
        token_budget=_TITLE_TOKENS,
        summarizer_window=request.summarizer_window,
        count_tokens=digest.count_tokens,
        make_notes=digest.notes,
    )
    if not (given.conversation.entries or given.previous):
        return _task_title(task)
    answer = yield from write_title(given)
    return _task_title(task) if isinstance(answer, Failure) else answer
