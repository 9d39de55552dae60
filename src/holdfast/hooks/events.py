"""Events that a compaction emits to listeners."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..compaction import Cost
from ..errors import Outcome
from ..models.calls import NoticeKind

Origin = Literal["manual", "auto"]
"""Whether a person or a trigger started the compaction."""
ACCURACY_NOTICE = (
    "Long conversations and repeated compactions make a model less accurate: "
    "start a new session (/handoff) where the work allows it."
)
"""Shown to the user after each compaction."""


class CompactionStarted(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_started"):
    """A trigger fired or a person asked; hooks and strategy run next."""

    session: str
    origin: Origin
    tokens: int
    lane: str | None = None
    instructions: str | None = None
    compaction: str = ""
    """Id shared by all events of one compaction; empty if it was not started."""


class CompactionProgress(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_progress"):
    """Progress of the summary call."""

    session: str
    what: str
    """Description of the current step."""
    call: int = 0
    characters: int = 0
    """Length of the reply so far."""
    kind: NoticeKind | None = None
    seconds: float = 0.0
    """Duration of the call, or of the wait before a retry."""
    compaction: str = ""


class CompactionCompleted(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_completed"):
    """The compaction was committed."""

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
    """Name of the model that was called, if any."""
    cost: Cost | None = None
    outcome: Outcome = Outcome.COMPACTED
    """`cannot_fit` if the smallest valid context is still too large."""
    lane: str | None = None
    compaction: str = ""


class CompactionSkipped(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_skipped"):
    """Nothing was changed, without an error."""

    session: str
    outcome: str
    why: str = ""
    compaction: str = ""


class CompactionFailed(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_failed"):
    """The compaction failed and nothing was changed."""

    session: str
    outcome: str
    why: str = ""
    compaction: str = ""


class CompactionBoundary(msgspec.Struct, frozen=True, tag_field="type", tag="compaction_boundary"):
    """The context was replaced at this point."""

    session: str
    checkpoint: str
    """Id of the compaction event."""
    round: int
    notice: str = ACCURACY_NOTICE
    compaction: str = ""


class Continued(msgspec.Struct, frozen=True, tag_field="type", tag="continued"):
    """A message was appended so that unfinished work continues after an automatic compaction."""

    session: str
    text: str


class WindowLowered(msgspec.Struct, frozen=True, tag_field="type", tag="window_lowered"):
    """The provider refused a prompt as too long. Without a number in its error, the limit is raised again later."""

    session: str
    before: int
    after: int
    why: str = ""
    """The error."""


CompactionEvent = (
    CompactionStarted
    | CompactionProgress
    | CompactionCompleted
    | CompactionSkipped
    | CompactionFailed
    | CompactionBoundary
    | Continued
    | WindowLowered
)
"""Every event that a listener can receive."""
