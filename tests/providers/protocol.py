"""Interface of a provider's protocol, and helpers."""

from __future__ import annotations

import json
from typing import Any, Protocol

from tests.providers.faults import Overflow, Status, StreamError
from tests.providers.reply import Piece, Say
from tests.providers.request import Request

Json = dict[str, Any]


class ProviderProtocol(Protocol):
    name: str

    def read(self, request: Request) -> None:
        """Fills in prompt and system."""
        ...

    def refuse(self, request: Request) -> Status | None:
        """Returns the provider's error for an invalid request."""
        ...

    def key(self, request: Request) -> str | None: ...
    def error(self, status: int, message: str, code: str | None = None) -> Json: ...
    def overflow(self, fault: Overflow) -> Status: ...
    def opening(self, request: Request, reply: Say) -> list[bytes]: ...
    def piece(self, request: Request, reply: Say, piece: Piece) -> list[bytes]: ...
    def closing(self, request: Request, reply: Say) -> list[bytes]: ...
    def broken(self, fault: StreamError) -> bytes: ...


def sse(data: Any, event: str | None = None) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode()


def unknown(body: Json, known: str) -> list[str]:
    return sorted(set(body) - set(known.split()))


def number(value: Any, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
