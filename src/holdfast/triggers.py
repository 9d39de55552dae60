"""When to compact: a trigger is anything that answers yes or no to a request (S4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from .budget import BelowWindow, Fraction, LayerBudget, Threshold, Utilization, WorkstreamBudget, fraction, positive
from .errors import InvalidInput
from .messages import Media, Message, ToolResult
from .tokens import Estimator, estimator_for, part_text
from .view import Request

if TYPE_CHECKING:
    from .types import Trigger


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


class OverBudget(msgspec.Struct, frozen=True):
    """Fires above the request's budget; given a threshold and a window, above that (P2)."""

    threshold: Threshold | None = None
    window: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.threshold, Fraction | BelowWindow):
            positive("window", self.window)

    def __call__(self, request: Request) -> bool:
        limit = request.budget if self.threshold is None else self.threshold.tokens(self.window)
        return limit is not None and request.tokens > limit


def pi_trigger(window: int, reserve_tokens: int = 16_384) -> OverBudget:
    """P2: context > window - reserve."""
    positive("window", window)
    return OverBudget(BelowWindow(reserve_tokens), window)


class LayerTrigger(msgspec.Struct, frozen=True):
    """L4: never at keep + 1 messages or fewer; else at the threshold of the layer's budget."""

    budget: LayerBudget = LayerBudget()

    def __call__(self, request: Request) -> bool:
        if len(request.messages) + len(request.view.head) <= self.budget.keep_last + 1:
            return False
        return request.tokens >= self.budget.threshold


class WorkstreamTrigger(msgspec.Struct, frozen=True):
    """W1: fires at or above the workstream's threshold."""

    budget: WorkstreamBudget = WorkstreamBudget()

    def __call__(self, request: Request) -> bool:
        return request.tokens >= self.budget.threshold


class OverUtilization(msgspec.Struct, frozen=True):
    """G2: fires when the messages use more than four fifths of what system and output leave."""

    part: float = 0.80
    limit: int = 200_000
    max_output: int = 16_384

    def __post_init__(self) -> None:
        fraction("part", self.part)
        Utilization(0, 0, self.limit, self.max_output)

    def __call__(self, request: Request) -> bool:
        gauge = request.view.gauge
        system = gauge.estimator.tokens(gauge.fixed)
        return Utilization(system, request.tokens - system, self.limit, self.max_output).over(self.part)


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


def always(request: Request) -> bool:
    return True


def never(request: Request) -> bool:
    return False


def any_of(*triggers: Trigger) -> Trigger:
    """S7: fires if any of these does."""
    _at_least_one(triggers)
    return lambda request: any(trigger(request) for trigger in triggers)


def all_of(*triggers: Trigger) -> Trigger:
    """Fires only if all of these do."""
    _at_least_one(triggers)
    return lambda request: all(trigger(request) for trigger in triggers)


def not_(trigger: Trigger) -> Trigger:
    """Fires if this one does not."""
    _at_least_one((trigger,))
    return lambda request: not trigger(request)


def _at_least_one(triggers: tuple[Trigger, ...]) -> None:
    if not triggers or not all(callable(trigger) for trigger in triggers):
        raise InvalidInput("any_of, all_of and not_ take one or more triggers: callables from a request to yes or no.")
