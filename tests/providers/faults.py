"""Answers of a server: replies, and the faults that providers have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.providers.reply import Say


@dataclass(frozen=True)
class Status:
    """An error with the provider's own envelope, or with exactly this body."""

    status: int
    message: str = "Something went wrong."
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    """A string is sent as it is, also an empty one."""


@dataclass(frozen=True)
class RateLimited:
    retry_after: float = 1.0


@dataclass(frozen=True)
class Overflow:
    """The provider's own error for a prompt that is too long."""

    window: int = 8_192
    tokens: int = 10_000


@dataclass(frozen=True)
class Stall:
    """Never answers, or stops sending after so many pieces."""

    after: int | None = None
    text: str | Say = "this reply never comes to its end"


@dataclass(frozen=True)
class Cut:
    """Disconnects after so many pieces; `clean` ends the body properly, but without the closing event."""

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
    """Status 200 and an unreadable stream."""

    data: bytes = b"event: message_start\ndata: {not json at all\n\n"


Answer = str | Say | Status | RateLimited | Overflow | Stall | Cut | StreamError | Garbage


def partial_reply(fault: Stall | Cut | StreamError) -> Say:
    """Returns the reply that is being sent before the fault."""
    return fault.text if isinstance(fault.text, Say) else Say(fault.text, pieces=8)
