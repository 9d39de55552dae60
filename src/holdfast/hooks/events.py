"""What a compaction tells whoever listens: typed, one after the other, and the same in every mode (P11, G7)."""

from __future__ import annotations

from typing import Literal

import msgspec

Origin = Literal["manual", "auto"]
"""Did a person ask for it, or a trigger?"""

ACCURACY = (
    "Long conversations and repeated compactions make a model less accurate: "
    "start a new session (/handoff) where the work allows it."
)
"""What a person is told after each compaction (P15)."""


class CompactionStarted(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_started"):
    session: str
    origin: Origin
    tokens: int
    lane: str | None = None
    instructions: str | None = None


class CompactionProgress(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_progress"):
    """The summary as it is written, or what the wait is for."""

    session: str
    what: str
    """In words: what happens now."""
    call: int = 0
    characters: int = 0
    """Of the reply so far."""


class CompactionCompleted(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_completed"):
    session: str
    origin: Origin
    tokens_before: int
    tokens_after: int
    archived: int
    kept: int
    round: int
    strategy: str = ""
    fallback: str = ""
    summary: str | None = None
    remarks: tuple[str, ...] = ()
    seconds: float = 0.0


class CompactionSkipped(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_skipped"):
    """Nothing was wrong and nothing was changed."""

    session: str
    outcome: str
    why: str = ""


class CompactionFailed(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_failed"):
    """It was tried, and nothing was changed: the person decides (P9)."""

    session: str
    outcome: str
    why: str = ""


class CompactionBoundary(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_boundary"):
    """From here on the context is another one (G7)."""

    session: str
    checkpoint: str
    """The id of the compaction's event."""
    round: int
    notice: str = ACCURACY


CompactionEvent = (
    CompactionStarted
    | CompactionProgress
    | CompactionCompleted
    | CompactionSkipped
    | CompactionFailed
    | CompactionBoundary
)
