"""The trigger that compacts where it is cheapest (H4).

A long context is paid for again with every call, if only at the price of cache reads. A compaction is paid for
once: the summary call reads the context and writes the summary, and what it leaves must be written to the
cache anew. So it should come neither often nor late, and the best size in between can be worked out.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf, sqrt

from ..budget import not_negative, positive
from ..catalog import CATALOG
from ..catalog.prices import Prices, Ratios, prices_of
from ..errors import InvalidInput, InvalidLimit
from ..view import Request, View

RESERVE = 16_384
"""Left free of the window for the reply, as pi does (P2)."""
SUMMARY_TOKENS = 4_000
"""About what agents' summaries of long sessions have."""
KEPT = 20_000
"""What usually stays verbatim."""
RECENT = 200
"""So many of the newest messages tell how fast the context grows: the same work at any length (H5)."""


class CostTrigger:
    """Fires at the size at which compacting makes the average call cheapest, never later than the window allows.

    Without a known model the usual ratios of prices hold, and a cautious window. `target` is what the first
    compaction is expected to leave; the later ones are expected to leave what the last one did. A strategy
    that asks no model has `summary_tokens=0`.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        window: int | None = None,
        reserve: int = RESERVE,
        target: int | None = None,
        summary_tokens: int = SUMMARY_TOKENS,
        prices: Prices | None = None,
    ) -> None:
        if model is not None and not isinstance(model, str):
            raise InvalidInput(f"model is a model's id, not {model!r}: a window is given as window=.")
        if window is not None:
            positive("window", window)
        not_negative("reserve", reserve)
        not_negative("summary_tokens", summary_tokens)
        self.limit = _longest_prompt(model, window, reserve)
        if self.limit < 1:
            raise InvalidLimit(f"reserve={reserve} leaves nothing of the window: make it smaller.")
        if target is not None:
            positive("target", target)
            if target >= self.limit:
                raise InvalidLimit(
                    f"target={target} is not below {self.limit}, where the window ends: make it smaller."
                )
        self.target = target
        self.summary_tokens = summary_tokens
        known = prices or prices_of(model)
        self.ratios = Ratios() if known is None else known.ratios

    def __call__(self, request: Request) -> bool:
        return request.tokens > self.threshold(request)

    def threshold(self, request: Request) -> int:
        """The size above which it fires, as things stand; before the first reply, what the window allows."""
        grows = growth(request.view)
        if grows is None:
            return self.limit
        stays = _fixed(request.view)
        after = self._after(request, stays)
        best = cheapest_size(grows, after, min(stays, after), self.summary_tokens, self.ratios)
        return int(min(best, self.limit))

    def _after(self, request: Request, stays: int) -> int:
        """What a compaction will leave: as much as the last one, or what was asked for, or what usually stays."""
        if done := request.view.checkpoint.tokens_after:
            return done
        if self.target is not None:
            return self.target
        return min(request.target or self.limit // 2, stays + self.summary_tokens + KEPT)


def cheapest_size(growth: float, after: int, stays: int, summary_tokens: int, ratios: Ratios) -> float:
    """The size at which to compact, so that a call costs least on average.

    From `after` tokens, of which `stays` remain cached, the context grows by `growth` a call. Reading what has
    come in since costs more with every call, and what a compaction costs is spread over ever more of them. The
    sum is least where what has come in, squared, is twice that cost times the growth, by the price of reading.
    """
    if ratios.read <= 0:
        return inf
    asking = ratios.read * after + ratios.output * summary_tokens if summary_tokens else 0.0
    compaction = asking + ratios.write * (after - stays)
    return after + sqrt(2 * growth * compaction / ratios.read)


def growth(view: View) -> float | None:
    """Tokens that the context gains with each call of the model; None where there was none yet."""
    start = max(view.leading, len(view.messages) - RECENT)
    roles = ["", *(message.role for message in view.messages[start:])]
    calls = sum(role == "assistant" != before for before, role in pairwise(roles))
    units, sums = view.units(), view.gauge.sums
    gained = view.tokens_of(units) - view.tokens_of(units - (sums[-1] - sums[start]))
    return gained / calls if calls and gained > 0 else None


def _fixed(view: View) -> int:
    """The system prompt and the tools: a compaction leaves them where they are, and cached."""
    gauge = view.gauge
    shown = sum(size for item, size in zip(view.head, gauge.head, strict=True) if item.kind == "system")
    return max(0, view.tokens_of(gauge.fixed + shown + gauge.sums[view.leading]))


def _longest_prompt(model: str | None, window: int | None, reserve: int) -> int:
    if window is not None:
        return window - reserve
    entry = CATALOG.find(model) if model else None
    room = CATALOG.window(model) - reserve
    return room if entry is None or entry.input is None else min(room, entry.input)
