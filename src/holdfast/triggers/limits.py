"""Triggers that compare the size of a context with a limit: turns, events, tokens, bytes, images, or a window.

And those made of others (any of, all of, not), the two constant ones, and the size from which any of them fires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from ..context import Request, View
from ..errors import InvalidInput, InvalidLimit
from ..messages import Media, Message, ToolResult
from ..tokens import Estimator, estimator_for, part_text
from ..tokens.budget import (
    BelowWindow,
    Fraction,
    LayerBudget,
    Threshold,
    Utilization,
    WorkstreamBudget,
    require_fraction,
    require_positive,
)

if TYPE_CHECKING:
    from ..types import Trigger


class TurnCount(msgspec.Struct, frozen=True):
    """Fires above n turns: user messages of the lane, answered or not; synthetic ones do not count."""

    n: int

    def __post_init__(self) -> None:
        require_positive("n", self.n)

    def __call__(self, request: Request) -> bool:
        return request.turn_count > self.n


class EventCount(msgspec.Struct, frozen=True):
    """Fires above n events; synthetic ones do not count."""

    n: int

    def __post_init__(self) -> None:
        require_positive("n", self.n)

    def __call__(self, request: Request) -> bool:
        return request.event_count > self.n


class TokenCount:
    """Fires at n tokens or more, by the session's own count or by an estimator."""

    def __init__(self, n: int, estimator: Estimator | Callable[[str], int] | str | None = None) -> None:
        require_positive("n", n)
        self.n = n
        self.estimator = None if estimator is None else estimator_for(estimator)

    def __call__(self, request: Request) -> bool:
        if self.estimator is None:
            return request.tokens >= self.n
        return self._counted(self.estimator, request) >= self.n

    def token_limit(self, request: Request) -> int:
        """Returns n; with an estimator, the same size by the session's count."""
        if self.estimator is None:
            return self.n
        return max(1, self.n * request.tokens // max(1, self._counted(self.estimator, request)))

    @staticmethod
    def _counted(estimator: Estimator, request: Request) -> int:
        return estimator.tokens(request.view.units(request.view.token_sums_for(estimator)))


class ByteCount:
    """Fires above n bytes of text and media, for providers that limit the size of a request."""

    def __init__(self, n: int) -> None:
        require_positive("n", n)
        self.n = n
        self._measure = _Bytes()

    def __call__(self, request: Request) -> bool:
        return request.view.token_sums_for(self._measure).units > self.n


class ImageCount:
    """Fires above n images."""

    def __init__(self, n: int) -> None:
        require_positive("n", n)
        self.n = n
        self._measure = _Images()

    def __call__(self, request: Request) -> bool:
        return request.view.token_sums_for(self._measure).units > self.n


class _Bytes:
    """Counts bytes as an estimator, so that they are summed incrementally like tokens."""

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


class OverBudget(msgspec.Struct, frozen=True):
    """Fires above the request's budget, or above a threshold of a window if given."""

    threshold: Threshold | None = None
    window: int = 0

    def __post_init__(self) -> None:
        if self.threshold is not None and not hasattr(self.threshold, "tokens"):
            raise InvalidLimit(
                f"OverBudget takes a threshold such as Tokens({self.threshold!r}) or Fraction(0.8), not "
                f"{self.threshold!r}; TokenCount(n) fires at a number of tokens."
            )
        if isinstance(self.threshold, Fraction | BelowWindow):
            require_positive("window", self.window)

    def __call__(self, request: Request) -> bool:
        limit = self.token_limit(request)
        return limit is not None and request.tokens > limit

    def token_limit(self, request: Request) -> int | None:
        """Returns the threshold in tokens, if there is one."""
        return request.budget if self.threshold is None else self.threshold.tokens(self.window)


class OverThreshold(msgspec.Struct, frozen=True):
    """Fires above the threshold of the policy in use, or of its budget; if `inclusive`, at it, too."""

    inclusive: bool = False
    least_messages: int = 0
    """It never fires on a context of fewer messages."""

    def __call__(self, request: Request) -> bool:
        limit = self.token_limit(request)
        if limit is None or len(request.messages) + len(request.view.head) < self.least_messages:
            return False
        return request.tokens >= limit if self.inclusive else request.tokens > limit

    def token_limit(self, request: Request) -> int | None:
        """Returns the threshold in tokens, if there is one."""
        return request.threshold if request.threshold is not None else request.budget


def pi_trigger(window: int, reserve_tokens: int = 16_384) -> OverBudget:
    """Fires above the window less a reserve for the reply, as pi does."""
    require_positive("window", window)
    return OverBudget(BelowWindow(reserve_tokens), window)


class LayerTrigger(msgspec.Struct, frozen=True):
    """Fires at the threshold of the layer's budget, but never at `keep_last` + 1 messages or fewer."""

    budget: LayerBudget = LayerBudget()

    def __call__(self, request: Request) -> bool:
        if len(request.messages) + len(request.view.head) <= self.budget.keep_last + 1:
            return False
        return request.tokens >= self.budget.threshold

    def token_limit(self, request: Request) -> int:
        """Returns the threshold in tokens."""
        return self.budget.threshold


class WorkstreamTrigger(msgspec.Struct, frozen=True):
    """Fires at or above the workstream's threshold."""

    budget: WorkstreamBudget = WorkstreamBudget()

    def __call__(self, request: Request) -> bool:
        return request.tokens >= self.budget.threshold

    def token_limit(self, request: Request) -> int:
        """Returns the threshold in tokens."""
        return self.budget.threshold


class OverUtilization(msgspec.Struct, frozen=True):
    """Fires when the messages use more than `part` of the window left by system prompt and output."""

    part: float = 0.80
    limit: int = 200_000
    max_output: int = 16_384

    def __post_init__(self) -> None:
        require_fraction("part", self.part)
        Utilization(0, 0, self.limit, self.max_output)

    def __call__(self, request: Request) -> bool:
        system = self._system_tokens(request)
        return Utilization(system, request.tokens - system, self.limit, self.max_output).over(self.part)

    def token_limit(self, request: Request) -> int:
        """Returns the size of the context, system prompt included, at which the utilization is exceeded."""
        system = self._system_tokens(request)
        return max(1, system + int(self.part * (self.limit - system - self.max_output)))

    def _system_tokens(self, request: Request) -> int:
        sums = request.view.token_sums
        return sums.estimator.tokens(sums.overhead)


def always(request: Request) -> bool:
    """Fires on every request."""
    return True


def never(request: Request) -> bool:
    """Fires on no request."""
    return False


def any_of(*triggers: Trigger) -> Trigger:
    """Fires if any of these triggers does."""
    _require_triggers(triggers)
    return _Combined(triggers, any, min)


def all_of(*triggers: Trigger) -> Trigger:
    """Fires only if all of these triggers do."""
    _require_triggers(triggers)
    return _Combined(triggers, all, max)


def not_(trigger: Trigger) -> Trigger:
    """Fires if this trigger does not."""
    _require_triggers((trigger,))
    return lambda request: not trigger(request)


class _Combined(msgspec.Struct, frozen=True):
    """Several triggers as one."""

    triggers: tuple[Trigger, ...]
    combine: Callable[[Iterable[bool]], bool]
    limit: Callable[[list[int]], int]

    def __call__(self, request: Request) -> bool:
        return self.combine(trigger(request) for trigger in self.triggers)

    def token_limit(self, request: Request) -> int | None:
        limits = [limit for trigger in self.triggers if (limit := token_limit(trigger, request)) is not None]
        return self.limit(limits) if limits else None


def require_trigger(trigger: Trigger) -> Trigger:
    """Returns the trigger; raises InvalidInput if it cannot be asked."""
    if isinstance(trigger, type) or not callable(trigger):
        shown = f"the class {trigger.__name__}" if isinstance(trigger, type) else repr(trigger)
        raise InvalidInput(f"A trigger is a callable from a request to a bool, such as TokenCount(4000), not {shown}.")
    return trigger


def fires_on_anything(trigger: Trigger, request: Request) -> bool:
    """Whether a trigger fires even on an empty context: then its caller decides, not the context."""
    view = request.view
    empty = View(view.token_sums.estimator, format=view.format, lane=view.lane)
    try:
        return trigger(Request(empty, budget=request.budget, threshold=request.threshold, target=request.target))
    except Exception:
        return False  # it looks at messages


def token_limit(trigger: Trigger, request: Request) -> int | None:
    """Returns the size in tokens from which a trigger fires; None for one that does not look at tokens."""
    limit: Callable[[Request], int | None] | None = getattr(trigger, "token_limit", None)
    return None if limit is None else limit(request)


def _require_triggers(triggers: tuple[Trigger, ...]) -> None:
    if not triggers:
        raise InvalidInput("any_of, all_of and not_ take one or more triggers: callables from a request to a bool.")
    for trigger in triggers:
        require_trigger(trigger)
