"""The summary so far: as it was written, or as far as the notes that are shown tell it (S12)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..messages import Message, Opaque, is_aside, is_framed, unframed
from ..summaries import HEADING, PREFIX, AsSystem
from ..view import Request


def earlier_summary(request: Request, notes: Sequence[Message]) -> str:
    """What a model wrote the last time; where that did not come along, what stands in its place."""
    if (written := request.view.checkpoint.summary) is not None:
        return written
    return "\n\n".join(filter(None, map(_bare, _telling(notes))))


def _telling(notes: Sequence[Message]) -> Iterator[Message]:
    """The notes without the other half of an exchange; of others' exchanges the assistant's half tells."""
    for place, note in enumerate(notes):
        answered = any(after.role == "assistant" for after in notes[place + 1 : place + 2])
        asks = note.role == "user" and answered and not is_framed(note)
        if not asks and not is_aside(note):
            yield note


def _bare(note: Message) -> str:
    """What a note says, without its frame, its prefix, and what was put back under it."""
    if not is_framed(note):
        vendor = (part.data.get("content") for part in note.parts if isinstance(part, Opaque))
        return "\n".join(said for said in vendor if isinstance(said, str)) or note.text
    said = unframed(note).partition(f"\n{HEADING}")[0]
    return said.removeprefix(PREFIX).removeprefix(AsSystem().heading).strip()
