"""How sure a mean is: sessions are drawn again and again, since cuts of one session are alike."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

import msgspec

DRAWS = 1_000
SEED = 20_250_929
LEVEL = 0.95
LEAST_SESSIONS = 3
"""Fewer say nothing about others."""
Values = Sequence[float | None]
"""What one session gave; None where nothing was needed."""


class Mean(msgspec.Struct, frozen=True):
    """A mean over all cuts, and where it lies with a chance of 95 %, had other sessions been drawn."""

    value: float
    low: float | None = None
    high: float | None = None


def mean(sessions: Sequence[Values]) -> float | None:
    """Over all cuts: every cut counts the same."""
    said = [value for values in sessions for value in values if value is not None]
    return sum(said) / len(said) if said else None


def interval(sessions: Sequence[Values]) -> Mean | None:
    """The mean and its interval; the same every time."""
    sums = [(sum(v for v in values if v is not None), sum(v is not None for v in values)) for values in sessions]
    sums = [pair for pair in sums if pair[1]]
    if not sums:
        return None
    totals, counts = [total for total, _ in sums], [count for _, count in sums]
    value = sum(totals) / sum(counts)
    if len(sums) < LEAST_SESSIONS:
        return Mean(value)
    drawn = sorted(
        sum(map(totals.__getitem__, draw)) / sum(map(counts.__getitem__, draw)) for draw in _draws(len(sums))
    )
    return Mean(value, _at(drawn, (1 - LEVEL) / 2), _at(drawn, (1 + LEVEL) / 2))


def differences(ones: Sequence[Values], others: Sequence[Values]) -> list[Values]:
    """One less the other, cut by cut: both must be of the same cuts, so that hard sessions weigh on both."""
    return [
        [a - b for a, b in zip(one, other, strict=True) if a is not None and b is not None]
        for one, other in zip(ones, others, strict=True)
    ]


@lru_cache(16)
def _draws(count: int) -> list[list[int]]:
    chance = random.Random(SEED)  # noqa: S311
    return [chance.choices(range(count), k=count) for _ in range(DRAWS)]


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
