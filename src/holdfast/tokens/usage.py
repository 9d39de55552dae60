"""Tokens as providers report them, each in words of its own (P3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import InvalidInput

_WORDS = {
    "input": ("input", "input_tokens", "prompt_tokens", "prompt_token_count"),
    "output": ("output", "output_tokens", "completion_tokens", "candidates_token_count"),
    "cache_read": ("cache_read", "cache_read_input_tokens"),
    "cache_write": ("cache_write", "cache_creation_input_tokens"),
}
"""Ours, then Anthropic's and OpenAI's Responses', OpenAI Chat's, Gemini's. Only Anthropic counts its cache apart."""


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


def read_usage(given: Any) -> Usage:
    """Usage as ours, as a provider's JSON, or as the object its SDK returns."""
    if isinstance(given, Usage):
        return given
    reported = given.model_dump() if hasattr(given, "model_dump") else given
    if not isinstance(reported, Mapping):
        raise InvalidInput(f"usage= takes the token counts that a provider reported, not {type(given).__name__}.")
    found = {_snake(str(key)): value for key, value in reported.items()}
    figures = {ours: next((found[word] for word in words if word in found), None) for ours, words in _WORDS.items()}
    if figures["input"] is None and figures["output"] is None:
        raise InvalidInput(
            f"usage= takes token counts (input, output, cache_read, cache_write, or a provider's own words), "
            f"not {', '.join(map(str, reported)) or 'nothing'}."
        )
    return Usage(**{ours: _count(ours, value) for ours, value in figures.items()})


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key).lower()


def _count(name: str, value: Any) -> int:
    """A number of tokens; nothing where a provider says null."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise InvalidInput(f"usage= says {value!r} for {name}: it takes numbers of tokens, 0 or more.")
    return int(value)
