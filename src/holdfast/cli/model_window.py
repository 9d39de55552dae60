"""The context window and the tokenizer of a model, as far as the catalog knows them."""

from math import floor

import msgspec

from ..tokens import ENCODINGS, Estimator, Tokenizer, estimator_for
from ..tokens.catalog import CATALOG

BUDGET_SHARE = 0.85
"""Share of the window used as the default budget."""


class ModelWindow(msgspec.Struct, frozen=True):
    """A model's context window, and whether it is known or assumed."""

    tokens: int
    model: str | None
    known: bool
    explicit: bool = False
    """Given with --budget, instead of the model's own."""

    @property
    def budget(self) -> int:
        return floor(self.tokens * BUDGET_SHARE)

    @property
    def description(self) -> str:
        if self.explicit:
            return f"{self.model or 'model not named'}, window {self.tokens:,} given"
        if self.known:
            return f"{self.model}, window {self.tokens:,}"
        if self.model:
            return f"{self.model}, not in the catalog: window {self.tokens:,} assumed"
        return f"model not named: window {self.tokens:,} assumed"


def window_of(model: str | None) -> ModelWindow:
    return ModelWindow(CATALOG.window(model), model, known=bool(model and CATALOG.find(model)))


def choose_estimator(name: str | None, model: str | None) -> Estimator:
    """Returns the named estimator, else the tokenizer closest to the model's."""
    if name is not None:
        return estimator_for(name)
    entry = CATALOG.find(model) if model else None
    return Tokenizer(entry.tokenizer) if entry and entry.tokenizer in ENCODINGS else Tokenizer()
