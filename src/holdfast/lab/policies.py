"""When to compact, how far, and how: what a user could choose."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from ..strategies import KeepLedger, Pipeline, PruneToolResults, TokenWindow, Truncate

if TYPE_CHECKING:
    from ..types import Strategy

THRESHOLDS = (0.5, 0.7, 0.85, 0.95)
TARGETS = (0.25, 0.5)
STRATEGIES: dict[str, Callable[[int], Strategy]] = {
    "ledger": lambda target: KeepLedger(target),
    "window": lambda target: TokenWindow(target),
    "truncation": lambda target: Truncate(keep_tokens=target, max_tokens=target),
    "pruning": lambda target: Pipeline(
        PruneToolResults(protect=max(1, target // 2), minimum=0), Truncate(keep_tokens=target, max_tokens=target)
    ),
}


class Policy(msgspec.Struct, frozen=True, order=True):
    """Compact at a part of the window, down to a part of it."""

    strategy: str
    threshold: float
    target: float

    @property
    def words(self) -> str:
        return f"{self.strategy} at {self.threshold:.0%} down to {self.target:.0%}"


POLICIES = tuple(
    Policy(strategy, threshold, target)
    for strategy in STRATEGIES
    for threshold in THRESHOLDS
    for target in TARGETS
    if target < threshold
)
