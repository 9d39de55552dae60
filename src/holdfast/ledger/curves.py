"""What a feature adds to a score where it does not simply grow: a curve, learned and given by its points."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, Self


class Curve(NamedTuple):
    """What a feature adds at each of its values: straight between the points, level beyond them."""

    ends: tuple[float, ...]
    """Where one stretch ends and the next begins."""
    starts: tuple[float, ...]
    slopes: tuple[float, ...]
    """Of each stretch, its value at nought and how steep it is."""

    @classmethod
    def of(cls, learned: float | Sequence[tuple[float, float]]) -> Self:
        if not isinstance(learned, Sequence):
            return cls((), (0.0,), (learned,))
        rises = [(high - low) / (right - left) for (left, low), (right, high) in pairwise(learned)]
        starts = [low - left * rise for (left, low), rise in zip(learned, rises, strict=False)]
        return cls(tuple(x for x, _ in learned), (learned[0][1], *starts, learned[-1][1]), (0.0, *rises, 0.0))


def along(curves: Sequence[Curve], features: Iterable[float]) -> float:
    """All that the features of one thing add together; nought adds nothing, and most are nought."""
    total = 0.0
    for (ends, starts, slopes), value in zip(curves, features, strict=True):
        if value:
            stretch = bisect(ends, value) if ends else 0
            total += starts[stretch] + slopes[stretch] * value
    return total
