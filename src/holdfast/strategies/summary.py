"""Summaries by a model: the base strategy.

`keep` plans what to archive, a writer asks the model, the answer is verified against the log, and a renderer turns it
into messages. If the model fails, the fallback policy applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from ..context import Plan, Request, Skip
from ..errors import InvalidInput, Outcome
from ..ledger import (
    HistoryExtractor,
    PageRenderer,
    SectionRenderer,
    find_task,
    list_by_folder,
    steps_since,
    take_fitting,
    trim_ledger,
)
from ..ledger.facts import EARLIER_SUMMARY
from ..messages import (
    Json,
    Message,
    Opaque,
    bound_parts,
    foreign_summary_text,
    is_aside,
    is_foreign_summary,
    is_framed,
    starts_turn,
    strip_frame,
)
from ..models.calls import Failure, Steps
from ..summaries import (
    LOG_HEADING,
    SUMMARY_PREFIX,
    Archived,
    AsAssistant,
    AsSystem,
    RejectedSummary,
    Style,
    SummaryDraft,
    SummaryInput,
    SummaryRenderer,
    SummaryTranscript,
    build_transcript,
    log_section,
    remove_hallucinated_names,
    replace_surrogates,
    write_to_fit,
)
from ..summaries.log_section import LastRequest, earlier_items, split_log_section
from ..summaries.state_writer import split_state, verified_state
from ..summaries.structured import original_task
from ..summaries.structured_parse import read_items
from ..tokens import count_tokens
from ..tokens.budget import require_not_negative, require_positive
from .base import BaseStrategy, run_strategy
from .fallback import LAST_RESORTS, LastResort, as_fallback, with_fallback
from .history import (
    count_newly_archived,
    full_history_text,
    message_numbers,
    message_text,
    previous_ledger,
    read_history,
    user_message_numbers,
)
from .ledger import KeepLedger
from .trail import CUT_NOTE, add_hidden_lines
from .truncation import TruncateAsSummary

if TYPE_CHECKING:
    from ..types import Strategy


def previous_summary(request: Request, notes: Sequence[Message]) -> str:
    """Returns the summary of the last round from the checkpoint, else as read back from the notes."""
    if (written := request.view.checkpoint.summary) is not None:
        added = [request.view.messages[index] for index in request.view.synthetic]
        return "\n\n".join(filter(None, [written, *map(_note_text, _summary_notes(added))]))
    return "\n\n".join(filter(None, map(_note_text, _summary_notes(notes))))


def _summary_notes(notes: Sequence[Message]) -> Iterator[Message]:
    """Yields the notes that hold summary text, without the user's half of a question-and-answer pair."""
    for place, note in enumerate(notes):
        answered = any(after.role == "assistant" for after in notes[place + 1 : place + 2])
        asks = answered and starts_turn(note)
        acknowledges = note.role == "assistant" and any(map(_is_user_summary, notes[max(0, place - 1) : place]))
        if not asks and not acknowledges and not is_aside(note):
            yield note


def foreign_items(notes: Sequence[Message]) -> list[str]:
    """Returns the items of other tools' summaries, each on one line: first the state of the work."""
    foreign = [note for note in _summary_notes(notes) if not is_framed(note)]
    items = (item for note in foreign for item in read_items(foreign_summary_text(note) or _note_text(note)))
    return [item[:_MAX_EARLIER_ITEM] for item in take_fitting(dict.fromkeys(items), _MAX_EARLIER_CHARS)]


def _is_user_summary(note: Message) -> bool:
    return note.role == "user" and is_foreign_summary(note)


def _note_text(note: Message) -> str:
    """Returns the summary in a note, without frame, prefix, state and section from the log."""
    if not is_framed(note):
        vendor = (part.data.get("content") for part in note.parts if isinstance(part, Opaque))
        return "\n".join(text for text in vendor if isinstance(text, str)) or note.text
    text = split_state(split_log_section(strip_frame(note))[0])[0]
    text = text.removesuffix(CUT_NOTE)
    for opening in (SUMMARY_PREFIX, AsSystem().heading, AsAssistant().heading):
        text = text.removeprefix(opening)
    return text.strip()


