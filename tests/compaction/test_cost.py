"""Cost of a compaction, its savings, and when it has paid for itself (H4)."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.compaction.result import Cost, cost_of
from holdfast.tokens import Usage
from holdfast.tokens.catalog import Prices

SONNET = Prices(3.0, 15.0, 0.3, 3.75)
HAIKU = Prices(1.0, 5.0, 0.1, 1.25)
SUMMARY = Usage(input=500, output=4_000, cache_read=150_000)


def test_h4_cost_records_all_fields() -> None:
    """$0.1065 for the summary, 34,000 cache writes at $3.45 more than a read: 7.5 calls at 100,000 tokens less."""
    cost = cost_of([SUMMARY], SONNET, 152_000, 52_000, 18_000)
    assert cost == Cost(
        calls=1,
        usage=SUMMARY,
        price=pytest.approx(0.1065),  # type: ignore[arg-type]
        saved_per_call=100_000,
        cached=0.3462,
        rewritten=34_000,
        pays_after=8,
    )
    spent = 0.1065 + 34_000 * (3.75 - 0.30) / 1e6
    assert 7 < spent / (100_000 * 0.30 / 1e6) < 8


def test_h4_usage_of_several_calls_is_summed() -> None:
    cost = cost_of([SUMMARY, Usage(output=1_000, cache_write=2_000)], SONNET, 9, 3, 0)
    assert (cost.calls, cost.usage) == (2, Usage(500, 5_000, 150_000, 2_000))
    assert cost.price == pytest.approx(0.1065 + 0.015 + 0.0075)


def test_h4_pays_after_equals_simulated_break_even() -> None:
    """Simulates the cost call by call, with and without the compaction."""
    before, after, stays = 152_000, 52_000, 18_000
    cost = cost_of([SUMMARY], SONNET, before, after, stays)
    with_it, without, calls = cost.price or 0.0, 0.0, 0
    while calls == 0 or with_it > without:
        written = after - stays if calls == 0 else 0
        with_it += ((after - written) * 0.30 + written * 3.75) / 1e6
        without += before * 0.30 / 1e6
        calls += 1
    assert calls == cost.pays_after


def test_h4_without_a_model_only_cache_writes_cost() -> None:
    cost = cost_of([], SONNET, 150_000, 50_000, 20_000)
    assert (cost.calls, cost.usage, cost.price) == (0, Usage(), 0.0)
    assert cost.pays_after == 4  # 30,000 times 1.15, by 100,000 times 0.1


def test_h4_unchanged_prefix_without_a_model_is_free() -> None:
    cost = cost_of([], SONNET, 150_000, 50_000, 50_000)
    assert (cost.cached, cost.rewritten, cost.pays_after) == (1.0, 0, 0)


@pytest.mark.parametrize("after", [150_000, 160_000])
def test_h4_no_savings_never_pay(after: int) -> None:
    cost = cost_of([SUMMARY], SONNET, 150_000, after, 10_000)
    assert (cost.saved_per_call, cost.pays_after) == (0, None)


def test_h4_free_cache_reads_never_pay() -> None:
    assert cost_of([SUMMARY], Prices(3.0, 15.0, 0.0, 3.75), 150_000, 50_000, 0).pays_after is None


def test_h4_unknown_prices_use_default_ratios() -> None:
    unknown, known = (cost_of([SUMMARY], prices, 152_000, 52_000, 18_000) for prices in (None, SONNET))
    assert unknown.price is None
    assert unknown.pays_after == known.pays_after


def test_h4_cheaper_summarizer_pays_sooner() -> None:
    own = cost_of([SUMMARY], SONNET, 152_000, 52_000, 18_000)
    other = cost_of([SUMMARY], SONNET, 152_000, 52_000, 18_000, summarizer=HAIKU)
    assert own.price is not None and other.price is not None and own.pays_after is not None
    assert other.price == pytest.approx(own.price / 3)
    assert other.pays_after == 6


def test_h4_summarizer_without_prices_has_unknown_price() -> None:
    cost = cost_of([SUMMARY], SONNET, 152_000, 52_000, 18_000, summarizer=Prices())
    assert cost.price is None
    assert cost.pays_after == 8


@pytest.mark.parametrize(("stays", "cached"), [(-5, 0.0), (0, 0.0), (500, 0.5), (1_000, 1.0), (9_000, 1.0)])
def test_cached_fraction_is_clamped(stays: int, cached: float) -> None:
    cost = cost_of([], SONNET, 5_000, 1_000, stays)
    assert cost.cached == cached
    assert cost.rewritten == 1_000 - cached * 1_000


def test_empty_result_does_not_divide_by_zero() -> None:
    assert cost_of([], SONNET, 10, 0, 0) == Cost(price=0.0, saved_per_call=10, pays_after=0)


def test_h4_cost_round_trips_through_json() -> None:
    cost = cost_of([SUMMARY], SONNET, 152_000, 52_000, 18_000)
    assert msgspec.json.decode(msgspec.json.encode(cost), type=Cost) == cost
    assert msgspec.json.encode(Cost()) == b"{}"
