"""Tails: keep a number or a part of the newest messages, moving BACK over tool results (L5, W3, G4)."""

from __future__ import annotations

from math import floor

from ..boundaries import cut_at_or_before
from ..budget import positive
from ..errors import InvalidLimit
from ..types import Outcome
from ..view import Plan, Request, Skip
from .settle import archive_before


class KeepLast:
    """L5: keep the last N messages, and more where a tool's result would lose its call."""

    def __init__(self, keep: int = 10) -> None:
        positive("keep", keep)
        self.keep = keep

    def __call__(self, request: Request) -> Plan | Skip:
        messages = request.messages
        if len(messages) + len(request.view.head) <= self.keep + 1:
            return Skip(Outcome.NOTHING_TO_COMPACT, f"there are at most {self.keep + 1} messages")
        return archive_before(request, cut_at_or_before(messages, max(0, len(messages) - self.keep)), "keep last")


class KeepFraction:
    """G4: keep the newest part of the messages, at least one; a parted pair moves into the kept part."""

    def __init__(self, part: float = 0.4) -> None:
        if isinstance(part, bool) or not isinstance(part, int | float) or not 0 < part < 1:
            raise InvalidLimit(f"The part to keep is between 0 and 1, not {part!r}.")
        self.part = part

    def __call__(self, request: Request) -> Plan | Skip:
        messages = request.messages
        keep = max(1, floor(self.part * len(messages)))
        return archive_before(request, cut_at_or_before(messages, len(messages) - keep), "keep fraction")