MAX_SUMMARY_TOKENS = 16_000
"""Size limit of a summary with its restored facts and excerpts."""
_MIN_SUMMARY_TOKENS = 1_000
_SUMMARY_SHARE = 0.6
"""Share of the room for the summary itself; of the rest, up to 16,000 tokens are for facts and excerpts."""
_CARRIED_CHARS = 60_000
"""Characters of lines that are carried to the next round."""
_MIN_EXCERPT_TOKENS = 200
"""Smaller excerpts are left out."""
_EXCERPT_SHARE = 0.2
"""Size limit of the excerpts, as a share of the archived tokens."""
_MAX_EARLIER_CHARS, _MAX_EARLIER_ITEM = 24_000, 2_000
"""Characters of another tool's summary that are carried on item by item, and of one item."""
_FILE_LIST_CHARS = 4_000
"""Characters of the file list in the prompt."""


class SummaryRun:
    """One run of a summary strategy: prepares the summarizer's input and turns its answer into a plan."""

    def __init__(self, summary: Summary, request: Request, chosen: Plan) -> None:
        self.summary, self.request, self.chosen = summary, request, chosen
        self.cut = cut = chosen.cut - request.plan.cut
        view = request.view
        self.notes = request.notes
        earlier = previous_ledger(request)
        self.numbers = message_numbers(request, earlier.archived)
        self.history = HistoryExtractor(earlier)
        read_history(self.history, request, self.numbers, 0, cut)
        self.ledger = self.history.ledger()
        shortened = list(self._shortened_parts())
        self.shortened = {(self.numbers[index], part) for index, part in shortened}
        self.partly_shown = {index for index, _ in shortened}
        self.end = max(self.partly_shown, default=cut - 1) + 1
        """Messages before this index are not shown in full; the summary covers them."""
        read_history(self.history, request, self.numbers, cut, self.end)
        shown = {line for message in chosen.view.messages for line in message_text(message).splitlines()}
        add_hidden_lines(self.ledger, self.history, self.shortened, shown)
        self.previous = previous_summary(request, self.notes)
        self.earlier = [line for line in self.ledger.closings if line.source == EARLIER_SUMMARY]
        self.earlier += earlier_items(foreign_items(self.notes))
        self.ledger.closings += [line for line in self.earlier if line not in self.ledger.closings]
        self.room = self._room()
        task = find_task(self.ledger.users)
        self.input = SummaryInput(
            conversation=self._transcript(range(view.leading_system_count, self.end)),
            upcoming=self._transcript(range(self.end, min(len(view.messages), self.end + summary.overlap))),
            previous=self.previous,
            state=view.checkpoint.carry.state,
            task=replace_surrogates(task.text) if task else "",
            task_number=task.place if task else 0,
            files=replace_surrogates("\n".join(take_fitting(list_by_folder(self.ledger.files), _FILE_LIST_CHARS))),
            round=view.checkpoint.carry.round + 1,
            instructions=replace_surrogates(request.instructions or ""),
            token_budget=max(1, int(self.room * _SUMMARY_SHARE), self.room - MAX_SUMMARY_TOKENS),
            summarizer_window=request.summarizer_window,
            count_tokens=self._tokens,
            make_notes=self._render_notes,
        )

    def _transcript(self, indexes: range) -> SummaryTranscript:
        """Returns the transcript of these messages without earlier notes: the previous summary is passed separately."""
        view = self.request.view
        ours = {index for index in (*view.synthetic, *view.fillers) if "source" not in self._body(index)}
        included = [index for index in indexes if index not in ours]
        return build_transcript(
            [view.messages[index] for index in included],
            [self.numbers[index] for index in included],
            self.summary.writer.style,
        )

    def _body(self, index: int) -> Json:
        event = self.request.view.events.get(self.request.view.ids[index]) if self.request.view.events else None
        return event.body if event is not None else {}

    def _room(self) -> int:
        """Returns the tokens available for the summary, restored facts and excerpts."""
        chosen, limit = self.chosen, self.request.target
        if limit is None:
            return self.summary.max_room
        room = limit - chosen.show(self.summary.shown_as("")).tokens
        return max(_MIN_SUMMARY_TOKENS, min(self.summary.max_room, room))

    def _shortened_parts(self) -> Iterator[tuple[int, int]]:
        """Yields the parts that are shortened or dropped of messages after the cut that are still shown there."""
        for index, message in enumerate(self.chosen.view.messages, self.cut):
            whole = self.request.messages[index]
            if message.parts and message is not whole:
                shown, bound = set(map(id, message.parts)), bound_parts(whole, self.request.rules)
                for place, part in enumerate(whole.parts):
                    if id(part) not in shown and place not in bound:
                        yield index, place

    def _tokens(self, text: str) -> int:
        return count_tokens(self.request.view.token_sums.estimator, text)

    @cached_property
    def _sections(self) -> SectionRenderer:
        return SectionRenderer(self.history, min(self.room, MAX_SUMMARY_TOKENS))

    @cached_property
    def _page_renderer(self) -> PageRenderer:
        return PageRenderer(self._sections)

    def _render_notes(self, characters: int) -> str:
        return replace_surrogates(self._page_renderer.render(characters).text)

    def plan(self, draft: SummaryDraft) -> Plan:
        checked = remove_hallucinated_names(draft.rendered or draft.text, self._known_text)
        remarks, shown, text, state = (*draft.remarks, *checked.remarks), checked.text, checked.text, draft.state
        if state is not None:
            text, lists = split_state(checked.text)
            state, shown = verified_state(state, lists, text)
        if self.summary.verify:
            left = min(MAX_SUMMARY_TOKENS, self.room - self._tokens(shown))
            found = log_section(shown, self._visible(), self.ledger, left, self._tokens, self._archived(shown))
            shown = f"{shown}\n\n{found.section}"
            remarks = (*remarks, *found.remarks)
        else:  # no section follows, so a heading that the model wrote would be read as ours
            shown = shown.replace(LOG_HEADING, LOG_HEADING.lstrip("# "))
        shown = self._with_excerpts(shown)
        if self.shortened:
            shown = f"{shown}\n\n{CUT_NOTE}"
        plan = self.chosen.show(self.summary.shown_as(shown), text)
        return msgspec.structs.replace(
            plan.made_by(self.summary.name, remarks, after=self.request.plan),
            ledger=partial(self._carried, _CARRIED_CHARS),
            state=plan.state if state is None else state,
        )

    def _archived(self, shown: str) -> Archived:
        request, carry = self.request, self.request.view.checkpoint.carry
        earlier = {one.source for one in request.view.head}
        head = [one.message for one in self.chosen.head if one.kind != "note" and one.source in earlier]
        staying = {self.numbers[index] for index in self._staying()} | user_message_numbers(head, self.history)
        last = self._last_request(staying)
        count = carry.archived + count_newly_archived(request, self.cut) + bool(self.chosen.answered)
        if last is not None:
            staying.add(last.place)
        return Archived(self.input.round, count, staying, bool(self.input.task and original_task(shown)), last)

    def _last_request(self, staying: set[int]) -> LastRequest | None:
        """Returns the newest user message with what is archived of its turn; None if the turn is whole."""
        turn, messages = self.request.plan.newest_turn(self.cut), self.request.messages
        if turn is None:
            return None
        place = self.numbers[turn] if isinstance(turn, int) else self.ledger.users[-1].place if self.ledger.users else 0
        text = (messages[turn] if isinstance(turn, int) else turn.message).text
        if self.chosen.answered:
            at = max(index for index, message in enumerate(messages) if message.role == "assistant")
            return LastRequest(place, text, messages[at].text, self.numbers[at])
        steps = (step for step in steps_since(self.ledger, place) if step[0] not in staying)
        return LastRequest(place, text, steps=tuple(steps))

    def _with_excerpts(self, shown: str) -> str:
        """Appends excerpts that a later step would otherwise have to look up, in the remaining room."""
        sums = self.request.view.token_sums
        archived = sums.estimator.tokens(sums.cumulative[self.cut])
        left = min(self.summary.excerpt_tokens, self.room - self._tokens(shown), int(archived * _EXCERPT_SHARE))
        if left < _MIN_EXCERPT_TOKENS:
            return shown
        visible = "\n".join([shown, self._visible(), *map(message_text, self.chosen.view.messages)])
        kept = set(range(self.cut, len(self.request.messages))) - self.partly_shown
        staying = {self.numbers[index] for index in self._staying() | kept}
        sample = self._sections.sample(left)
        characters = int(left * len(sample) / max(1, self._tokens(sample)))

        def excerpts(room: int) -> str:
            return replace_surrogates(self._sections.render_excerpts(room, visible, staying))

        return "\n\n".join(filter(None, (shown, write_to_fit(excerpts, characters, left, self._tokens))))

    def _staying(self) -> set[int]:
        """Returns the messages before the cut that stay visible."""
        offset = self.request.plan.cut
        return {index - offset for index in self.chosen.kept if index >= offset} - set(self.request.view.synthetic)

    def _visible(self) -> str:
        return "\n".join(message_text(self.request.messages[index]) for index in sorted(self._staying()))

    def _known_text(self) -> str:
        """Returns all text whose names a summary may use."""
        history = full_history_text(self.request, self.ledger)
        return "\n".join([self.previous, self.request.instructions or "", history])

    def _carried(self, characters: int) -> Json:
        ledger = trim_ledger(self.ledger, self.history.name_cache.__getitem__, self._sections.name_scores, characters)
        ledger.closings = [*self.earlier, *(line for line in ledger.closings if line.source != EARLIER_SUMMARY)]
        return cast(Json, msgspec.to_builtins(ledger))


