"""What tokens cost: by the catalog's prices, and by ratios where those are not known (H4)."""

from __future__ import annotations

import msgspec

from holdfast.catalog.catalog import CATALOG, Catalog
from holdfast.catalog.model import Model
from holdfast.errors import InvalidLimit
from holdfast.tokens import Usage

READ_RATIO = 0.1
"""Of the price of input: what a token from the prompt cache usually costs."""
WRITE_RATIO = 1.25
"""What a token written to the prompt cache usually costs, where writing has a price."""
OUTPUT_RATIO = 5.0
"""What a token of the reply usually costs."""
_MILLION = 1_000_000


class Ratios(msgspec.Struct, frozen=True):
    """Prices as multiples of the price of input: enough to compare one context with another."""

    read: float = READ_RATIO
    write: float = WRITE_RATIO
    output: float = OUTPUT_RATIO

    def weigh(self, usage: Usage) -> float:
        """A call in input tokens of the same price."""
        return usage.input + self.read * usage.cache_read + self.write * usage.cache_write + self.output * usage.output


class Prices(msgspec.Struct, frozen=True, omit_defaults=True):
    """USD for a million tokens; None where a price is not known. Nothing is guessed here."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            price = getattr(self, name)
            number = isinstance(price, int | float) and not isinstance(price, bool)
            if price is not None and not (number and 0 <= price < float("inf")):
                raise InvalidLimit(f"{name} must be a price of 0 or more, or None, not {price!r}.")

    @classmethod
    def of(cls, model: Model) -> Prices:
        """The prices of an entry of the catalog."""
        return cls(model.input_price, model.output_price, model.cache_read_price, model.cache_write_price)

    @property
    def ratios(self) -> Ratios:
        """Where a price is missing, the usual ratio stands in.

        One exception: who sells cache reads and names no price for writes takes the price of input for them.
        """
        if not self.input:
            return Ratios()
        unnamed = WRITE_RATIO if self.cache_read is None else 1.0
        return Ratios(
            READ_RATIO if self.cache_read is None else self.cache_read / self.input,
            unnamed if self.cache_write is None else self.cache_write / self.input,
            OUTPUT_RATIO if self.output is None else self.output / self.input,
        )

    def price(self, usage: Usage) -> float | None:
        """USD for these tokens; None where some of them have no known price."""
        total = 0.0
        for name in self.__struct_fields__:
            if tokens := getattr(usage, name):
                each = getattr(self, name)
                if each is None:
                    return None
                total += tokens * each / _MILLION
        return total


def prices_of(model: str | None, catalog: Catalog = CATALOG) -> Prices | None:
    """The prices of a model, by the provider's id or as a person chose it; None for a model that nobody knows."""
    entry = catalog.find(model) if model else None
    return None if entry is None else Prices.of(entry)


def price_of(usage: Usage, model: str | None, catalog: Catalog = CATALOG) -> float | None:
    """USD for one call, by its usage, whose `input` leaves out what came from the cache; None where not known."""
    prices = prices_of(model, catalog)
    return None if prices is None else prices.price(usage)
