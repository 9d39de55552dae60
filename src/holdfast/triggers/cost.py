"""The cost trigger: compacts where the average call is cheapest, by the prices of cache reads, writes and output."""

from __future__ import annotations

from itertools import pairwise
from math import inf, sqrt

from ..context import Request, View
from ..errors import InvalidInput, InvalidLimit
from ..tokens.budget import require_not_negative, require_positive
from ..tokens.catalog import CATALOG, Prices, Ratios, prices_of

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
        stays = request.view.overhead
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
        return min(request.target or self.limit, stays + self.summary_tokens + KEPT_TOKENS)


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
    sums = view.token_sums.cumulative
    gained = view.tokens - view.tokens_with(sums[start] - sums[-1])
    return gained / calls if calls and gained > 0 else None


def _longest_prompt(model: str | None, window: int | None, reserve: int) -> int:
    if window is not None:
        return window - reserve
    entry = CATALOG.find(model) if model else None
    room = CATALOG.window(model) - reserve
    return room if entry is None or entry.input is None else min(room, entry.input)
