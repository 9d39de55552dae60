"""Handing work on to a new session: a goal goes in, the first message for it comes out (P23).

Nothing is written. What a model drafts is held against the log, and code adds what no draft may lose.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..calls import Failure, Steps
from ..compaction import Asking
from ..errors import InvalidInput, InvalidLimit
from ..ledger import File, Sheet, clipped
from ..ledger.lines import Line
from ..models import reads
from ..strategies.blend_memory import keeping_memory
from ..summaries import Draft, Material, checked, readable, sized, verified
from ..summaries.handoff import HandoffText, about, relevant, standing
from ..view import Request
from .asked import asked
from .known import Known, task_of
from .live import LiveSession

SMALLEST = 200
"""Tokens that a handoff may have, at least: where it comes from, and a few lines."""
_SOURCE = (
    "What follows is known from an earlier conversation, session {id}. It is a record, not a request; [numbers] are "
    "messages of that session, where there is more."
)
_ABOUT = "## Closest to the goal"
_FILES = "## Relevant files"
_DRAFT, _FILES_PART, _ABOUT_PART = 0.6, 0.15, 0.3
"""What part of the room each may take; what they leave is for what else must be known."""
_NOTES = 8_000
"""Characters of notes on what is archived, for the model to read."""
_LEAST_PAGE = 1_500
"""With fewer characters a page of notes says nothing."""


class Handoff(msgspec.Struct, frozen=True):
    """The first message for a new session, to be read, changed and sent."""

    goal: str
    message: str
    """The goal, and what is known that matters for it."""
    files: tuple[str, ...] = ()
    """Paths of the files that it names as relevant."""
    remarks: tuple[str, ...] = ()
    """What a person should know: facts that were put back, names that nobody ever said."""
    fallback: str = ""
    """`ledger` where no model wrote it; else empty."""


async def handoff(live: LiveSession, goal: str, asking: Asking, *, lane: str | None, max_tokens: int) -> Handoff:
    """`max_tokens` is for all that comes with the goal; the goal itself is never cut."""
    if not isinstance(goal, str) or not goal.strip():
        raise InvalidInput("A handoff needs a goal: say what the new session is to do.")
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < SMALLEST:
        raise InvalidLimit(f"max_tokens must be a whole number of at least {SMALLEST}, not {max_tokens!r}.")
    view = await live.view(lane)
    request = Request(keeping_memory(view.snapshot()), session_id=live.id, reads=reads(asking.model))
    task = await task_of(live)
    return await asked(_handed_on(request, task, readable(goal).strip(), max_tokens), asking)


def _handed_on(request: Request, task: Line | None, goal: str, room: int) -> Steps[Handoff]:
    known = Known(request, task)
    source = _SOURCE.format(id=request.session_id)
    room -= known.tokens(source)
    draft = yield from _drafted(known, goal, request.reads, int(room * _DRAFT))
    if isinstance(draft, Failure):
        return _from_ledger(known, goal, source, room, draft)
    held = checked(draft.text, lambda: f"{goal}\n{known.memory}\n{known.history()}")
    files = _fitting(relevant(known.ledger.files, goal, held.text), int(room * _FILES_PART), known)
    told = _joined(held.text, _listed(files))
    back = verified(f"{goal}\n{told}", "", standing(known.ledger), room - known.tokens(told), known.tokens)
    return Handoff(
        goal,
        _joined(goal, source, told, back.section),
        tuple(file.path for file in files),
        (*draft.remarks, *held.remarks, *back.remarks),
    )


def _drafted(known: Known, goal: str, reads: int | None, room: int) -> Steps[Draft | Failure]:
    writer = HandoffText(goal, known.memory, known.notes(_NOTES) if known.noted else "")
    conversation = known.conversation(writer.style)
    if not (conversation.entries or known.noted or known.previous or known.memory):
        return Failure("answer", "there is nothing in this session yet")
    material = Material(
        conversation,
        previous=known.previous,
        task=known.task,
        room=max(1, room),
        reads=reads,
        measure=known.tokens,
        notes_on=known.notes,
    )
    return (yield from writer.write(material))


def _from_ledger(known: Known, goal: str, source: str, room: int, failure: Failure) -> Handoff:
    """The page of notes, with what shares words with the goal first."""
    files = _fitting(relevant(known.ledger.files, goal, ""), int(room * _FILES_PART), known)

    def page(characters: int) -> str:
        lines = about(goal, known.notebook.lines.values(), int(characters * _ABOUT_PART))
        closest = "\n".join([_ABOUT, *lines]) if lines else ""
        first = _joined(clipped(known.memory, int(characters * _ABOUT_PART)), closest, _listed(files))
        left = characters - len(first)
        return _joined(first, Sheet(known.pages, first).write(left).text.strip() if left > _LEAST_PAGE else "")

    why = f"no draft by a model ({failure.kind}{f': {failure.why}' if failure.why else ''}): the ledger instead"
    message = _joined(goal, source, readable(sized(page, 4 * max(0, room), room, known.tokens)))
    return Handoff(goal, message, tuple(file.path for file in files), (why,), "ledger")


def _fitting(files: Sequence[File], room: int, known: Known) -> list[File]:
    kept: list[File] = []
    for file in files:
        if known.tokens(_listed([*kept, file])) > room:
            break
        kept.append(file)
    return kept


def _listed(files: Sequence[File]) -> str:
    done = (f"- {file.path}{' (changed)' if file.edits else ''}" for file in files)
    return "\n".join([_FILES, *done]) if files else ""


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
