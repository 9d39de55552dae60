"""What a server may do: answer, or go wrong in one of the ways that providers do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .say import Say


@dataclass(frozen=True)
class Status:
    """An error with the provider's own envelope, or with exactly this body."""

    status: int
    message: str = "Something went wrong."
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    """A string goes out as it is, also an empty one."""


@dataclass(frozen=True)
class RateLimited:
    retry_after: float = 1.0


@dataclass(frozen=True)
class Overflow:
    """The prompt is too long, in the provider's own words."""

    window: int = 8_192
    tokens: int = 10_000


@dataclass(frozen=True)
class Stall:
    """Takes the request and never answers; or, after so many pieces, never goes on."""

    after: int | None = None
    text: str | Say = "this reply never comes to its end"


@dataclass(frozen=True)
class Cut:
    """Hangs up after so many pieces; `clean` ends the body properly, only without the closing event."""

    after: int = 2
    text: str | Say = "this reply never comes to its end"
    clean: bool = False


@dataclass(frozen=True)
class StreamError:
    """An error inside the stream, after so many pieces."""

    status: int = 529
    message: str = "Overloaded"
    code: str | None = None
    after: int = 1
    text: str | Say = "this reply never comes to its end"


@dataclass(frozen=True)
class Garbage:
    """A good status, and a stream that nobody can read."""

    data: bytes = b"event: message_start\ndata: {not json at all\n\n"


Answer = str | Say | Status | RateLimited | Overflow | Stall | Cut | StreamError | Garbage


def begun(fault: Stall | Cut | StreamError) -> Say:
    """What of a reply is on its way before it goes wrong."""
    return fault.text if isinstance(fault.text, Say) else Say(fault.text, pieces=8)
