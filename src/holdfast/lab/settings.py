"""What the lab is asked to do."""

from __future__ import annotations

from typing import Literal

import msgspec

from .cuts import CUTS

Half = Literal["report", "learn", "all"]


class Settings(msgspec.Struct, frozen=True):
    """Plain data, so that it can be sent to other processes and written beside the results."""

    budgets: tuple[int, ...] = (2_000, 4_000, 8_000, 16_000)
    rounds: tuple[int, ...] = (3, 5, 10)
    """How many compactions in a row."""
    cuts: int = CUTS
    """In how many places each session is cut."""
    estimator: str = "chars/4"
    half: Half = "report"
    contestants: tuple[str, ...] = ()
    """Words of the names of those who take part; all if there are none."""

    @property
    def focus(self) -> int:
        """The budget at which rows of compactions and single names are looked at."""
        return 4_000 if 4_000 in self.budgets else self.budgets[len(self.budgets) // 2]
