"""Triggers that count: turns, events, tokens, bytes, images."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..budget import positive
from ..messages import Media, Message, ToolResult
from ..tokens import Estimator, estimator_for, part_text
from ..view import Request


class TurnCount(msgspec.Struct, frozen=True):
    """S5: fires at MORE than n turns: real user messages of the lane, answered or not."""

    n: int

    def __post_init__(self) -> None:
        positive("n", self.n)

    def __call__(self, request: Request) -> bool:
        return request.turn_count > self.n


class EventCount(msgspec.Struct, frozen=True):
    """Fires at more than n real events."""

    n: int

    def __post_init__(self) -> None:
        positive("n", self.n)

    def __call__(self, request: Request) -> bool:
        return request.event_count > self.n


class TokenCount:
    """S6: fires AT or above n tokens, by the session's own count or by any estimator."""

    def __init__(self, n: int, estimator: Estimator | Callable[[str], int] | str | None = None) -> None:
        positive("n", n)
        self.n = n
        self.estimator = None if estimator is None else estimator_for(estimator)

    def __call__(self, request: Request) -> bool:
        if self.estimator is None:
            return request.tokens >= self.n
        gauge = request.view.gauge_for(self.estimator)
        return self.estimator.tokens(request.view.units(gauge)) >= self.n


class ByteCount:
    """Fires above n bytes of text and media: some providers refuse by size, not by tokens."""

    def __init__(self, n: int) -> None:
        positive("n", n)
        self.n = n
        self._measure = _Bytes()

    def __call__(self, request: Request) -> bool:
        return request.view.gauge_for(self._measure).units > self.n


class ImageCount:
    """Fires above n images."""

    def __init__(self, n: int) -> None:
        positive("n", n)
        self.n = n
        self._measure = _Images()

    def __call__(self, request: Request) -> bool:
        return request.view.gauge_for(self._measure).units > self.n


class _Bytes:
    """Bytes as an estimator, so that they are summed once like tokens."""

    name = "bytes"

    def measure(self, message: Message) -> int:
        return sum(len(part_text(part).encode(errors="replace")) for part in message.parts) + sum(
            len(media.data or "") for media in _media(message)
        )

    def measure_text(self, text: str) -> int:
        return len(text.encode(errors="replace"))

    def tokens(self, units: int) -> int:
        return units


class _Images:
    name = "images"

    def measure(self, message: Message) -> int:
        return sum(media.kind == "image" for media in _media(message))

    def measure_text(self, text: str) -> int:
        return 0

    def tokens(self, units: int) -> int:
        return units


def _media(message: Message) -> list[Media]:
    inside = [item for part in message.parts if isinstance(part, ToolResult) for item in part.content]
    return [part for part in (*message.parts, *inside) if isinstance(part, Media)]
