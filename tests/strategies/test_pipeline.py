"""Pipelines: stages run in order until the context fits (P24)."""

from __future__ import annotations

from typing import Any

import pytest
from strategy_table import Messages

from holdfast import (
    CompactionResult,
    Outcome,
    Pipeline,
    PruneToolResults,
    SlidingWindow,
    TokenWindow,
    Truncate,
    compact,
)
from holdfast.compaction import without_model
from holdfast.context import Plan, Request, Skip
from holdfast.errors import InvalidInput
from holdfast.messages import encode_all
from holdfast.strategies import CLEARED, KeepLast
from holdfast.triggers import always
from sized import assistant, request_for, round_of, user

HISTORY: Messages = [
    user(10, "one"),
    *round_of("a", 500),
    assistant(10),
    user(10, "two"),
    *round_of("b", 500),
    assistant(10),
    user(10, "three"),
    assistant(10),
]
BEFORE, PRUNED = 1_068, 86
"""Two results of 500, two calls of 4, six messages of 10; cleared, a result has 9."""


class Spy:
    """A stage that records its requests and returns a given answer."""

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
    """Without any limit: the stages that ran, and the resulting messages."""
    request = request_for(HISTORY)
    plan = without_model(Pipeline(*stages)(request))
    assert isinstance(plan, Plan)
    return plan.strategy, encode_all(plan.messages, "openai-chat")


def results(messages: Messages) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "tool"]


PRUNE = PruneToolResults(0, 0)


def test_fixture_sizes_are_as_stated() -> None:
    assert request_for(HISTORY).tokens == BEFORE
    assert run(PRUNE).tokens_after == PRUNED


def test_p24_pipeline_stops_when_the_context_fits() -> None:
    spy = Spy()
    done = run(PRUNE, spy, budget=200, target=PRUNED)
    assert spy.seen == []
    assert (done.strategy, done.tokens_after, len(done.messages)) == ("pruning", PRUNED, len(HISTORY))


def test_p24_pipeline_one_token_over_runs_next_stage() -> None:
    done = run(PRUNE, SlidingWindow(2), budget=200, target=PRUNED - 1)
    assert done.strategy == "pruning+sliding window"
    assert done.messages == HISTORY[-2:]


def test_pipeline_without_target_uses_the_budget() -> None:
    for budget, asked in ((PRUNED, 0), (PRUNED - 1, 1)):
        spy = Spy()
        without_model(Pipeline(PRUNE, spy)(request_for(HISTORY, budget=budget)))
        assert len(spy.seen) == asked


def test_pipeline_without_limits_runs_every_stage() -> None:
    first, second = Spy(PRUNE), Spy()
    without_model(Pipeline(first, second)(request_for(HISTORY)))
    assert (len(first.seen), len(second.seen)) == (1, 1)


def test_stage_sees_the_result_of_previous_stages() -> None:
    spy = Spy()
    without_model(Pipeline(PRUNE, KeepLast(5), spy)(request_for(HISTORY)))
    (seen,) = spy.seen
    assert seen.tokens == 4 + 9 + 10 + 10 + 10
    assert [message.role for message in seen.messages] == ["assistant", "tool", "assistant", "user", "assistant"]
    assert seen.messages[1].results[0].text == CLEARED


def test_stage_that_skips_is_passed_over() -> None:
    by, left = staged(Spy(), PRUNE, Spy(), SlidingWindow(2))
    assert (by, left) == ("pruning+sliding window", HISTORY[-2:])


def test_pipeline_where_all_stages_skip_returns_last_reason() -> None:
    answer = without_model(Pipeline(Spy(), PruneToolResults(), KeepLast(50))(request_for(HISTORY)))
    assert answer == Skip(Outcome.NOTHING_TO_COMPACT, "there are at most 51 messages")


def test_pipeline_equals_stages_run_one_by_one() -> None:
    stages = (PRUNE, SlidingWindow(8), KeepLast(4))
    step = HISTORY
    for strategy in stages:
        step = compact(step, strategy=strategy, budget=10**6, trigger=always, estimator="chars/4").messages
    assert staged(*stages) == ("pruning+sliding window+keep last", step)


def test_edits_of_later_stage_apply_to_the_right_message() -> None:
    _, left = staged(SlidingWindow(6), PRUNE)
    assert results(left) == [CLEARED]
    assert [message for message in left if message["role"] != "tool"] == [*HISTORY[4:6], *HISTORY[7:]]


def test_edits_of_earlier_stage_are_dropped_with_their_message() -> None:
    _, left = staged(PRUNE, SlidingWindow(6))
    assert left == staged(SlidingWindow(6), PRUNE)[1]


def test_two_prunes_keep_both_edits() -> None:
    _, left = staged(PruneToolResults(1, 0), PruneToolResults(0, 0, placeholder="(gone)"))
    assert results(left) == ["(gone)", "(gone)"]
    _, left = staged(PruneToolResults(1, 0), PRUNE)
    assert results(left) == [CLEARED, CLEARED]


def test_pipeline_can_be_a_stage() -> None:
    assert staged(Pipeline(PRUNE, SlidingWindow(6)), KeepLast(3)) == staged(PRUNE, SlidingWindow(6), KeepLast(3))


def test_pipeline_target_is_that_of_its_last_stage() -> None:
    assert Pipeline(PRUNE, TokenWindow(300)).target == 300
    assert Pipeline(TokenWindow(300), PRUNE).target is None
    assert Pipeline(PRUNE, Truncate(max_tokens=200)).target == 200


def test_request_keeps_its_limits_between_stages() -> None:
    spy = Spy()
    without_model(Pipeline(PRUNE, spy)(request_for(HISTORY, budget=80, target=40)))
    assert (spy.seen[0].budget, spy.seen[0].target) == (80, 40)


@pytest.mark.parametrize("stages", [(), (5,), (PRUNE, None), ("prune",)])
def test_pipeline_requires_one_or_more_strategies(stages: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidInput, match="one or more strategies"):
        Pipeline(*stages)
