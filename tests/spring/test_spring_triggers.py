"""Spring's trigger and request cases (S1, S4-S7)."""

from __future__ import annotations

import pytest
from spring_story import Story

from holdfast import (
    InvalidInput,
    Outcome,
    SlidingWindow,
    TokenCount,
    TurnCount,
    all_of,
    always,
    any_of,
    never,
    not_,
)

pytestmark = pytest.mark.anyio


async def outcome(story: Story, trigger: object) -> Outcome:
    result = await story.service.compact(story.id, trigger, SlidingWindow(max_events=1))  # type: ignore[arg-type]
    return result.outcome


async def test_s5_fires_at_more_than_n_turns_answered_or_not(story: Story) -> None:
    await story.tell("u1", "a1", "u2", "a2")
    assert await outcome(story, TurnCount(2)) is Outcome.NOT_NEEDED
    await story.tell("u3")
    assert await outcome(story, TurnCount(2)) is Outcome.COMPACTED


async def test_s5_synthetic_and_lane_user_messages_are_no_turns(story: Story) -> None:
    await story.tell("shadow", synthetic=True)
    await story.tell("u1", "a1", "u2", "a2")
    await story.tell("q-sub", lane="sub")
    assert await outcome(story, TurnCount(2)) is Outcome.NOT_NEEDED


async def test_s6_fires_at_the_threshold(story: Story) -> None:
    await story.tell("u1", "a1", "u2", "a2")  # 8 + 13 characters a turn
    assert await outcome(story, TokenCount(43)) is Outcome.NOT_NEEDED
    assert await outcome(story, TokenCount(42)) is Outcome.COMPACTED


async def test_s6_takes_any_estimator(story: Story) -> None:
    await story.tell("u1", "a1", "u2", "a2")
    assert await outcome(story, TokenCount(9, estimator=lambda text: len(text))) is Outcome.NOT_NEEDED
    assert await outcome(story, TokenCount(8, estimator=lambda text: len(text))) is Outcome.COMPACTED


async def test_s7_any_all_not(story: Story) -> None:
    await story.tell("u1", "a1", "u2", "a2")
    assert await outcome(story, all_of(always, never)) is Outcome.NOT_NEEDED
    assert await outcome(story, any_of(never, TurnCount(5))) is Outcome.NOT_NEEDED
    assert await outcome(story, not_(always)) is Outcome.NOT_NEEDED
    assert await outcome(story, any_of(never, TurnCount(1))) is Outcome.COMPACTED


async def test_s4_a_lambda_compacts_unconditionally(story: Story) -> None:
    await story.tell("u1", "a1", "u2", "a2")
    assert await outcome(story, lambda request: True) is Outcome.COMPACTED


async def test_s1_the_strategy_runs_only_if_the_trigger_fires(story: Story) -> None:
    await story.tell("u1", "a1")

    def never_asked(request: object) -> object:
        raise AssertionError("the strategy was asked")

    result = await story.service.compact(story.id, never, never_asked)  # type: ignore[arg-type]
    assert result.outcome is Outcome.NOT_NEEDED
    assert result.version == 2


@pytest.mark.parametrize("n", [0, -1, True, 1.5, "3"])
def test_limits_must_be_whole_positive_numbers(n: object) -> None:
    for make in (TurnCount, TokenCount, SlidingWindow):
        with pytest.raises(InvalidInput, match="at least 1"):
            make(n)  # type: ignore[arg-type]


def test_composites_need_a_trigger() -> None:
    with pytest.raises(InvalidInput):
        any_of()
