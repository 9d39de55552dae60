"""What past replies taught about this session's tokens (P3).

A provider says how many tokens a whole request and its reply had. Two such figures and the units
between them give tokens per unit; what units do not explain (a system prompt that was never shown to
us, tool definitions) is the overhead. Both are learned, so that a guess is only made for what came
after the last reply.
"""

from __future__ import annotations

import msgspec

from .usage import Usage

MEMORY = 0.99
"""How much of the older evidence stays when a new reply comes in."""
TRUST = 1_000.0
"""A unit is taken for a token until about this many units have shown otherwise."""
LOWEST, HIGHEST = 0.4, 4.0
"""Between two replies a unit counts for no less and no more: the rest is not the text's doing."""
LARGEST = 20_000_000
"""No model takes more tokens: such a report is a mistake."""


class Calibration(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens per unit and overhead, learned reply by reply; a value, so that it can be carried."""

    tokens_seen: float = TRUST
    units_seen: float = TRUST
    base_tokens: int = 0
    base_units: int = 0
    """A reply to a small context, where the overhead shows best: the first since a compaction."""
    replies: int = 0
    known_tokens: int | None = None
    known_units: int = 0

    @property
    def ratio(self) -> float:
        """Tokens per unit."""
        return self.tokens_seen / self.units_seen

    @property
    def overhead(self) -> float:
        """Tokens that no unit stands for."""
        return max(0.0, self.base_tokens - self.ratio * self.base_units)

    def learn(self, units: int, usage: Usage) -> Calibration:
        """Take in a good reply after which the context had this many units."""
        total = usage.total
        if not 0 < total <= LARGEST:
            return self
        learned = msgspec.structs.replace(self, replies=self.replies + 1, known_tokens=total, known_units=units)
        if self.known_tokens is None:
            small = not self.replies or 2 * units <= self.known_units
            return msgspec.structs.replace(learned, base_tokens=total, base_units=units) if small else learned
        more, gained = units - self.known_units, total - self.known_tokens
        if more <= 0 or gained <= 0:  # something was taken out: this says nothing of what was put in
            return learned
        return msgspec.structs.replace(
            learned,
            tokens_seen=self.tokens_seen * MEMORY + min(max(gained, LOWEST * more), HIGHEST * more),
            units_seen=self.units_seen * MEMORY + more,
        )

    def forget_size(self) -> Calibration:
        """A new epoch: what was reported for the old context says nothing about the size of the new."""
        return msgspec.structs.replace(self, known_tokens=None)

    def tokens(self, units: int) -> int:
        """Known tokens plus an estimate of what came after; an estimate of all where nothing is known."""
        if self.known_tokens is not None:
            return max(0, round(self.known_tokens + self.ratio * (units - self.known_units)))
        return round(self.overhead + self.ratio * units)
