"""Budgets: thresholds computed from a model's context window, with the defaults of known systems."""

from __future__ import annotations

from math import floor
from typing import Protocol

import msgspec

from ..errors import InvalidLimit

__all__ = [
    "DEFAULT_RESERVE",
    "BelowWindow",
    "Fraction",
    "LayerBudget",
    "Threshold",
    "Tokens",
    "Utilization",
    "WorkstreamBudget",
]
DEFAULT_RESERVE = 16_384
"""Tokens reserved for the reply unless a preset or a setting says otherwise."""


class Threshold(Protocol):
    """A number of tokens at which to compact, given the window."""

    def tokens(self, window: int) -> int:
        """Returns the threshold for a window of this size."""
        ...


class Tokens(msgspec.Struct, frozen=True):
    """An absolute number of tokens."""

    count: int

    def __post_init__(self) -> None:
        require_positive("count", self.count)

    def tokens(self, window: int) -> int:
        return min(self.count, window) if window > 0 else self.count


class Fraction(msgspec.Struct, frozen=True):
    """A fraction of the window, or of the window minus a reserve for the reply."""

    part: float
    reserve: int = 0

    def __post_init__(self) -> None:
        require_fraction("part", self.part)
        require_not_negative("reserve", self.reserve)

    def tokens(self, window: int) -> int:
        return max(1, floor((window - self.reserve) * self.part))


class BelowWindow(msgspec.Struct, frozen=True):
    """The window minus a reserve, 16,384 tokens by default."""

    reserve: int = 16_384

    def __post_init__(self) -> None:
        require_not_negative("reserve", self.reserve)

    def tokens(self, window: int) -> int:
        return max(1, window - self.reserve)


class LayerBudget(msgspec.Struct, frozen=True):
    """A percentage of the model's limit minus reserves; 93,600 with the defaults.

    If the reserves leave less than half the limit, the threshold is half the limit (or `percent` of it if
    that is less): else a small window would be over the threshold at each step.
    """

    limit: int = 128_000
    system_reserve: int = 2_000
    output_reserve: int = 4_000
    safety: int = 5_000
    percent: float = 0.80
    keep_last: int = 10

    def __post_init__(self) -> None:
        require_positive("limit", self.limit)
        for name in ("system_reserve", "output_reserve", "safety", "keep_last"):
            require_not_negative(name, getattr(self, name))
        require_fraction("percent", self.percent)

    @property
    def threshold(self) -> int:
        """Tokens at which to compact."""
        left = self.limit - self.system_reserve - self.output_reserve - self.safety
        return max(1, floor(left * self.percent if 2 * left >= self.limit else self.limit * min(0.5, self.percent)))

    def tokens(self, window: int) -> int:
        return msgspec.structs.replace(self, limit=window).threshold if window > 0 else self.threshold


class WorkstreamBudget(msgspec.Struct, frozen=True):
    """The smaller of 70 % of the window and the window minus reserves (at least half); 140,000 with the defaults."""

    size: int = 200_000
    output_reserve: int = 32_000
    safety: int = 8_000
    part: float = 0.7

    def __post_init__(self) -> None:
        require_positive("size", self.size)
        require_not_negative("output_reserve", self.output_reserve)
        require_not_negative("safety", self.safety)
        require_fraction("part", self.part)

    @property
    def threshold(self) -> int:
        """Tokens at which to compact."""
        left = self.size - self.output_reserve - self.safety
        return max(1, floor(min(self.size * self.part, max(left, self.size / 2))))

    def tokens(self, window: int) -> int:
        return msgspec.structs.replace(self, size=window).threshold if window > 0 else self.threshold


class Utilization(msgspec.Struct, frozen=True):
    """Utilization of a window: messages / (limit - system - output)."""

    system_tokens: int
    message_tokens: int
    limit: int = 200_000
    max_output: int = 16_384

    def __post_init__(self) -> None:
        require_positive("limit", self.limit)
        require_not_negative("max_output", self.max_output)

    @property
    def available(self) -> int:
        """Tokens left; negative if the window is exceeded."""
        return self.limit - self.system_tokens - self.message_tokens - self.max_output

    @property
    def value(self) -> float:
        """The used fraction of the window; above 1 if it is exceeded."""
        room = self.limit - self.system_tokens - self.max_output
        return self.message_tokens / room if room > 0 else float("inf")

    def over(self, part: float = 0.80) -> bool:
        """Whether the utilization exceeds this fraction, four fifths by default."""
        return self.value > part


EXTENDED_LIMIT = 1_000_000
"""Limit of models with a long window that is enabled by a flag."""


def require_positive(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidLimit(f"{name} must be a whole number of at least 1, not {value!r}.")


def require_not_negative(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidLimit(f"{name} must be a whole number of at least 0, not {value!r}.")


def require_fraction(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise InvalidLimit(f"{name} must be a number above 0 and at most 1, not {value!r}.")
