"""Spring's trigger and request cases (S1, S4-S7)."""

from __future__ import annotations

import pytest
from spring_helpers import Scenario

from holdfast import Outcome, SlidingWindow, TokenCount, TurnCount, any_of
from holdfast.errors import InvalidInput
from holdfast.triggers import all_of, always, never, not_

pytestmark = pytest.mark.anyio


async def outcome(scenario: Scenario, trigger: object) -> Outcome:
    result = await scenario.service.compact(scenario.id, trigger, SlidingWindow(max_events=1))  # type: ignore[arg-type]
    return result.outcome


async def test_s5_turn_count_fires_above_n_turns_answered_or_not(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1", "u2", "a2")
    assert await outcome(scenario, TurnCount(2)) is Outcome.NOT_NEEDED
    await scenario.append_named("u3")
    assert await outcome(scenario, TurnCount(2)) is Outcome.COMPACTED


async def test_s5_synthetic_and_lane_user_messages_are_not_turns(scenario: Scenario) -> None:
    await scenario.append_named("shadow", synthetic=True)
    await scenario.append_named("u1", "a1", "u2", "a2")
    await scenario.append_named("q-sub", lane="sub")
    assert await outcome(scenario, TurnCount(2)) is Outcome.NOT_NEEDED


async def test_s6_token_count_fires_at_the_threshold(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1", "u2", "a2")  # 8 + 13 characters a turn
    assert await outcome(scenario, TokenCount(43)) is Outcome.NOT_NEEDED
    assert await outcome(scenario, TokenCount(42)) is Outcome.COMPACTED


async def test_s6_token_count_takes_any_estimator(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1", "u2", "a2")
    assert await outcome(scenario, TokenCount(9, estimator=lambda text: len(text))) is Outcome.NOT_NEEDED
    assert await outcome(scenario, TokenCount(8, estimator=lambda text: len(text))) is Outcome.COMPACTED


async def test_s7_any_all_not_compose(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1", "u2", "a2")
    assert await outcome(scenario, all_of(always, never)) is Outcome.NOT_NEEDED
    assert await outcome(scenario, any_of(never, TurnCount(5))) is Outcome.NOT_NEEDED
    assert await outcome(scenario, not_(always)) is Outcome.NOT_NEEDED
    assert await outcome(scenario, any_of(never, TurnCount(1))) is Outcome.COMPACTED


async def test_s4_lambda_compacts_unconditionally(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1", "u2", "a2")
    assert await outcome(scenario, lambda request: True) is Outcome.COMPACTED


async def test_s1_strategy_runs_only_if_the_trigger_fires(scenario: Scenario) -> None:
    await scenario.append_named("u1", "a1")

    def never_asked(request: object) -> object:
        raise AssertionError("the strategy was asked")

    result = await scenario.service.compact(scenario.id, never, never_asked)  # type: ignore[arg-type]
    assert result.outcome is Outcome.NOT_NEEDED
    assert result.version == 2


@pytest.mark.parametrize("n", [0, -1, True, 1.5, "3"])
def test_limits_must_be_whole_positive_numbers(n: object) -> None:
    for make in (TurnCount, TokenCount, SlidingWindow):
        with pytest.raises(InvalidInput, match="at least 1"):
            make(n)  # type: ignore[arg-type]


def test_composites_require_a_trigger() -> None:
    with pytest.raises(InvalidInput):
        any_of()
