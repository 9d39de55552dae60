"""The context window of a conversation's model, and how it is known: one answer from everything that states it.

Given by the caller, the number in an overflow error, recorded in the session file of another tool, listed by the
provider, the catalog's, or the preset's usual one: in this order, but never above the number in an overflow error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from .catalog import CATALOG, wants_long_window

WindowBasis = Literal["given", "learned", "recorded", "reported", "catalog", "default"]
PROBE_AFTER = 20
"""Good replies after which a limit that an overflow without a number lowered is raised again."""
_PROBE_FACTOR = 2
_DEFAULT_OUTPUT_TOKENS = 16_384
"""Tokens reserved for a reply if the catalog does not list the model's limit."""
_MENTIONS_TOKENS = re.compile(r"token|context|prompt|too long|(?<!content.)length", re.IGNORECASE)
"""Matches errors about too many tokens, not those about too many bytes: images have many bytes and few tokens."""
_LISTED_AS = (
    "max_input_tokens",  # Anthropic
    "inputTokenLimit",  # Gemini
    "context_length",  # OpenRouter, Together
    "context_window",  # Groq
    "max_context_length",  # Mistral
    "max_model_len",  # vLLM
)
"""What providers call the window in their list of models."""


class Window(msgspec.Struct, frozen=True):
    """A context window in tokens, how it is known, and what a reply may take of it."""

    tokens: int
    basis: WindowBasis
    whole: int = 0
    """The window before the share of it that another tool uses; 0 if this is all of it."""
    output: int = _DEFAULT_OUTPUT_TOKENS
    """Longest reply."""

    @property
    def reply(self) -> int:
        """Tokens that a reply may take, at most a quarter of the window."""
        return min(self.output, self.tokens // 4)


class WindowFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a conversation knows about the window of its model: plain data, stored with its session."""

    model: str | None = None
    """The model in use; all but `given` is about it."""
    given: int | None = None
    recorded: int | None = None
    """Stated by the session file of another tool: what that tool uses."""
    whole: int | None = None
    """The window that `recorded` is a share of."""
    reported: int | None = None
    """Listed by the provider."""
    learned: int | None = None
    """The number in an overflow error."""
    tried: int | None = None
    """The limit after an overflow without a number."""
    replies: int = 0
    """Good replies since then."""
    overflows: int = 0
    """Overflows without a number; each doubles the wait for the next attempt."""

    def of_model(self, model: str | None) -> WindowFacts:
        """Returns the facts about another model: only what the caller gave still holds."""
        return self if model is None or model == self.model else WindowFacts(model=model, given=self.given)

    def or_stated(self, stated: WindowFacts) -> WindowFacts:
        """Returns these facts, with what is known of the model from elsewhere where these say nothing."""
        return msgspec.structs.replace(
            self, learned=self.learned or stated.learned, reported=self.reported or stated.reported
        )

    def after_overflow(self, window: Window, reported: int | None, sent: int, why: str = "") -> WindowFacts:
        """Returns the facts after a prompt of about `sent` tokens was rejected with the error `why`.

        A number is a fact. Without one, what was sent is the limit to try next, and is raised again later.
        """
        if reported:
            return msgspec.structs.replace(self, learned=reported, tried=None, replies=0, overflows=0)
        if 0 < sent < window.tokens and _MENTIONS_TOKENS.search(why):
            return msgspec.structs.replace(self, tried=sent, replies=0, overflows=self.overflows + 1)
        return self

    def after_reply(self) -> WindowFacts:
        """Returns the facts after a good reply."""
        return self if self.tried is None else msgspec.structs.replace(self, replies=self.replies + 1)

    def window(self, given: int | None = None, usual: int | None = None) -> Window | None:
        """Returns the window; None if nothing states it and there is no usual one.

        `given` is the one of the policy, which the conversation's own takes precedence over.
        """
        name = (self.model or "").rpartition(":")[2]
        known = CATALOG.find(name) if name else None
        listed = CATALOG.window(name) if known or wants_long_window(name) else None
        candidates: tuple[tuple[int | None, WindowBasis], ...] = (
            (self.given or given, "given"),
            (self.learned, "learned"),
            (self.recorded, "recorded"),
            (self.reported, "reported"),
            (listed, "catalog"),
            (usual, "default"),
        )
        found = next(((tokens, basis) for tokens, basis in candidates if tokens), None)
        if found is None:
            return None
        tokens, basis = found
        limits = [limit for limit in (self.learned, self._attempt()) if limit is not None]
        if limits and min(limits) < tokens:
            tokens, basis = min(limits), "learned"
        whole = self.whole or 0 if basis == "recorded" else 0
        return Window(tokens, basis, whole, known.output if known else _DEFAULT_OUTPUT_TOKENS)

    def _attempt(self) -> int | None:
        """The limit to try next: doubled after every so many good replies, more of them the more often that failed."""
        if self.tried is None:
            return None
        wait = PROBE_AFTER * 2 ** min(max(0, self.overflows - 1), 10)
        return self.tried * int(_PROBE_FACTOR ** min(self.replies // wait, 40))


class StatedWindows:
    """What providers stated to this process about the windows of their models."""

    def __init__(self) -> None:
        self._facts: dict[str, WindowFacts] = {}

    def of(self, model: str | None) -> WindowFacts:
        """Returns what was stated about a model."""
        return self._facts.get(model or "") or WindowFacts(model=model)

    def note(self, model: str, **stated: int) -> None:
        """Notes a window: `reported` in a list of models, or `learned` from an error."""
        self._facts[model] = msgspec.structs.replace(self.of(model), **stated)


def listed_windows(models: Any) -> dict[str, int]:
    """Returns the windows by model that a provider's list of models states; empty for anything else."""
    entries = (models.get("data") or models.get("models")) if isinstance(models, Mapping) else None
    found = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping):
            name = str(entry.get("id") or entry.get("name") or "").removeprefix("models/")
            sizes = (entry.get(field) for field in _LISTED_AS)
            if name and (size := next((size for size in sizes if type(size) is int and size > 0), None)):
                found[name] = size
    return found
