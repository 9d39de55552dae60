"""The model's window and the ruler to measure with: what the command line knows when nothing was said."""

from __future__ import annotations

from math import floor

import msgspec

from ..catalog import CATALOG
from ..tokens import ENCODINGS, Estimator, Tokenizer, estimator_for

SHARE = 0.85
"""Without a budget: this part of the window."""


class Window(msgspec.Struct, frozen=True):
    """How many tokens a model takes, and whether that is known."""

    tokens: int
    model: str | None
    known: bool
    asked: bool = False
    """Was it named, whatever the model's is?"""

    @property
    def budget(self) -> int:
        return floor(self.tokens * SHARE)

    @property
    def words(self) -> str:
        if self.asked:
            return f"{self.model or 'model not named'}, window {self.tokens:,} asked for"
        if self.known:
            return f"{self.model}, window {self.tokens:,}"
        if self.model:
            return f"{self.model}, not in the catalog: window {self.tokens:,} assumed"
        return f"model not named: window {self.tokens:,} assumed"


def window_of(model: str | None) -> Window:
    return Window(CATALOG.window(model), model, known=bool(model and CATALOG.find(model)))


def estimator_of(name: str | None, model: str | None) -> Estimator:
    """The one asked for, or the tokenizer that comes nearest to the model's own."""
    if name is not None:
        return estimator_for(name)
    entry = CATALOG.find(model) if model else None
    return Tokenizer(entry.tokenizer) if entry and entry.tokenizer in ENCODINGS else Tokenizer()
