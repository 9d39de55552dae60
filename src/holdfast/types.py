"""The names of the callables that people pass in, and of everything that can come of a compaction."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .calls import Steps
    from .view import Plan, Request, Skip

    Clock = Callable[[], float]
    """Seconds since 1970."""
    Trigger = Callable[[Request], bool]
    Strategy = Callable[[Request], Plan | Skip | Steps[Plan | Skip]]


class Outcome(StrEnum):
    """What came of a compaction. Nobody has to guess from an empty list."""

    COMPACTED = "compacted"
    NOT_NEEDED = "not_needed"
    NOTHING_TO_COMPACT = "nothing_to_compact"
    NO_PROGRESS = "no_progress"
    CANNOT_FIT = "cannot_fit"
    CONFLICT = "conflict"
    VETOED = "vetoed"
    ABORTED = "aborted"
    SUMMARY_FAILED = "summary_failed"
    BREAKER_OPEN = "breaker_open"