class SummaryWriter(Protocol):
    """Asks a model for a summary of a `SummaryInput`."""

    @property
    def style(self) -> Style:
        """Format of the transcript in its prompt."""
        ...

    def write(self, source: SummaryInput) -> Steps[SummaryDraft | Failure]:
        """Yields model calls and returns a summary, or the failure of the last call."""
        ...


class Summary(BaseStrategy):
    """Replaces the messages that `keep` archives with a summary written by a model."""

    writes_notes = True

    min_saving = 0.10
    max_room = MAX_SUMMARY_TOKENS
    """Size limit of the summary with what follows it."""

    def __init__(
        self,
        keep: Strategy,
        writer: SummaryWriter,
        shown_as: SummaryRenderer,
        *,
        name: str = "summary",
        max_tokens: int | None = None,
        overlap: int = 0,
        verify: bool = True,
        excerpt_tokens: int = 0,
        last_resort: LastResort = "ledger",
        on_failure: Callable[[Request], object] | None = None,
    ) -> None:
        """`excerpt_tokens` limits the errors, files, commands and lines that follow the summary if there is room."""
        if max_tokens is not None:
            require_positive("max_tokens", max_tokens)
        require_not_negative("overlap", overlap)
        require_not_negative("excerpt_tokens", excerpt_tokens)
        if last_resort not in LAST_RESORTS:
            raise InvalidInput(f"last_resort must be one of {', '.join(LAST_RESORTS)}, not {last_resort!r}.")
        self.keep = keep
        self.writer = writer
        self.shown_as = shown_as
        self.name = name
        self.max_tokens = max_tokens
        self.overlap = overlap
        self.verify = verify
        self.excerpt_tokens = excerpt_tokens
        self.last_resort = last_resort
        self.on_failure = on_failure

    @property
    def target(self) -> int | None:
        return self.max_tokens

    def __call__(self, request: Request) -> Steps[Plan | Skip]:
        truncate = TruncateAsSummary(self.keep, self.shown_as, self.max_tokens)
        work = self._summarize(request)
        return with_fallback(work, request, self.last_resort, self.max_tokens, self.on_failure, truncate)

    def _summarize(self, request: Request) -> Steps[Plan | Skip]:
        if self.max_tokens is not None:
            request = _with_target(request, self.max_tokens)
        if _is_unchanged(request):
            return Skip(Outcome.NOTHING_TO_COMPACT, "no messages since the last compaction")
        chosen = yield from run_strategy(self.keep, request)
        if isinstance(chosen, Skip):
            return chosen
        if self.verify and not chosen.notes_last and request.plan.is_answered(chosen.cut - request.plan.cut):
            chosen = chosen.archive_answered()
        run = SummaryRun(self, request, chosen)
        if not run.input.conversation.entries:
            return as_fallback(KeepLedger(self.max_tokens)(request), "the messages to archive have no text")
        draft = yield from self.writer.write(run.input)
        if isinstance(draft, Failure):
            remarks = draft.remarks if isinstance(draft, RejectedSummary) else ()
            return Skip(Outcome.SUMMARY_FAILED, draft.reason, remarks)
        return run.plan(draft)


def _with_target(request: Request, target: int) -> Request:
    """Returns the request with its own target, so that `keep` leaves room for a summary within it."""
    changed = request.at(request.plan)
    changed.target = request.reachable(target if request.budget is None else min(target, request.budget))
    return changed


def _is_unchanged(request: Request) -> bool:
    """Whether nothing was added since the last compaction and the context is within its limit."""
    view, limit = request.view, request.target
    unchanged = view.checkpoint_id is not None and view.previously_kept >= len(view.messages)
    return unchanged and (limit is None or request.tokens <= limit)
