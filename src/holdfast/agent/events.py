"""What an agent tells while it works: typed, in order, and the same for a terminal, for JSON lines and for RPC."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec

from ..calls import DeltaKind
from ..hooks.events import CompactionEvent

log = logging.getLogger("holdfast")
Status = Literal["done", "aborted", "failed", "max_tokens", "max_steps"]
"""How a run ended: finished, stopped by a person, the model could not be reached, cut off with room left (G3), too
many steps."""
How = Literal["new", "resumed", "forked", "handed_off", "switched"]
"""How a conversation came to its session."""
Known = Literal["known", "estimated", "unknown"]
"""Did the provider report the size, is a part of it estimated since, or is it a guess until the next reply, because a
compaction made the context another one?"""


class RunStarted(msgspec.Struct, frozen=True, tag_field="type", tag="run_started"):
    session: str
    prompt: str | None = None
    """None where unfinished work goes on."""


class Said(msgspec.Struct, frozen=True, tag_field="type", tag="delta"):
    """A piece of the reply as it comes."""

    session: str
    kind: DeltaKind
    text: str


class Replied(msgspec.Struct, frozen=True, tag_field="type", tag="reply"):
    """A whole reply of the model, as it was stored."""

    session: str
    event: str
    text: str
    calls: int = 0
    finish: str = "stop"


class ToolStarted(msgspec.Struct, frozen=True, tag_field="type", tag="tool_started"):
    session: str
    call: str
    name: str
    summary: str
    """The call in one line, for a person."""


class ToolFinished(msgspec.Struct, frozen=True, tag_field="type", tag="tool_finished"):
    session: str
    call: str
    name: str
    text: str
    is_error: bool = False


class Gauged(msgspec.Struct, frozen=True, tag_field="type", tag="gauge"):
    """How full the window is."""

    session: str
    tokens: int
    window: int
    known: Known
    auto: bool = True
    """Is automatic compaction on (P2)?"""


class Retrying(msgspec.Struct, frozen=True, tag_field="type", tag="retrying"):
    """The model did not answer, and is asked again."""

    session: str
    why: str
    seconds: float = 0.0


class Queued(msgspec.Struct, frozen=True, tag_field="type", tag="queued"):
    """Something was typed while no input could be taken; it is sent afterwards (P14)."""

    session: str
    text: str
    waiting: int


class Unsent(msgspec.Struct, frozen=True, tag_field="type", tag="unsent"):
    """Something was typed that the agent was stopped before it heard: it is given back."""

    session: str
    text: str


class RunFinished(msgspec.Struct, frozen=True, tag_field="type", tag="run_finished"):
    session: str
    status: Status
    why: str = ""
    steps: int = 0


class SessionChanged(msgspec.Struct, frozen=True, tag_field="type", tag="session"):
    """The conversation goes on in another session: new, forked, handed over, or chosen."""

    session: str
    how: How
    parent: str | None = None


class Problem(msgspec.Struct, frozen=True, tag_field="type", tag="error"):
    """Something went wrong that a person should know (P9)."""

    error: str


AgentEvent = (
    RunStarted
    | Said
    | Replied
    | ToolStarted
    | ToolFinished
    | Gauged
    | Retrying
    | Queued
    | Unsent
    | RunFinished
    | SessionChanged
    | Problem
    | CompactionEvent
)

Tell = Callable[[AgentEvent], object]


E = TypeVar("E")


def told(tell: Callable[[E], object], event: E) -> None:
    """Tell it; whoever listens and breaks stops nothing."""
    try:
        tell(event)
    except Exception:
        log.exception("what was to hear of %s broke", type(event).__name__)
