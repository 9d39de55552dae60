"""Budgets: thresholds computed from a model's context window, with the defaults of known systems."""

from __future__ import annotations

from math import floor
from numbers import Integral
from typing import Protocol

import msgspec

from ..errors import InvalidLimit

__all__ = [
    "DEFAULT_RESERVE",
    "BelowWindow",
    "CodexLimit",
    "Fraction",
    "LayerBudget",
    "Reserve",
    "RoomFraction",
    "Threshold",
    "Tokens",
    "Utilization",
    "WorkstreamBudget",
]
DEFAULT_RESERVE = 16_384
"""Tokens reserved for the reply unless a preset or a setting says otherwise."""
EXTENDED_LIMIT = 1_000_000
"""Limit of models with a long window that is enabled by a flag."""


def require_positive(name: str, value: int) -> int:
    """Returns the number as an int: those of numpy count, too."""
    return _require_whole(name, value, 1)


def require_not_negative(name: str, value: int) -> int:
    return _require_whole(name, value, 0)


def _require_whole(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InvalidLimit(f"{name} must be a whole number of at least {least}, not {value!r}.")
    return int(value)


def require_fraction(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise InvalidLimit(f"{name} must be a number above 0 and at most 1, not {value!r}.")


class Threshold(Protocol):
    """A number of tokens at which to compact, given the window and what system prompt and tools take of it."""

    @property
    def contains_overhead(self) -> bool:
        """Whether the threshold moves with system prompt and tools by itself."""
        ...

    def tokens(self, window: int, overhead: int = 0) -> int:
        """Returns the threshold for a window of this size."""
        ...


class _FixedThreshold:
    """Base of thresholds that do not look at system prompt and tools."""

    __slots__ = ()
    contains_overhead = False


class Reserve(msgspec.Struct, frozen=True):
    """Tokens kept free for the reply; in a small window at most a share of it."""

    count: int = 0
    at_most: float = 1.0

    def __post_init__(self) -> None:
        require_not_negative("reserve", self.count)
        require_fraction("at_most", self.at_most)

    def of(self, window: int) -> int:
        """Returns the reserve in a window of this size."""
        return min(self.count, floor(window * self.at_most))


class Tokens(_FixedThreshold, msgspec.Struct, frozen=True):
    """An absolute number of tokens."""

    count: int

    def __post_init__(self) -> None:
        require_positive("count", self.count)

    def tokens(self, window: int, overhead: int = 0) -> int:
        return min(self.count, window) if window > 0 else self.count


class Fraction(_FixedThreshold, msgspec.Struct, frozen=True):
    """A fraction of the window, or of the window minus a reserve for the reply."""

    part: float
    reserve: int = 0
    at_most: float = 1.0
    """Largest share of the window that the reserve takes."""

    def __post_init__(self) -> None:
        require_fraction("part", self.part)
        Reserve(self.reserve, self.at_most)

    def tokens(self, window: int, overhead: int = 0) -> int:
        return max(1, floor((window - Reserve(self.reserve, self.at_most).of(window)) * self.part))


class BelowWindow(_FixedThreshold, msgspec.Struct, frozen=True):
    """The window minus a reserve, 16,384 tokens by default."""

    reserve: int = DEFAULT_RESERVE
    at_most: float = 1.0
    """Largest share of the window that the reserve takes."""

    def __post_init__(self) -> None:
        Reserve(self.reserve, self.at_most)

    def tokens(self, window: int, overhead: int = 0) -> int:
        return max(1, window - Reserve(self.reserve, self.at_most).of(window))


class CodexLimit(_FixedThreshold, msgspec.Struct, frozen=True):
    """An absolute limit, but at most a fraction of the window.

    Without a limit, Codex's own for the window: 180,000 tokens, 244,000 from 272,000 on.
    """

    limit: int | None = None
    part: float = 0.95

    def __post_init__(self) -> None:
        if self.limit is not None:
            require_positive("limit", self.limit)
        require_fraction("percent", self.part)

    def tokens(self, window: int, overhead: int = 0) -> int:
        limit = self.limit or (244_000 if window >= 272_000 else 180_000)
        return min(limit, Fraction(self.part).tokens(window))


class RoomFraction(msgspec.Struct, frozen=True):
    """A fraction of what system prompt, tools and reply leave of the window, on top of system prompt and tools."""

    part: float
    reserve: int = 0
    at_most: float = 1.0
    """Largest share of the window that the reserve takes."""

    def __post_init__(self) -> None:
        require_fraction("part", self.part)
        Reserve(self.reserve, self.at_most)

    @property
    def contains_overhead(self) -> bool:
        return True

    def tokens(self, window: int, overhead: int = 0) -> int:
        return max(1, overhead + int(self.part * (window - overhead - Reserve(self.reserve, self.at_most).of(window))))


class LayerBudget(_FixedThreshold, msgspec.Struct, frozen=True):
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

    def tokens(self, window: int, overhead: int = 0) -> int:
        return msgspec.structs.replace(self, limit=window).threshold if window > 0 else self.threshold


class WorkstreamBudget(_FixedThreshold, msgspec.Struct, frozen=True):
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

    def tokens(self, window: int, overhead: int = 0) -> int:
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
