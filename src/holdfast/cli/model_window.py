"""The context window and the tokenizer of a model, as far as the catalog knows them."""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING

import msgspec

from ..tokens import ENCODINGS, Estimator, Tokenizer, estimator_for
from ..tokens.catalog import CATALOG, FALLBACK_WINDOW
from ..tokens.window import WindowBasis, WindowFacts

if TYPE_CHECKING:
    from .sources import Source

BUDGET_SHARE = 0.85
"""Share of the window used as the default budget."""


class ModelWindow(msgspec.Struct, frozen=True):
    """A model's context window, and how it is known."""

    tokens: int
    model: str | None
    basis: WindowBasis

    @property
    def known(self) -> bool:
        return self.basis != "default"

    @property
    def explicit(self) -> bool:
        """Given with --budget, instead of the model's own."""
        return self.basis == "given"

    @property
    def budget(self) -> int:
        return floor(self.tokens * BUDGET_SHARE)

    @property
    def description(self) -> str:
        window, model = f"window {self.tokens:,}", self.model or "model not named"
        if self.basis == "catalog":
            return f"{model}, {window}"
        if self.basis != "default":
            return f"{model}, {window} {self.basis}"
        return f"{model}, not in the catalog: {window} assumed" if self.model else f"{model}: {window} assumed"


def window_of(model: str | None, source: Source | None = None) -> ModelWindow:
    """Returns the window of a model, by default of the one of a source, which may state its window itself."""
    facts = WindowFacts(model=model)
    if source is not None and model in (None, source.model):
        if (size := source.size) is not None and size.window is not None:
            return ModelWindow(size.window, source.model, size.window_basis)
        recorded = None if source.transcript is None else source.transcript.window
        facts = WindowFacts(model=source.model, recorded=recorded)
    window = facts.window(usual=FALLBACK_WINDOW)
    return ModelWindow(window.tokens if window else FALLBACK_WINDOW, facts.model, window.basis if window else "default")


def choose_estimator(name: str | None, model: str | None) -> Estimator:
    """Returns the named estimator, else the tokenizer closest to the model's."""
    if name is not None:
        return estimator_for(name)
    entry = CATALOG.find(model) if model else None
    return Tokenizer(entry.tokenizer) if entry and entry.tokenizer in ENCODINGS else Tokenizer()
