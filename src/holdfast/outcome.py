"""Everything that can come of a compaction."""

from __future__ import annotations

from enum import StrEnum


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
