"""Which of the messages that came in are visible afterwards, and which are not (S2)."""

from __future__ import annotations

from collections.abc import Collection

from ..messages import Message, encode_all
from ..view import View
from .decide import Decision
from .mending import traced
from .result import Sides


def sides_of(given: list[Message], history: list[Message], start: int, view: View, decision: Decision) -> Sides:
    """What came in, sorted by what became of it, as payloads."""
    composed, name = decision.composed, view.format
    lead = [shown for shown in view.head if shown.source] if start and len(given) == len(history) else []
    if composed is None:
        return Sides(encode_all([*(shown.message for shown in lead), *given[start:]], name), [], [])
    gone = set(composed.archived)
    if history is given:
        live = given[start:]
        kept = [message for place, message in enumerate(live) if place not in gone]
        archived = [live[place] for place in composed.archived]
    else:
        kept, archived = _sorted(given, history, start, gone)
    dropped = {shown.source for shown in composed.dropped}
    archived = [shown.message for shown in lead if shown.source in dropped] + archived
    kept = [shown.message for shown in lead if shown.source not in dropped] + kept
    touched = [history[start + place] for place in sorted(composed.edits)]
    return Sides(encode_all(kept, name), encode_all(archived, name), encode_all(touched, name))


def _sorted(
    given: list[Message], history: list[Message], start: int, gone: Collection[int]
) -> tuple[list[Message], list[Message]]:
    """What became of messages that had to be mended: each is found again by its parts, in their order."""
    kept, archived = [], []
    for message, places in zip(given, traced(given, history), strict=True):
        found = [place - start for place in places]
        if any(place >= 0 and place not in gone for place in found):
            kept.append(message)
        elif any(place in gone for place in found) or not (found or start):
            archived.append(message)
    return kept, archived
