"""P22: protects the newest 40,000 tokens of tool results, clears older ones only if that saves more than 20,000."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategy_table import PROFILES, Messages, repaired, tokens_of

import histories
from holdfast import CompactionResult, Outcome, PruneToolResults, check, compact
from holdfast.context import Plan, Skip
from holdfast.errors import InvalidLimit
from holdfast.strategies import CLEARED
from holdfast.triggers import always
from judge import bound_thinking, judge
from sized import Json, assistant, calls, request_for, result, round_of, user

PLACEHOLDER = 9
"""Tokens of a cleared result: 2 for the role, 7 for 26 letters in quotation marks."""
PRUNE = PruneToolResults()


def prune(messages: Messages, strategy: PruneToolResults = PRUNE, **options: Any) -> CompactionResult:
    settings: dict[str, Any] = {"budget": 10**9, "estimator": "chars/4", "trigger": always, **options}
    return compact(messages, strategy=strategy, **settings)


def history(*sizes: int) -> Messages:
    """A turn with a tool round of each size, oldest first, and a final reply."""
    rounds = [message for place, size in enumerate(sizes) for message in round_of(f"c{place}", size)]
    return [user(10), *rounds, assistant(10), user(10)]


def cleared(messages: Messages) -> list[str]:
    """The ids of the cleared results."""
    return [message["tool_call_id"] for message in messages if message.get("content") == CLEARED]


def test_defaults_equal_those_of_opencode() -> None:
    assert (PRUNE.protect, PRUNE.minimum) == (40_000, 20_000)


CASES: dict[str, tuple[list[int], list[str]]] = {
    "exactly 20,000 would go: nothing does": ([20_000 + PLACEHOLDER, 40_000], []),
    "one token more: it goes": ([20_001 + PLACEHOLDER, 40_000], ["c0"]),
    "several old results count together": ([10_000 + PLACEHOLDER, 10_001 + PLACEHOLDER, 40_000], ["c0", "c1"]),
    "40,000 in many results are protected": ([20_010, 10_000, 10_000, 10_000, 10_000], ["c0"]),
    "with 39,999 the next one is protected too": ([30_000, 30_000, 39_999], ["c0"]),
    "the one in which the 40,000th token falls is protected whole": ([30_000, 39_000, 30_000], ["c0"]),
    "a single newest result larger than all that": ([30_000, 300_000], ["c0"]),
    "too little to protect": ([20_000, 19_999], []),
    "no results at all": ([], []),
}


@pytest.mark.parametrize(("sizes", "gone"), CASES.values(), ids=CASES)
def test_p22_old_results_are_cleared(sizes: list[int], gone: list[str]) -> None:
    given_messages = history(*sizes)
    pruned = prune(given_messages)
    assert cleared(pruned.messages) == gone
    assert pruned.outcome == (Outcome.COMPACTED if gone else Outcome.NOTHING_TO_COMPACT)
    saved = sum(size - PLACEHOLDER for place, size in enumerate(sizes) if f"c{place}" in gone)
    assert pruned.tokens_saved == pruned.tokens_before - pruned.tokens_after == saved
    assert len(pruned.messages) == len(given_messages)


def test_p22_pruning_archives_nothing_and_keeps_the_round() -> None:
    pruned = prune(history(30_000, 40_000))
    assert (pruned.removed, pruned.round, len(pruned.edited), len(pruned.kept)) == (0, 0, 1, 7)


def test_p22_saving_below_minimum_skips_with_reason() -> None:
    answer = PRUNE(request_for(history(20_000, 40_000)))
    assert isinstance(answer, Skip)
    assert answer.why == "old tool results hold no more than 20000 tokens"


def test_pruning_twice_equals_pruning_once() -> None:
    once = prune(history(30_000, 25_000, 40_000))
    twice = prune(once.messages)
    assert (twice.outcome, twice.messages) == (Outcome.NOTHING_TO_COMPACT, once.messages)
    assert prune(history(30_000, 25_000, 40_000), previous=once.checkpoint).messages == once.messages


def test_result_no_larger_than_placeholder_is_kept() -> None:
    pruned = prune(history(PLACEHOLDER, PLACEHOLDER + 1, 100, 40), PruneToolResults(40, 0))
    assert cleared(pruned.messages) == ["c1", "c2"]


def test_exempt_tools_are_neither_cleared_nor_counted_as_protected() -> None:
    rounds = [calls("s", name="skill"), result("s", 50_000), *round_of("a", 30_000), *round_of("b", 40_000)]
    loaded = [calls("t", name="skill"), result("t", 50_000)]
    pruned = prune([user(10), *rounds, *loaded, assistant(10)], PruneToolResults(exempt=["skill"]))
    assert cleared(pruned.messages) == ["a"]


def test_call_id_reused_by_another_tool_is_distinguished() -> None:
    first, second = [calls("a", name="skill"), result("a", 500)], round_of("a", 500)
    pruned = prune(
        [user(10), *first, assistant(10), user(10), *second, assistant(10)], PruneToolResults(0, 0, exempt=["skill"])
    )
    contents = [message["content"] for message in pruned.messages if message["role"] == "tool"]
    assert [content == CLEARED for content in contents] == [False, True]


@pytest.mark.parametrize("ending", [[], [assistant(10)]], ids=["running", "answered"])
def test_unfinished_tool_loop_is_kept(ending: Messages) -> None:
    messages = [user(10), *round_of("old", 500), *round_of("new", 500), *ending]
    pruned = prune(messages, PruneToolResults(0, 0))
    assert cleared(pruned.messages) == (["old", "new"] if ending else ["old"])


def test_placeholder_is_configurable() -> None:
    pruned = prune(history(500, 40), PruneToolResults(40, 0, placeholder="(gone)"))
    assert pruned.messages[2]["content"] == "(gone)"


def use(id: str) -> Json:
    return {"type": "tool_use", "id": id, "name": "read", "input": {}}


def block(id: str, content: Any, **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def test_parallel_results_in_one_message_are_cleared_singly() -> None:
    results = {
        "role": "user",
        "content": [block("a", "x" * 900), block("b", "y" * 900), {"type": "text", "text": "so?"}],
    }
    messages = [user(10), {"role": "assistant", "content": [use("a"), use("b")]}, results, assistant(10), user(10)]
    pruned = prune(messages, PruneToolResults(100, 0), format="anthropic")
    assert pruned.messages[2]["content"] == [
        block("a", CLEARED),
        block("b", "y" * 900),
        {"type": "text", "text": "so?"},
    ]
    assert judge(pruned.messages, "anthropic") == []


def test_cleared_result_keeps_its_error_flag() -> None:
    failed = {"role": "user", "content": [block("a", "x" * 900, is_error=True)]}
    messages = [user(10), {"role": "assistant", "content": [use("a")]}, failed, assistant(10), user(10)]
    pruned = prune(messages, PruneToolResults(0, 0), format="anthropic")
    assert pruned.messages[2]["content"] == [block("a", CLEARED, is_error=True)]


def test_image_in_result_is_cleared_with_it() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    shown = {"role": "user", "content": [block("a", [{"type": "text", "text": "a screen"}, picture])]}
    messages = [user(10), {"role": "assistant", "content": [use("a")]}, shown, assistant(10), user(10)]
    pruned = prune(messages, PruneToolResults(0, 1_000), format="anthropic", estimator="o200k_base")
    assert pruned.messages[2]["content"] == [block("a", [{"type": "text", "text": CLEARED}])]
    assert pruned.tokens_saved > 1_000


def test_signed_thinking_after_cleared_result_is_removed() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    result_message = {"role": "user", "content": [block("a", "x" * 900)]}
    answer = {"role": "assistant", "content": [thinking, {"type": "text", "text": "done"}]}
    messages = [user(10), {"role": "assistant", "content": [use("a")]}, result_message, answer, user(10)]
    pruned = prune(messages, PruneToolResults(0, 0), format="anthropic")
    assert bound_thinking(messages, pruned.messages) == []
    assert pruned.messages[3] == {"role": "assistant", "content": [{"type": "text", "text": "done"}]}


@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data(), protect=st.integers(0, 400))
@settings(max_examples=min(50, settings().max_examples))
def test_pruning_is_idempotent_valid_and_never_grows(profile: str, data: st.DataObject, protect: int) -> None:
    messages: Messages = data.draw(histories.wire(profile))
    strategy = PruneToolResults(protect, 0)
    pruned = prune(messages, strategy, format=profile)
    assert check(pruned.messages, profile) == judge(pruned.messages, profile) == []
    assert tokens_of(pruned.messages, profile) <= tokens_of(repaired(messages, profile), profile)
    assert prune(pruned.messages, strategy, format=profile).messages == pruned.messages


@pytest.mark.parametrize("limits", [(-1, 0), (0, -1), (1.5, 0), (True, 0)])
def test_limits_must_be_whole_numbers(limits: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidLimit, match="must be a whole number of at least 0"):
        PruneToolResults(*limits)


def test_prune_plan_has_only_edits() -> None:
    plan = PRUNE(request_for(history(30_000, 40_000)))
    assert isinstance(plan, Plan)
    assert (plan.cut, plan.head, plan.strategy, list(plan.edited)) == (0, (), "pruning", [2])


def test_answer_of_the_user_in_a_result_is_never_cleared() -> None:
    call = {"id": "ask", "type": "function", "function": {"name": "ask_user", "arguments": "{}"}}
    asked = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "ask", "content": "Only ever use PostgreSQL. " * 400},
    ]
    done = prune([*history(30_000)[:-2], *asked, *history(40_000, 40_000)[1:]])
    assert cleared(list(done.messages)) == ["c0", "c0"] and asked[1] in done.messages
