"""Prices of calls, by the model ids of providers and users (H4)."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidLimit
from holdfast.tokens import Usage
from holdfast.tokens.catalog import (
    CATALOG,
    OUTPUT_RATIO,
    READ_RATIO,
    WRITE_RATIO,
    Catalog,
    ModelInfo,
    Prices,
    Ratios,
    price_of,
    prices_of,
)

SONNET = Prices(3.0, 15.0, 0.3, 3.75)


@pytest.mark.parametrize(
    "model",
    [
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4-5",
        "anthropic:claude-sonnet-4-5",
        "anthropic/claude-sonnet-4.5",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "Claude-Sonnet-4-5[1m]",
    ],
)
def test_h4_prices_of_any_spelling_are_equal(model: str) -> None:
    assert prices_of(model) == SONNET
    usage = Usage(input=1_000, output=2_000, cache_read=100_000, cache_write=10_000)
    assert price_of(usage, model) == pytest.approx(0.003 + 0.03 + 0.03 + 0.0375)


def test_h4_prices_openai_has_no_cache_write_price() -> None:
    assert price_of(Usage(input=20_000, output=1_000, cache_read=80_000), "openai:gpt-4.1") == pytest.approx(0.088)


def test_h4_price_missing_gives_none() -> None:
    unread = ModelInfo(pattern="quiet-1", window=1_000, input_price=1.0, output_price=2.0)
    catalog = CATALOG.with_models(unread)
    assert prices_of("quiet-1", catalog) == Prices(1.0, 2.0)
    assert price_of(Usage(input=500_000, output=250_000), "quiet-1", catalog) == pytest.approx(1.0)
    assert price_of(Usage(input=1, cache_read=1), "quiet-1", catalog) is None
    assert price_of(Usage(input=1, cache_write=1), "quiet-1", catalog) is None


@pytest.mark.parametrize("model", [None, "", "a-model-that-nobody-knows"])
def test_h4_prices_unknown_model_is_none(model: str | None) -> None:
    assert prices_of(model) is None
    assert price_of(Usage(input=1), model) is None


def test_h4_prices_user_entry_overrides_builtin() -> None:
    own = Catalog().with_models({"pattern": "claude-sonnet-4-5*", "window": 200_000, "input_price": 2.0})
    assert price_of(Usage(input=1_000_000), "anthropic:claude-sonnet-4-5", own) == 2.0
    assert price_of(Usage(input=1_000_000), "anthropic:claude-sonnet-4-5") == 3.0


RATIOS = {
    "all known": (SONNET, Ratios(0.1, 1.25, 5.0)),
    "nothing known": (Prices(), Ratios(READ_RATIO, WRITE_RATIO, OUTPUT_RATIO)),
    "input for nothing": (Prices(0.0, 0.0, 0.0, 0.0), Ratios()),
    "no price for the cache": (Prices(2.0, 6.0), Ratios(0.1, 1.25, 3.0)),
    "reads have a price, writes are input": (Prices(2.0, 8.0, 0.5), Ratios(0.25, 1.0, 4.0)),
    "writes have a price, reads do not": (Prices(0.5, 1.0, None, 0.75), Ratios(0.1, 1.5, 2.0)),
    "reads for nothing": (Prices(2.0, 8.0, 0.0), Ratios(0.0, 1.0, 4.0)),
    "input alone": (Prices(2.0), Ratios()),
}


@pytest.mark.parametrize(("prices", "ratios"), RATIOS.values(), ids=RATIOS)
def test_h4_ratios_missing_price_uses_usual_ratio(prices: Prices, ratios: Ratios) -> None:
    found = prices.ratios
    assert (found.read, found.write, found.output) == pytest.approx((ratios.read, ratios.write, ratios.output))


def test_h4_input_equivalent_matches_price() -> None:
    usage = Usage(input=100, output=10, cache_read=1_000, cache_write=40)
    weight = SONNET.ratios.input_equivalent(usage)
    assert weight == pytest.approx(100 + 50 + 100 + 50)
    assert SONNET.price(usage) == pytest.approx(weight * 3.0 / 1_000_000)


def test_ratios_of_builtin_models_are_plausible() -> None:
    """A cache read costs at most the input price, a write at most twice, output at least half of it."""
    for model in CATALOG.models:
        ratios = Prices.of(model).ratios
        assert 0 < ratios.read <= 1 <= ratios.write <= 2, model.pattern
        assert 0.5 <= ratios.output <= 20, model.pattern


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf"), "3", True])
def test_prices_invalid_price_is_rejected(price: object) -> None:
    with pytest.raises(InvalidLimit, match="price of 0 or more"):
        Prices(input=price)  # type: ignore[arg-type]
