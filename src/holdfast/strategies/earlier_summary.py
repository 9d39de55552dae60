"""The summary so far: as it was written, or as far as the notes that are shown tell it (S12)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..messages import Message, Opaque, is_framed, unframed
from ..summaries import HEADING, PREFIX
from ..view import Request


def earlier_summary(request: Request, notes: Sequence[Message]) -> str:
    """What a model wrote the last time; where that did not come along, what stands in its place."""
    if (written := request.view.checkpoint.summary) is not None:
        return written
    return "\n\n".join(filter(None, map(_bare, _telling(notes))))


def _telling(notes: Sequence[Message]) -> Iterator[Message]:
    """The notes without the other half of an exchange: a question for a summary, or a word of thanks for it."""
    idle = set()
    for place, (first, second) in enumerate(pairwise(notes)):
        if first.role == "user" and second.role == "assistant":
            idle.add(place if len(first.text) < len(second.text) else place + 1)
    return (note for place, note in enumerate(notes) if place not in idle)


def _bare(note: Message) -> str:
    """What a note says, without its frame, its prefix, and what was put back under it."""
    if not is_framed(note):
        vendor = (part.data.get("content") for part in note.parts if isinstance(part, Opaque))
        return "\n".join(said for said in vendor if isinstance(said, str)) or note.text
    return unframed(note).partition(f"\n{HEADING}")[0].removeprefix(PREFIX).strip()
