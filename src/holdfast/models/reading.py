"""How much a model can read at once."""

from __future__ import annotations

from ..calls import Model, Stepper
from ..catalog import CATALOG


def reads(model: Model | Stepper | None) -> int | None:
    """Tokens of its longest prompt, where the catalog knows the model."""
    known = None if model is None else CATALOG.find(model.name.rpartition(":")[2])
    return None if known is None else known.input or known.window
