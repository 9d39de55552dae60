"""What a compaction tells whoever listens: typed, one after the other, and the same in every mode (P11, G7)."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..calls import NoticeKind
from ..compaction import Cost

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
    compaction: str = ""
    """One name for all that is told of one compaction; empty where it was not even begun."""


class CompactionProgress(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_progress"):
    """The summary as it is written, or what the wait is for."""

    session: str
    what: str
    """In words: what happens now."""
    call: int = 0
    characters: int = 0
    """Of the reply so far."""
    kind: NoticeKind | None = None
    seconds: float = 0.0
    """How long it took, or how long the wait will be."""
    compaction: str = ""


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
    summarizer: str | None = None
    """The model that was asked, if any was."""
    cost: Cost | None = None
    outcome: str = "compacted"
    """Or `cannot_fit`, where the smallest valid context is still too large."""
    lane: str | None = None
    compaction: str = ""


class CompactionSkipped(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_skipped"):
    """Nothing was wrong and nothing was changed."""

    session: str
    outcome: str
    why: str = ""
    compaction: str = ""


class CompactionFailed(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_failed"):
    """It was tried, and nothing was changed: the person decides (P9)."""

    session: str
    outcome: str
    why: str = ""
    compaction: str = ""


class CompactionBoundary(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_boundary"):
    """From here on the context is another one (G7)."""

    session: str
    checkpoint: str
    """The id of the compaction's event."""
    round: int
    notice: str = ACCURACY
    compaction: str = ""


class Continued(msgspec.Struct, frozen=True, tag_field="type", tag="continued"):
    """Unfinished work goes on after an automatic compaction, with a message that says so (P22)."""

    session: str
    text: str


CompactionEvent = (
    CompactionStarted
    | CompactionProgress
    | CompactionCompleted
    | CompactionSkipped
    | CompactionFailed
    | CompactionBoundary
    | Continued
)
