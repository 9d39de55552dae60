"""Where a conversation stands, in plain values: for a footer, and for a client in another process."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..agent.events import Known

Activity = Literal["idle", "running", "compacting"]


class State(msgspec.Struct, frozen=True):
    session: str
    parent: str | None
    model: str
    preset: str
    activity: Activity
    auto: bool
    """Is automatic compaction on?"""
    tokens: int
    window: int
    known: Known
    waiting: int
    """Prompts that were typed and not sent yet."""
    round: int
    """How many compactions the context has behind it."""
    folder: str
