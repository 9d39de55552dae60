"""L14: the layer document's six edge cases, each with its handling."""

from __future__ import annotations

from typing import Any

import pytest
from strategy_table import STRATEGIES, Messages, Size

from holdfast import CompactionResult, Outcome, Pipeline, PruneToolResults, TokenWindow, check, compact
from holdfast.context import Plan, Skip
from holdfast.strategies import CLEARED, KeepLast
from holdfast.tokens.budget import LayerBudget
from holdfast.triggers import LayerTrigger, always
from sized import Json, assistant, calls, request_for, result, round_of, user

SYSTEM: Json = {"role": "system", "content": "You are an agent."}
HUGE = 25_002
"""Tokens of a result of 100,000 characters: ten times the document's 10,000."""


def run(messages: Messages, strategy: Any, **options: Any) -> CompactionResult:
    chosen: dict[str, Any] = {"budget": 10**6, "estimator": "chars/4", "trigger": always, **options}
    return compact(messages, strategy=strategy, **chosen)


def talk(count: int) -> Messages:
    return [(user, assistant)[place % 2](10) for place in range(count)]


def test_l14_huge_old_tool_result_is_cleared() -> None:
    messages = [SYSTEM, user(10), *round_of("a", HUGE), assistant(10), user(10)]
    done = run(messages, PruneToolResults(0, 20_000))
    assert done.messages[3]["content"] == CLEARED
    assert done.tokens_after < 60


def test_l14_huge_tool_result_is_archived_with_its_call() -> None:
    messages = [user(10), *talk(2), user(10), *round_of("a", HUGE), assistant(10), user(10), assistant(10)]
    done = run(messages, TokenWindow(1_000))
    assert done.messages == messages[-2:]


def test_l14_huge_unread_tool_result_is_shortened_and_cited() -> None:
    messages = [*talk(20), user(10), *round_of("a", HUGE)]
    for strategy in (TokenWindow(1_000), Pipeline(PruneToolResults(0, 0), TokenWindow(1_000))):
        done = run(messages, strategy, budget=1_000)
        assert done.outcome is Outcome.COMPACTED and done.tokens_after <= 1_000
        assert done.messages[-3:-1] == messages[-3:-1]
        assert str(done.messages[-1]["content"]).startswith("[cut: 23]\n")
        assert check(done.messages, "openai") == []


def test_l14_ledger_shortens_huge_tool_result_and_cites_it() -> None:
    messages = [*talk(20), user(10), *round_of("a", HUGE)]
    messages[-1]["content"] = "\n".join(f"ship_{number} lies at berth {number % 90}" for number in range(4_000))
    done = run(messages, None, budget=1_000)
    assert done.outcome is Outcome.COMPACTED
    assert done.messages[-2] == messages[-2]
    shown = str(done.messages[-1]["content"]).splitlines()
    assert shown[0] == "[cut: 23]"
    whole = messages[-1]["content"].splitlines()
    (gap,) = set(shown[1:]).difference(whole)
    assert "characters left out: ask for them in parts" in gap, "the mark says how to read the rest"
    assert shown[1] == whole[0] and shown[-1] == whole[-1] and len(shown) > 5
    assert check(done.messages, "openai") == []


@pytest.mark.parametrize("keep", [10, 11, 50])
def test_l14_recent_messages_only_changes_nothing(keep: int) -> None:
    messages = [SYSTEM, *talk(10)]
    done = run(messages, KeepLast(keep))
    assert (done.outcome, done.messages, done.archived) == (Outcome.NOTHING_TO_COMPACT, messages, [])
    assert done.tokens_after == done.tokens_before
    assert (done.round, done.checkpoint) == (0, None)


def test_l14_recent_messages_only_after_boundary_moved_back_changes_nothing() -> None:
    """Twelve messages, ten to keep, but they are all one batch: `boundaryIndex <= compactionStartIndex`."""
    names = [f"c{number}" for number in range(10)]
    messages = [SYSTEM, calls(*names), *(result(name, 20) for name in names)]
    assert len(messages) == 12
    done = run(messages, KeepLast(9))
    assert (done.outcome, done.messages) == (Outcome.NOTHING_TO_COMPACT, messages)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("messages", [[], [SYSTEM], [user(10)]], ids=["nothing", "a system message", "one message"])
def test_l14_empty_conversation_is_returned_unchanged(name: str, messages: Messages) -> None:
    done = run(messages, STRATEGIES[name](Size(10**6, 1, 1)))
    assert (done.outcome, done.messages, done.removed) == (Outcome.NOTHING_TO_COMPACT, messages, 0)


@pytest.mark.parametrize(("count", "fires"), [(0, False), (1, False), (10, False), (11, False), (12, True)])
def test_l14_very_short_session_never_fires(count: int, fires: bool) -> None:
    """`messages.length <= keepLast + 1`, however large they are."""
    request = request_for([user(10_000)] * count)
    assert LayerTrigger(LayerBudget(limit=20_000))(request) is fires


def test_l14_very_short_session_gives_not_needed() -> None:
    done = run([user(200_000)] * 11, KeepLast(), trigger=LayerTrigger())
    assert (done.outcome, done.why) == (Outcome.NOT_NEEDED, "the trigger did not fire")


@pytest.mark.parametrize("budget", [10**6, 5], ids=["it would fit", "it would not"])
def test_l14_failed_summary_leaves_messages_unchanged(budget: int) -> None:
    """A strategy without a summary reports it; no other strategy is tried."""
    messages = talk(20)
    failed = Skip(Outcome.SUMMARY_FAILED, "the model answered nothing")
    done = run(messages, lambda request: failed, budget=budget)
    assert (done.outcome, done.why) == (Outcome.SUMMARY_FAILED, "the model answered nothing")
    assert (done.messages, done.archived, done.tokens_saved) == (messages, [], 0)


def test_l14_orphaned_tool_message_keeps_its_call() -> None:
    messages = [SYSTEM, user(10), *talk(5), *round_of("a", 20), *talk(9)]
    assert messages[-10]["role"] == "tool"
    plan = KeepLast(10)(request_for(messages))
    assert isinstance(plan, Plan)
    assert messages[plan.cut :] == messages[-11:]
    done = run(messages, KeepLast(10))
    assert done.messages == [SYSTEM, *messages[-11:]]
    assert check(done.messages, "openai") == []


def test_l14_tool_message_orphaned_in_input_is_dropped() -> None:
    messages = [user(10), result("ghost", 20), *talk(14)]
    done = run(messages, KeepLast(10))
    assert done.messages == messages[-10:]
    assert check(done.messages, "openai") == []
