"""The plan that an agent keeps of its work: which steps there are, and how far each is."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .deeds import Deed

_NUMBER = re.compile(r"[0-9]{1,6}")


class Steps:
    """What is planned, each step with its state, and where that was said last."""

    def __init__(self, known: Iterable[tuple[str, str]] = (), place: int = 0, *, told: bool = False) -> None:
        self.all = list(known)
        self.place = place
        self.told = told
        """Are they from a page? Then nobody knows their numbers."""

    def follow(self, deed: Deed, place: int) -> bool:
        """Note a new plan, one more step, or a step's new state; False where it is about somebody else's list."""
        if deed.kind == "plan":
            self.all, self.told = list(deed.plan), False
        elif deed.kind == "step":
            self.all += deed.plan
        elif deed.kind != "progress" or not self._move(*deed.plan[0]):
            return False
        self.place = place
        return True

    def _move(self, step: str, status: str) -> bool:
        if self.told or not _NUMBER.fullmatch(step) or not 0 < int(step) <= len(self.all):
            return False
        self.all[int(step) - 1] = (self.all[int(step) - 1][0], status)
        return True
