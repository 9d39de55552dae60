"""What a compaction cost, what it saves, and when the one has paid for the other (H4)."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import msgspec

from ..catalog.prices import Prices, Ratios
from ..tokens import Usage


class Cost(msgspec.Struct, frozen=True, omit_defaults=True):
    """Recorded with a compaction; money in USD."""

    calls: int = 0
    """Of a model, to write the summary."""
    usage: Usage = Usage()
    """Of those calls together."""
    price: float | None = None
    """Of those calls; None where a price is not known."""
    saved_per_call: int = 0
    """Tokens that each later call need not send."""
    cached: float = 0.0
    """What part of the new prompt the provider's cache still holds: all up to the first change."""
    rewritten: int = 0
    """Tokens of the new prompt that the cache must take in anew."""
    pays_after: int | None = None
    """Later calls after which it has paid for itself: 0 where it was free, None where it never does."""


def cost_of(
    usage: Sequence[Usage],
    prices: Prices | None,
    tokens_before: int,
    tokens_after: int,
    stays_cached: int,
    *,
    summarizer: Prices | None = None,
    calls: int = 0,
) -> Cost:
    """The cost of one compaction, from the usage of its model calls and the sizes before and after.

    `prices` are those of the conversation's model, `summarizer` those of the model that wrote the summary,
    where it is another. `stays_cached` is how many tokens the new prompt has before its first change, `calls`
    how many were made, of which not all may have reported what they used.
    """
    spent = _sum(usage)
    stays = min(max(stays_cached, 0), tokens_after)
    saved, rewritten = max(0, tokens_before - tokens_after), tokens_after - stays
    writer = summarizer or prices
    ratios = _ratios(prices)
    paid = _ratios(writer).weigh(spent) * _dearer(writer, prices) + rewritten * (ratios.write - ratios.read)
    return Cost(
        calls=max(calls, len(usage)),
        usage=spent,
        price=(writer or Prices()).price(spent),
        saved_per_call=saved,
        cached=round(stays / tokens_after, 4) if tokens_after else 0.0,
        rewritten=rewritten,
        pays_after=_calls_until(paid, saved * ratios.read),
    )


def _sum(usage: Sequence[Usage]) -> Usage:
    return Usage(*(sum(getattr(one, name) for one in usage) for name in Usage.__struct_fields__))


def _ratios(prices: Prices | None) -> Ratios:
    return Ratios() if prices is None else prices.ratios


def _dearer(writer: Prices | None, prices: Prices | None) -> float:
    """How many times the conversation's price for input the summary's model takes; 1 where nobody knows."""
    if writer is None or prices is None or writer.input is None or not prices.input:
        return 1.0
    return writer.input / prices.input


def _calls_until(paid: float, saved: float) -> int | None:
    if paid <= 0:
        return 0
    return ceil(paid / saved) if saved > 0 else None
