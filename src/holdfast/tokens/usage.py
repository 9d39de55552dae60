"""Token usage as providers report it, and the calibration of estimates learned from it.

A provider reports the tokens of a whole request and its reply. Two reports and the units between them
give tokens per unit; tokens that units do not explain (a system prompt or tool definitions not passed to
Holdfast) are the overhead. Only what came after the last reply is then estimated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import InvalidInput
from ..messages.json_text import decodable

_FIELD_NAMES = {
    "input": ("input", "input_tokens", "prompt_tokens", "prompt_token_count"),
    "output": ("output", "output_tokens", "completion_tokens", "candidates_token_count"),
    "cache_read": ("cache_read", "cache_read_input_tokens"),
    "cache_write": ("cache_write", "cache_creation_input_tokens"),
}
"""Names by Holdfast, Anthropic and OpenAI Responses, OpenAI Chat, Gemini. Only Anthropic reports cache separately."""


@decodable
class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens that a provider reported for one successful reply."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        """Size of the context after the reply."""
        return self.input + self.output + self.cache_read + self.cache_write


class ReportedUsage(msgspec.Struct, frozen=True):
    """Size that a provider reported for the first messages of a list, and how many it covers."""

    tokens: int
    covers: int


def read_usage(given: Any) -> Usage:
    """Reads usage from a Usage, a provider's JSON, or an SDK object."""
    if isinstance(given, Usage):
        return given
    reported = given.model_dump() if hasattr(given, "model_dump") else given
    if not isinstance(reported, Mapping):
        raise InvalidInput(f"usage= takes the token counts that a provider reported, not {type(given).__name__}.")
    found = {_snake(str(key)): value for key, value in reported.items()}
    figures = {
        field: next((found[name] for name in names if name in found), None) for field, names in _FIELD_NAMES.items()
    }
    if figures["input"] is None and figures["output"] is None:
        raise InvalidInput(
            f"usage= takes token counts (input, output, cache_read, cache_write, or a provider's own names), "
            f"not {', '.join(map(str, reported)) or 'nothing'}."
        )
    return Usage(**{field: _count(field, value) for field, value in figures.items()})


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key).lower()


def _count(name: str, value: Any) -> int:
    """Validates a number of tokens; null counts as 0."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise InvalidInput(f"usage= has {value!r} for {name}: it takes numbers of tokens, 0 or more.")
    return int(value)


DECAY = 0.99
"""Weight of older evidence after each new reply."""
PRIOR_UNITS = 1_000.0
"""Weight in units of the prior assumption of one token per unit."""
MIN_RATIO, MAX_RATIO = 0.4, 4.0
"""Bounds of tokens per unit between two replies: anything beyond has another cause than the text."""
MAX_TOKENS = 20_000_000
"""Larger reports are ignored as errors: no model accepts so many tokens."""
MIN_SHARE = 0.2
"""Smaller reports, as a share of the units, are ignored: they are of a part of the prompt, as what was not cached."""
MAX_REPEATS = 2
"""How often a report may be repeated while the text grows; then the number is taken for a constant and ignored."""


class Calibration(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens per unit and overhead, learned from each reply; an immutable value that checkpoints carry."""

    tokens_seen: float = PRIOR_UNITS
    units_seen: float = PRIOR_UNITS
    base_tokens: int = 0
    base_units: int = 0
    """From a reply to a small context, which shows the overhead best: the first since a compaction."""
    replies: int = 0
    known_tokens: int | None = None
    known_units: int = 0
    repeats: int = 0
    """How often the last report was repeated while the text grew."""
    constant: int | None = None
    """A number that is reported whatever the text."""

    @property
    def ratio(self) -> float:
        """Tokens per unit."""
        return self.tokens_seen / self.units_seen

    @property
    def overhead(self) -> float:
        """Tokens that units do not explain."""
        return max(0.0, self.base_tokens - self.ratio * self.base_units)

    def why_implausible(self, units: int, usage: Usage, *, same_reply: bool = False) -> str:
        """Returns why a report cannot be the size of so many units; empty if it can.

        `same_reply`: the report came with a reply that is stored as several messages, and with an earlier one of them.
        """
        total = usage.total
        if total > MAX_TOKENS:
            return f"{total:,} tokens are more than any model accepts"
        if total < MIN_SHARE * units or not total:
            return f"{total:,} tokens cannot be all of a context of about {units:,}"
        if total == self.constant or (self._repeats(total, units, same_reply=same_reply) > MAX_REPEATS):
            return f"{total:,} tokens are reported whatever is sent"
        return ""

    def _repeats(self, total: int, units: int, *, same_reply: bool) -> int:
        """Number of times in a row that the same total was reported for a context that grew."""
        if same_reply:
            return self.repeats
        return self.repeats + 1 if total == self.known_tokens and units > self.known_units else 0

    def learn(self, units: int, usage: Usage, *, same_reply: bool = False) -> Calibration:
        """Returns the calibration after a successful reply; `units` is the size of the context after it.

        An implausible report changes nothing, but one that turns out to be a constant is no size any more.
        """
        total = usage.total
        repeats = self._repeats(total, units, same_reply=same_reply)
        if self.why_implausible(units, usage, same_reply=same_reply):
            constant = repeats > MAX_REPEATS
            return msgspec.structs.replace(self.as_ratio(), repeats=0, constant=total) if constant else self
        learned = msgspec.structs.replace(
            self, replies=self.replies + 1, known_tokens=total, known_units=units, repeats=repeats, constant=None
        )
        if self.known_tokens is None:
            small = not self.base_tokens or 2 * units <= self.known_units
            return msgspec.structs.replace(learned, base_tokens=total, base_units=units) if small else learned
        more, gained = units - self.known_units, total - self.known_tokens
        if more <= 0 or gained <= 0:  # something was removed: the difference says nothing about what was added
            return learned
        return msgspec.structs.replace(
            learned,
            tokens_seen=self.tokens_seen * DECAY + min(max(gained, MIN_RATIO * more), MAX_RATIO * more),
            units_seen=self.units_seen * DECAY + more,
        )

    @classmethod
    def from_report(cls, units: int, tokens: int) -> Calibration:
        """Returns the calibration by one report alone, of a context of so many units.

        Tokens beyond the estimate are overhead; an estimate that is too high is scaled down to the report.
        """
        learned = cls().learn(units, Usage(input=tokens))
        if not learned.replies or tokens >= units:
            return learned
        return msgspec.structs.replace(learned, tokens_seen=float(tokens), units_seen=float(units))

    def reset_size(self) -> Calibration:
        """Returns the calibration for a new epoch, without the reported size of the old context."""
        return msgspec.structs.replace(self, known_tokens=None)

    def as_ratio(self) -> Calibration:
        """Returns tokens per unit alone, where reports are about another prompt, or another model."""
        return msgspec.structs.replace(self, base_tokens=0, base_units=0, known_tokens=None, repeats=0)

    def tokens(self, units: int) -> int:
        """Returns the reported tokens plus an estimate of what came after; without a report, an estimate of all."""
        if self.known_tokens is not None:
            return max(0, round(self.known_tokens + self.ratio * (units - self.known_units)))
        return round(self.overhead + self.ratio * units)
