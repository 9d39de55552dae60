"""Pipelines: one stage after another, only for as long as the context is still too large (P24)."""

from __future__ import annotations

from typing import Any

import pytest
from strategy_table import Messages

from holdfast import (
    CompactionResult,
    InvalidInput,
    KeepLast,
    Outcome,
    Pipeline,
    PruneToolResults,
    SlidingWindow,
    TokenWindow,
    Truncate,
    always,
    compact,
)
from holdfast.compaction import without_model
from holdfast.messages import encode_all
from holdfast.strategies import CLEARED
from holdfast.view import Plan, Request, Skip, compose
from sized import request_for, round_of, said, user

HISTORY: Messages = [
    user(10, "one"),
    *round_of("a", 500),
    said(10),
    user(10, "two"),
    *round_of("b", 500),
    said(10),
    user(10, "three"),
    said(10),
]
BEFORE, PRUNED = 1_068, 86
"""Two results of 500, two calls of 4, six messages of 10; cleared, a result has 9."""


class Spy:
    """A stage that remembers what it was asked, and answers as it was told."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer or Skip(Outcome.NOTHING_TO_COMPACT, "a spy does nothing")
        self.seen: list[Request] = []

    def __call__(self, request: Request) -> Plan | Skip:
        self.seen.append(request)
        return self.answer(request) if callable(self.answer) else self.answer


def run(*stages: Any, **options: Any) -> CompactionResult:
    settings: dict[str, Any] = {"budget": 10**6, "estimator": "chars/4", "trigger": always, **options}
    return compact(HISTORY, strategy=Pipeline(*stages), **settings)


def staged(*stages: Any) -> tuple[str, Messages]:
    """Where nothing says how small is small enough: the stages that ran, and what they leave."""
    request = request_for(HISTORY)
    plan = without_model(Pipeline(*stages)(request))
    assert isinstance(plan, Plan)
    return plan.by, encode_all(compose(request, plan).shown, "openai-chat")


def results(messages: Messages) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "tool"]


PRUNE = PruneToolResults(0, 0)


def test_the_sizes_are_these() -> None:
    assert request_for(HISTORY).tokens == BEFORE
    assert run(PRUNE).tokens_after == PRUNED


def test_p24_it_stops_as_soon_as_the_context_fits() -> None:
    spy = Spy()
    done = run(PRUNE, spy, budget=200, target=PRUNED)
    assert spy.seen == []
    assert (done.strategy, done.tokens_after, len(done.messages)) == ("pruning", PRUNED, len(HISTORY))


def test_p24_one_token_over_and_the_next_stage_is_asked() -> None:
    done = run(PRUNE, SlidingWindow(2), budget=200, target=PRUNED - 1)
    assert done.strategy == "pruning+sliding window"
    assert done.messages == HISTORY[-2:]


def test_without_a_target_the_budget_is_the_measure() -> None:
    for budget, asked in ((PRUNED, 0), (PRUNED - 1, 1)):
        spy = Spy()
        without_model(Pipeline(PRUNE, spy)(request_for(HISTORY, budget=budget)))
        assert len(spy.seen) == asked


def test_without_any_limit_every_stage_is_asked() -> None:
    first, second = Spy(PRUNE), Spy()
    without_model(Pipeline(first, second)(request_for(HISTORY)))
    assert (len(first.seen), len(second.seen)) == (1, 1)


def test_a_stage_sees_what_the_ones_before_it_left() -> None:
    spy = Spy()
    without_model(Pipeline(PRUNE, KeepLast(5), spy)(request_for(HISTORY)))
    (seen,) = spy.seen
    assert seen.tokens == 4 + 9 + 10 + 10 + 10
    assert [message.role for message in seen.messages] == ["assistant", "tool", "assistant", "user", "assistant"]
    assert seen.messages[1].results[0].text == CLEARED


def test_a_stage_that_has_nothing_to_do_is_passed_over() -> None:
    by, left = staged(Spy(), PRUNE, Spy(), SlidingWindow(2))
    assert (by, left) == ("pruning+sliding window", HISTORY[-2:])


def test_where_no_stage_has_anything_to_do_the_last_one_says_why() -> None:
    answer = without_model(Pipeline(Spy(), PruneToolResults(), KeepLast(50))(request_for(HISTORY)))
    assert answer == Skip(Outcome.NOTHING_TO_COMPACT, "there are at most 51 messages")


def test_stages_together_do_what_they_do_one_after_the_other() -> None:
    stages = (PRUNE, SlidingWindow(8), KeepLast(4))
    step = HISTORY
    for strategy in stages:
        step = compact(step, strategy=strategy, budget=10**6, trigger=always, estimator="chars/4").messages
    assert staged(*stages) == ("pruning+sliding window+keep last", step)


def test_edits_of_a_later_stage_land_on_the_right_message() -> None:
    _, left = staged(SlidingWindow(6), PRUNE)
    assert results(left) == [CLEARED]
    assert [message for message in left if message["role"] != "tool"] == [*HISTORY[4:6], *HISTORY[7:]]


def test_edits_of_an_earlier_stage_go_with_the_message() -> None:
    _, left = staged(PRUNE, SlidingWindow(6))
    assert left == staged(SlidingWindow(6), PRUNE)[1]


def test_two_prunes_in_a_row_keep_both_edits() -> None:
    _, left = staged(PruneToolResults(1, 0), PruneToolResults(0, 0, placeholder="(gone)"))
    assert results(left) == ["(gone)", "(gone)"]
    _, left = staged(PruneToolResults(1, 0), PRUNE)
    assert results(left) == [CLEARED, CLEARED]


def test_a_pipeline_may_be_a_stage() -> None:
    assert staged(Pipeline(PRUNE, SlidingWindow(6)), KeepLast(3)) == staged(PRUNE, SlidingWindow(6), KeepLast(3))


def test_a_pipeline_leads_where_its_last_stage_does() -> None:
    assert Pipeline(PRUNE, TokenWindow(300)).target == 300
    assert Pipeline(TokenWindow(300), PRUNE).target is None
    assert Pipeline(PRUNE, Truncate(max_tokens=200)).target == 200


def test_the_request_keeps_its_limits_from_stage_to_stage() -> None:
    spy = Spy()
    without_model(Pipeline(PRUNE, spy)(request_for(HISTORY, budget=80, target=40)))
    assert (spy.seen[0].budget, spy.seen[0].target) == (80, 40)


@pytest.mark.parametrize("stages", [(), (5,), (PRUNE, None), ("prune",)])
def test_a_pipeline_takes_one_or_more_strategies(stages: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidInput, match="one or more strategies"):
        Pipeline(*stages)
