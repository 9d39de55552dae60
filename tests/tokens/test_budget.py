"""Budgets and thresholds, with the numbers of each system (P2, P21, P24, L2-L4, W1, G1, G2)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.errors import InvalidLimit
from holdfast.tokens.budget import (
    EXTENDED_LIMIT,
    BelowWindow,
    Fraction,
    LayerBudget,
    Threshold,
    Tokens,
    Utilization,
    WorkstreamBudget,
)

THRESHOLDS: dict[str, tuple[Threshold, int, int]] = {
    "P2: 16,384 below a window of 200,000": (BelowWindow(), 200_000, 183_616),
    "P2: another reserve": (BelowWindow(20_000), 128_000, 108_000),
    "P2: no reserve": (BelowWindow(0), 128_000, 128_000),
    "P2: a reserve as large as the window": (BelowWindow(8_192), 8_192, 1),
    "P2: a reserve larger than the window": (BelowWindow(), 8_192, 1),
    "P20: 95 % of the window": (Fraction(0.95), 200_000, 190_000),
    "P21: an absolute limit": (Tokens(180_000), 272_000, 180_000),
    "P21: an absolute limit above the window": (Tokens(244_000), 200_000, 200_000),
    "P21: an absolute limit where no window is known": (Tokens(244_000), 0, 244_000),
    "P24: 85 % of what the reserve leaves": (Fraction(0.85, 16_384), 200_000, 156_073),
    "P24: a reserve larger than the window": (Fraction(0.85, 16_384), 8_192, 1),
    "the whole window": (Fraction(1), 200_000, 200_000),
    "a fraction is rounded down": (Fraction(0.5), 1_001, 500),
    "a fraction of almost nothing": (Fraction(0.1), 5, 1),
    "L2: the layer's defaults": (LayerBudget(), 0, 93_600),
    "L2: the layer on 200,000": (LayerBudget(), 200_000, 151_200),
    "L2: reserves that leave half of the window": (LayerBudget(), 22_000, 8_800),
    "L2: reserves that leave less than half of it: half": (LayerBudget(), 16_385, 8_192),
    "L3: the layer on gpt-4, whose reserves are larger than its window: half": (LayerBudget(), 8_192, 4_096),
    "L2: never more than the percentage": (LayerBudget(percent=0.25), 8_192, 2_048),
    "L2: the smallest window": (LayerBudget(), 1, 1),
    "W1: the workstream's defaults": (WorkstreamBudget(), 0, 140_000),
    "W1: 70 % is the smaller": (WorkstreamBudget(), 1_000_000, 700_000),
    "W1: what the reserves leave is the smaller": (WorkstreamBudget(), 128_000, 88_000),
    "W1: reserves that leave half of the window": (WorkstreamBudget(), 80_000, 40_000),
    "W1: reserves that leave less than half of it: half": (WorkstreamBudget(), 79_000, 39_500),
    "W1: reserves as large as the window: half": (WorkstreamBudget(), 40_000, 20_000),
    "W1: never more than the part": (WorkstreamBudget(part=0.25), 40_000, 10_000),
    "W1: the smallest window": (WorkstreamBudget(), 1, 1),
}


@pytest.mark.parametrize(("threshold", "window", "tokens"), THRESHOLDS.values(), ids=THRESHOLDS)
def test_threshold_tokens_in_window(threshold: Threshold, window: int, tokens: int) -> None:
    assert threshold.tokens(window) == tokens


def test_l2_layer_budget_defaults() -> None:
    budget = LayerBudget()
    assert (budget.limit, budget.system_reserve, budget.output_reserve, budget.safety) == (128_000, 2_000, 4_000, 5_000)
    assert (budget.percent, budget.keep_last, budget.threshold) == (0.80, 10, 93_600)


def test_w1_workstream_budget_defaults() -> None:
    budget = WorkstreamBudget()
    assert (budget.size, budget.output_reserve, budget.safety, budget.part) == (200_000, 32_000, 8_000, 0.7)
    assert budget.threshold == 140_000


def test_g1_utilization_defaults() -> None:
    usage = Utilization(system_tokens=1_000, message_tokens=91_308)
    assert (usage.limit, usage.max_output) == (200_000, 16_384)
    assert usage.available == 200_000 - 1_000 - 91_308 - 16_384 == 91_308
    assert usage.value == 91_308 / 182_616 == 0.5


def test_g1_utilization_available_may_be_negative() -> None:
    assert Utilization(5_000, 190_000).available == -11_384
    assert Utilization(5_000, 190_000).value > 1


def test_g1_extended_limit_is_a_million() -> None:
    usage = Utilization(0, 146_893, limit=EXTENDED_LIMIT)
    assert EXTENDED_LIMIT == 1_000_000
    assert usage.available == 1_000_000 - 146_893 - 16_384
    assert not usage.over()
    assert Utilization(0, 146_893).over()


@pytest.mark.parametrize(("messages", "over"), [(146_892, False), (146_893, True)])
def test_g2_utilization_over_four_fifths_of_183_616(messages: int, over: bool) -> None:
    assert Utilization(0, messages).over() is over


def test_g2_utilization_exactly_four_fifths_is_not_over() -> None:
    assert Utilization(0, 80, limit=100, max_output=0).value == 0.80
    assert not Utilization(0, 80, limit=100, max_output=0).over()
    assert Utilization(0, 81, limit=100, max_output=0).over()


def test_g2_utilization_over_accepts_another_fraction() -> None:
    half = Utilization(0, 51, limit=100, max_output=0)
    assert half.over(0.5)
    assert not half.over(0.51)


@pytest.mark.parametrize("system", [183_616, 500_000])
def test_g1_utilization_without_room_is_always_over(system: int) -> None:
    usage = Utilization(system, 1)
    assert usage.value == float("inf")
    assert usage.over()


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "no tokens": (lambda: Tokens(0), "count must be a whole number of at least 1, not 0."),
    "part of a token": (lambda: Tokens(1.5), "count must be a whole number of at least 1, not 1.5."),  # type: ignore[arg-type]
    "yes for a number": (lambda: Tokens(True), "count must be a whole number of at least 1, not True."),
    "a negative reserve": (lambda: BelowWindow(-1), "reserve must be a whole number of at least 0, not -1."),
    "a text for a reserve": (lambda: BelowWindow("1"), "reserve must be a whole number"),  # type: ignore[arg-type]
    "a fraction of nothing": (lambda: Fraction(0), "part must be a number above 0 and at most 1, not 0."),
    "a fraction above one": (lambda: Fraction(85), "part must be a number above 0 and at most 1, not 85."),
    "a text for a fraction": (lambda: Fraction("0.8"), "part must be a number"),  # type: ignore[arg-type]
    "not a number": (lambda: Fraction(float("nan")), "part must be a number above 0 and at most 1, not nan."),
    "a fraction with a negative reserve": (lambda: Fraction(0.5, -1), "reserve must be a whole number"),
    "L2: no limit": (lambda: LayerBudget(limit=0), "limit must be a whole number of at least 1"),
    "L2: a negative reserve": (lambda: LayerBudget(system_reserve=-1), "system_reserve must be a whole number"),
    "L2: a negative safety": (lambda: LayerBudget(safety=-1), "safety must be a whole number of at least 0"),
    "L2: keep a negative number": (lambda: LayerBudget(keep_last=-1), "keep_last must be a whole number"),
    "L2: a percentage": (lambda: LayerBudget(percent=80), "percent must be a number above 0 and at most 1, not 80."),
    "W1: no size": (lambda: WorkstreamBudget(size=0), "size must be a whole number of at least 1"),
    "W1: a negative reserve": (lambda: WorkstreamBudget(output_reserve=-1), "output_reserve must be"),
    "W1: a part above one": (lambda: WorkstreamBudget(part=70), "part must be a number above 0 and at most 1"),
    "G1: no limit": (lambda: Utilization(0, 0, limit=0), "limit must be a whole number of at least 1"),
    "G1: a negative output": (lambda: Utilization(0, 0, max_output=-1), "max_output must be a whole number"),
}


@pytest.mark.parametrize(("make", "words"), WRONG.values(), ids=WRONG)
def test_budget_invalid_limit_gives_clear_error(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidLimit) as caught:
        make()
    assert str(caught.value).startswith(words)
    assert str(caught.value).endswith(".")
