"""What a loop is told to do about a step that did not fit (G3)."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..events import Event
from ..messages import Json, ToolCall
from ..service import Context


class Recovery(msgspec.Struct, frozen=True):
    """What to do about a prompt that was too long."""

    retry: bool
    """Send the context again, once: it is smaller now."""
    why: str = ""
    context: Context | None = None


class CutOff(msgspec.Struct, frozen=True):
    """What to do about a reply that ran into its limit."""

    status: Literal["go_on", "max_tokens"]
    messages: list[Json]
    """What could be kept of it, in its own format."""
    calls: tuple[ToolCall, ...]
    """Those that are whole."""
    events: list[Event]
    """As it was stored."""
    why: str = ""
