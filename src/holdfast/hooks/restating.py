"""What a session is to start with again, in a length that does not set off the next compaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..messages import framed
from ..summaries import readable
from ..summaries.transcript import cut
from ..view import Plan, Request, follow
from .speaking import LONGEST

if TYPE_CHECKING:
    from ..types import Trigger

_SHORTEST = 200
"""Characters; less than that tells nobody anything."""


def fitting(text: str, request: Request, triggers: Sequence[Trigger]) -> str | None:
    """As much of a text as leaves these triggers silent; None where there is no room.

    A trigger that fires without it has other reasons.
    """
    text = readable(text)
    silent = [trigger for trigger in triggers if not trigger(request)]
    limit = min(LONGEST, len(text))
    while True:
        said = cut(text, limit)
        after = _with(said, request)
        if not any(trigger(after) for trigger in silent):
            return said
        if limit <= _SHORTEST:
            return None
        limit //= 2


def _with(said: str, request: Request) -> Request:
    """The context with it, and with as much again, for the room that the next message needs."""
    notes = [shown.message for shown in request.view.head if shown.kind == "note"]
    return follow(request, Plan(0, notes=(*notes, *[framed(said, aside=True)] * 2)))
