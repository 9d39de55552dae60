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
from math import exp
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
    """Hyperbolic decay: 1 at age 0, 1/2 at `scale`."""
    return 1 / (1 + age / scale)


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


def sum_curves(curves: Sequence[Curve], features: Iterable[float]) -> float:
    """Sums the curves at the given features; a zero feature adds nothing, and most are zero."""
    total = 0.0
    for (ends, starts, slopes), value in zip(curves, features, strict=True):
        if value:
            segment = bisect(ends, value) if ends else 0
            total += starts[segment] + slopes[segment] * value
    return total
