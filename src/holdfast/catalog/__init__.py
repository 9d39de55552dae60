"""Model windows and prices, as data.

The numbers live in ``models.toml``, so a new model is one line and no code. A model that nobody knows
still gets a window, a cautious one, because a wrong guess upwards ends in an overflow.
"""

from holdfast.catalog.catalog import CATALOG, FALLBACK_WINDOW, Catalog
from holdfast.catalog.model import Model

__all__ = ["CATALOG", "FALLBACK_WINDOW", "Catalog", "Model"]
