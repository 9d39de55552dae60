"""Events of a running agent: typed, in order, and the same for terminal, JSON lines and RPC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from ..compaction.size import SizeCertainty
from ..hooks.events import CompactionEvent
from ..models.calls import ReplyDeltaKind
from ..tokens import Usage

RunStatus = Literal["done", "aborted", "failed", "max_tokens", "max_steps"]
"""How a run ended: finished, stopped by the user, model failure, reply cut off with room left in the window, too many
steps."""
SessionOrigin = Literal["new", "resumed", "forked", "handed_off", "switched"]
"""How a conversation came to its current session."""


class RunStarted(msgspec.Struct, frozen=True, tag_field="type", tag="run_started"):
    """A run began."""

    session: str
    prompt: str | None = None
    """None when unfinished work is continued."""


class TextDelta(msgspec.Struct, frozen=True, tag_field="type", tag="delta"):
    """A streamed piece of the reply."""

    session: str
    kind: ReplyDeltaKind
    text: str


class ReplyStored(msgspec.Struct, frozen=True, tag_field="type", tag="reply"):
    """A complete reply of the model, stored as event `event`."""

    session: str
    event: str
    text: str
    calls: int = 0
    finish: str = "stop"
    model: str = ""
    usage: Usage | None = None
    """Tokens that the provider reported; None if it reported none."""
    number: int = 0
    """Number of the first event that the reply is stored in."""


class ToolStarted(msgspec.Struct, frozen=True, tag_field="type", tag="tool_started"):
    """A tool call began."""

    session: str
    call: str
    name: str
    summary: str
    """The call in one line."""


class ToolOutput(msgspec.Struct, frozen=True, tag_field="type", tag="tool_output"):
    """A piece of the output of a running tool call; its result has all of it."""

    session: str
    call: str
    text: str


class ToolFinished(msgspec.Struct, frozen=True, tag_field="type", tag="tool_finished"):
    """A tool call returned a result or an error."""

    session: str
    call: str
    name: str
    text: str
    is_error: bool = False


class WindowUsage(msgspec.Struct, frozen=True, tag_field="type", tag="gauge"):
    """How full the window is."""

    session: str
    tokens: int
    window: int
    known: SizeCertainty
    auto: bool = True
    """Whether automatic compaction is on."""


class Retrying(msgspec.Struct, frozen=True, tag_field="type", tag="retrying"):
    """The model call failed and is retried after `seconds`."""

    session: str
    why: str
    seconds: float = 0.0
    streamed: int = 0
    """Characters streamed of a reply that broke off: it is asked for again, and its deltas no longer count."""

    @property
    def line(self) -> str:
        """The event in a sentence for people."""
        then = f"in {self.seconds:.0f} s"
        return (
            f"the reply broke off ({self.why}): asking again {then}"
            if self.streamed
            else (f"no answer ({self.why}): retrying {then}")
        )


class Queued(msgspec.Struct, frozen=True, tag_field="type", tag="queued"):
    """Input typed during a compaction; it is sent afterwards."""

    session: str
    text: str
    waiting: int


class Attached(msgspec.Struct, frozen=True, tag_field="type", tag="attached"):
    """Files named in a message were attached to it, or could not be."""

    session: str
    files: tuple[str, ...]
    """Names and sizes."""
    problems: tuple[str, ...] = ()
    """A sentence for each file that is not attached."""


class Unsent(msgspec.Struct, frozen=True, tag_field="type", tag="unsent"):
    """Input that was not delivered because the agent stopped; returned to the user."""

    session: str
    text: str


class RunFinished(msgspec.Struct, frozen=True, tag_field="type", tag="run_finished"):
    """A run ended."""

    session: str
    status: RunStatus
    why: str = ""
    steps: int = 0


class SessionChanged(msgspec.Struct, frozen=True, tag_field="type", tag="session"):
    """The conversation continues in another session: new, forked, handed off, or selected."""

    session: str
    how: SessionOrigin
    parent: str | None = None


class ErrorEvent(msgspec.Struct, frozen=True, tag_field="type", tag="error"):
    """An error to show to the user."""

    error: str


AgentEvent = (
    RunStarted
    | TextDelta
    | ReplyStored
    | ToolStarted
    | ToolOutput
    | ToolFinished
    | WindowUsage
    | Retrying
    | Queued
    | Attached
    | Unsent
    | RunFinished
    | SessionChanged
    | ErrorEvent
    | CompactionEvent
)
EventListener = Callable[[AgentEvent], object]
