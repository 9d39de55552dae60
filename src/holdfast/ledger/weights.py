"""The learned weights and how they are evaluated.

`weights.toml` holds a weight for each feature of four small logistic models, or a curve given by its points.
"""

from __future__ import annotations

import hashlib
import tomllib
from bisect import bisect
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import exp, inf
from typing import Any, NamedTuple, Self


@cache
def load_weights() -> dict[str, dict[str, Any]]:
    """Reads `weights.toml`."""
    return tomllib.loads(files(__package__).joinpath("weights.toml").read_text(encoding="utf-8"))


@cache
def weights_digest() -> str:
    """Returns a short digest of the weights: pages scored with others can differ."""
    return hashlib.sha256(files(__package__).joinpath("weights.toml").read_bytes()).hexdigest()[:16]


def decay(age: float, scale: float) -> float:
    """Hyperbolic decay: 1 at age 0, 1/2 at `scale`; 1 for a note read back that is newer than the clock."""
    return 1 / (1 + age / scale) if age > 0 else 1.0


def logistic(total: float) -> float:
    return 1 / (1 + exp(-total)) if total > -60 else 0.0


class Curve(NamedTuple):
    """Piecewise linear function of a feature, constant beyond its end points."""

    ends: tuple[float, ...]
    """Boundaries between the segments."""
    starts: tuple[float, ...]
    slopes: tuple[float, ...]
    """Intercept and slope of each segment."""

    @classmethod
    def of(cls, learned: float | Sequence[tuple[float, float]]) -> Self:
        if not isinstance(learned, Sequence):
            return cls((), (0.0,), (learned,))
        rises = [(high - low) / (right - left) for (left, low), (right, high) in pairwise(learned)]
        starts = [low - left * rise for (left, low), rise in zip(learned, rises, strict=False)]
        return cls(tuple(x for x, _ in learned), (learned[0][1], *starts, learned[-1][1]), (0.0, *rises, 0.0))

    def segment_at(self, value: float) -> tuple[float, float]:
        """Returns intercept and slope of the segment that holds this value."""
        segment = bisect(self.ends, value)
        return self.starts[segment], self.slopes[segment]


class CurvePair(NamedTuple):
    """Two models' curves of one feature, evaluated together in two thirds of the time."""

    ends: tuple[float, ...]
    segments: tuple[tuple[float, float, float, float], ...]
    """Intercept and slope of the first curve, then of the second."""

    @classmethod
    def of(cls, first: Curve, second: Curve) -> Self:
        ends = tuple(sorted({*first.ends, *second.ends}))
        return cls(ends, tuple((*first.segment_at(x), *second.segment_at(x)) for x in (-inf, *ends)))


def sum_curves(pairs: Sequence[CurvePair], features: Iterable[float]) -> tuple[float, float]:
    """Sums both models' curves at the given features; a zero feature adds nothing, and most are zero."""
    first = second = 0.0
    for (ends, segments), value in zip(pairs, features, strict=True):
        if value:
            start, slope, other_start, other_slope = segments[bisect(ends, value)]
            first += start + slope * value
            second += other_start + other_slope * value
    return first, second
