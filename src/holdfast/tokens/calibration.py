"""What past replies taught about this session's tokens (P3).

A provider says how many tokens a whole request and its reply had. Two such figures and the units
between them give tokens per unit; what units do not explain (a system prompt that was never shown to
us, tool definitions) is the overhead. Both are learned, so that a guess is only made for what came
after the last reply.
"""

from __future__ import annotations

import msgspec

MEMORY = 0.9
"""How much of the older evidence stays when a new reply comes in."""
LOWEST, HIGHEST = 0.4, 4.0


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens that a provider reported for one good reply."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        """The size of the context after the reply (P3)."""
        return self.input + self.output + self.cache_read + self.cache_write


class Calibration(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens per unit and overhead, learned reply by reply; a value, so that it can be carried."""

    tokens_seen: float = 0.0
    units_seen: float = 0.0
    overhead: float = 0.0
    replies: int = 0
    known_tokens: int | None = None
    known_units: int = 0

    @property
    def ratio(self) -> float:
        if self.units_seen <= 0:
            return 1.0
        return min(max(self.tokens_seen / self.units_seen, LOWEST), HIGHEST)

    def learn(self, units: int, usage: Usage) -> Calibration:
        """Take in a good reply after which the context had this many units."""
        total = usage.total
        if total <= 0:
            return self
        tokens_seen, units_seen = self.tokens_seen, self.units_seen
        if self.known_tokens is not None and units > self.known_units and total > self.known_tokens:
            tokens_seen = tokens_seen * MEMORY + (total - self.known_tokens)
            units_seen = units_seen * MEMORY + (units - self.known_units)
        learned = Calibration(tokens_seen, units_seen, 0.0, self.replies + 1, total, units)
        return msgspec.structs.replace(learned, overhead=max(0.0, total - learned.ratio * units))

    def forget_size(self) -> Calibration:
        """A new epoch: what was reported for the old context says nothing about the size of the new."""
        return msgspec.structs.replace(self, known_tokens=None, known_units=0)

    def tokens(self, units: int) -> int:
        """Known tokens plus an estimate of what came after; an estimate of all where nothing is known."""
        if self.known_tokens is not None:
            return max(0, round(self.known_tokens + self.ratio * (units - self.known_units)))
        return max(0, round(self.overhead + self.ratio * units))
