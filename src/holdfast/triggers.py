"""Triggers decide when to compact: any callable from a request to a bool."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from math import inf, sqrt
from typing import TYPE_CHECKING

import msgspec

from .context import Request, View
from .errors import InvalidInput, InvalidLimit
from .messages import Media, Message, ToolResult
from .tokens import Estimator, estimator_for, part_text
from .tokens.budget import (
    BelowWindow,
    Fraction,
    LayerBudget,
    Threshold,
    Utilization,
    WorkstreamBudget,
    require_fraction,
    require_not_negative,
    require_positive,
)
from .tokens.catalog import CATALOG, Prices, Ratios, prices_of

if TYPE_CHECKING:
    from .types import Trigger


__all__ = [
    "ByteCount",
    "CostTrigger",
    "EventCount",
    "ImageCount",
    "LayerTrigger",
    "OverBudget",
    "OverUtilization",
    "TokenCount",
    "TurnCount",
    "WorkstreamTrigger",
    "all_of",
    "always",
    "any_of",
    "never",
    "not_",
    "pi_trigger",
]


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
        if isinstance(self.threshold, Fraction | BelowWindow):
            require_positive("window", self.window)

    def __call__(self, request: Request) -> bool:
        limit = self.token_limit(request)
        return limit is not None and request.tokens > limit

    def token_limit(self, request: Request) -> int | None:
        """Returns the threshold in tokens, if there is one."""
        return request.budget if self.threshold is None else self.threshold.tokens(self.window)


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


def token_limit(trigger: Trigger, request: Request) -> int | None:
    """Returns the size in tokens from which a trigger fires; None for one that does not look at tokens."""
    limit: Callable[[Request], int | None] | None = getattr(trigger, "token_limit", None)
    return None if limit is None else limit(request)


def _require_triggers(triggers: tuple[Trigger, ...]) -> None:
    if not triggers or not all(callable(trigger) for trigger in triggers):
        raise InvalidInput("any_of, all_of and not_ take one or more triggers: callables from a request to a bool.")


RESERVE_TOKENS = 16_384
"""Part of the window left free for the reply."""
SUMMARY_TOKENS = 4_000
"""Typical size of an agent's summary of a long session."""
KEPT_TOKENS = 20_000
"""Typical size of the verbatim tail."""
RECENT_MESSAGES = 200
"""Number of newest messages that growth is measured on: constant work at any length."""


class CostTrigger:
    """Fires at the context size that minimizes the average cost of a call, never beyond the window.

    A long context is paid for with every call, at the price of cache reads; a compaction is paid for once, by the
    summary call and by rewriting the cache. An unknown model gets typical price ratios and a cautious window. `target`
    is the expected size after the first compaction; later ones are expected to leave as much as the last one did. Use
    `summary_tokens=0` for a strategy that calls no model.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        window: int | None = None,
        reserve: int = RESERVE_TOKENS,
        target: int | None = None,
        summary_tokens: int = SUMMARY_TOKENS,
        prices: Prices | None = None,
    ) -> None:
        if model is not None and not isinstance(model, str):
            raise InvalidInput(f"model must be a model id, not {model!r}: pass a window as window=.")
        if window is not None:
            require_positive("window", window)
        require_not_negative("reserve", reserve)
        require_not_negative("summary_tokens", summary_tokens)
        self.limit = _longest_prompt(model, window, reserve)
        if self.limit < 1:
            raise InvalidLimit(f"reserve={reserve} leaves nothing of the window: use a smaller reserve.")
        if target is not None:
            require_positive("target", target)
            if target >= self.limit:
                raise InvalidLimit(
                    f"target={target} is not below {self.limit}, the limit of the window: use a smaller target."
                )
        self.target = target
        self.summary_tokens = summary_tokens
        known = prices or prices_of(model)
        self.ratios = Ratios() if known is None else known.ratios

    def __call__(self, request: Request) -> bool:
        return request.tokens > self.threshold(request)

    def threshold(self, request: Request) -> int:
        """Returns the size above which it fires; before the first reply, the limit of the window."""
        grows = growth_per_call(request.view)
        if grows is None:
            return self.limit
        stays = _fixed_tokens(request.view)
        after = self._after(request, stays)
        best = cheapest_size(grows, after, min(stays, after), self.summary_tokens, self.ratios)
        return int(min(best, self.limit))

    token_limit = threshold

    def _after(self, request: Request, stays: int) -> int:
        """Returns the expected size after a compaction: that of the last one, else the target, else a typical one."""
        if done := request.view.checkpoint.tokens_after:
            return done
        if self.target is not None:
            return self.target
        return min(request.target or self.limit // 2, stays + self.summary_tokens + KEPT_TOKENS)


def cheapest_size(growth: float, after: int, stays: int, summary_tokens: int, ratios: Ratios) -> float:
    """Returns the context size at which to compact so that the average call costs least.

    The context grows from `after` tokens, of which `stays` remain cached, by `growth` tokens a call. With g the tokens
    added, reading them costs read * g / 2 a call on average, and the compaction cost C is spread over g / growth
    calls. The sum is least at g = sqrt(2 * growth * C / read).
    """
    if ratios.read <= 0:
        return inf
    summary_cost = ratios.read * after + ratios.output * summary_tokens if summary_tokens else 0.0
    compaction = summary_cost + ratios.write * (after - stays)
    return after + sqrt(2 * growth * compaction / ratios.read)


def growth_per_call(view: View) -> float | None:
    """Returns the tokens that the context gains per model call; None before the first call."""
    start = max(view.leading_system_count, len(view.messages) - RECENT_MESSAGES)
    roles = ["", *(message.role for message in view.messages[start:])]
    calls = sum(role == "assistant" != before for before, role in pairwise(roles))
    units, sums = view.units(), view.token_sums.cumulative
    gained = view.tokens_of(units) - view.tokens_of(units - (sums[-1] - sums[start]))
    return gained / calls if calls and gained > 0 else None


def _fixed_tokens(view: View) -> int:
    """Returns the tokens of system prompt and tools, which stay cached across a compaction."""
    sums = view.token_sums
    shown = sum(size for item, size in zip(view.head, sums.head, strict=True) if item.kind == "system")
    return max(0, view.tokens_of(sums.overhead + shown + sums.cumulative[view.leading_system_count]))


def _longest_prompt(model: str | None, window: int | None, reserve: int) -> int:
    if window is not None:
        return window - reserve
    entry = CATALOG.find(model) if model else None
    room = CATALOG.window(model) - reserve
    return room if entry is None or entry.input is None else min(room, entry.input)
