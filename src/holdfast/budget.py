"""Window arithmetic: how large a context may grow, as value objects with each document's defaults."""

from __future__ import annotations

from math import floor
from typing import Protocol

import msgspec

from .errors import InvalidLimit


class Threshold(Protocol):
    """A number of tokens at which to act, given the window."""

    def tokens(self, window: int) -> int: ...


class Tokens(msgspec.Struct, frozen=True):
    """An absolute number of tokens (P21)."""

    count: int

    def __post_init__(self) -> None:
        positive("count", self.count)

    def tokens(self, window: int) -> int:
        return min(self.count, window) if window > 0 else self.count


class Fraction(msgspec.Struct, frozen=True):
    """A part of the window, or of what is left of it after a reserve for the reply (P24)."""

    part: float
    reserve: int = 0

    def __post_init__(self) -> None:
        fraction("part", self.part)
        not_negative("reserve", self.reserve)

    def tokens(self, window: int) -> int:
        return max(1, floor((window - self.reserve) * self.part))


class BelowWindow(msgspec.Struct, frozen=True):
    """So many tokens below the window (P2: 16,384)."""

    reserve: int = 16_384

    def __post_init__(self) -> None:
        not_negative("reserve", self.reserve)

    def tokens(self, window: int) -> int:
        return max(1, window - self.reserve)


class LayerBudget(msgspec.Struct, frozen=True):
    """L2: a percentage of what reserves leave of the model's limit; 93,600 with the defaults.

    Where they leave less than half of it, half of it is the threshold: else a small window would be over at each step.
    """

    limit: int = 128_000
    system_reserve: int = 2_000
    output_reserve: int = 4_000
    safety: int = 5_000
    percent: float = 0.80
    keep_last: int = 10

    def __post_init__(self) -> None:
        positive("limit", self.limit)
        for name in ("system_reserve", "output_reserve", "safety", "keep_last"):
            not_negative(name, getattr(self, name))
        fraction("percent", self.percent)

    @property
    def threshold(self) -> int:
        left = self.limit - self.system_reserve - self.output_reserve - self.safety
        return max(1, floor(left * self.percent if 2 * left >= self.limit else self.limit * min(0.5, self.percent)))

    def tokens(self, window: int) -> int:
        return msgspec.structs.replace(self, limit=window).threshold if window > 0 else self.threshold


class WorkstreamBudget(msgspec.Struct, frozen=True):
    """W1: the smaller of 70 % of the window and what reserves leave, at least half of it; 140,000 with the defaults."""

    size: int = 200_000
    output_reserve: int = 32_000
    safety: int = 8_000
    part: float = 0.7

    def __post_init__(self) -> None:
        positive("size", self.size)
        not_negative("output_reserve", self.output_reserve)
        not_negative("safety", self.safety)
        fraction("part", self.part)

    @property
    def threshold(self) -> int:
        left = self.size - self.output_reserve - self.safety
        return max(1, floor(min(self.size * self.part, max(left, self.size / 2))))

    def tokens(self, window: int) -> int:
        return msgspec.structs.replace(self, size=window).threshold if window > 0 else self.threshold


class Utilization(msgspec.Struct, frozen=True):
    """G1: how full a window is: messages / (limit - system - output)."""

    system_tokens: int
    message_tokens: int
    limit: int = 200_000
    max_output: int = 16_384

    def __post_init__(self) -> None:
        positive("limit", self.limit)
        not_negative("max_output", self.max_output)

    @property
    def available(self) -> int:
        """What is left; negative where the window is overfull."""
        return self.limit - self.system_tokens - self.message_tokens - self.max_output

    @property
    def value(self) -> float:
        room = self.limit - self.system_tokens - self.max_output
        return self.message_tokens / room if room > 0 else float("inf")

    def over(self, part: float = 0.80) -> bool:
        """G2: above four fifths it is time to compact."""
        return self.value > part


EXTENDED_LIMIT = 1_000_000
"""G1: the limit of models with a long window, where a flag turns it on."""


def positive(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidLimit(f"{name} must be a whole number of at least 1, not {value!r}.")


def not_negative(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidLimit(f"{name} must be a whole number of at least 0, not {value!r}.")


def fraction(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise InvalidLimit(f"{name} must be a number above 0 and at most 1, not {value!r}.")
