"""`compact(messages, budget=…)`: what people meet first."""

from __future__ import annotations

import anyio
import pytest

import holdfast
from holdfast import (
    HoldfastError,
    Outcome,
    PruneToolResults,
    SlidingWindow,
    TokenWindow,
    acompact,
    always,
    check,
    compact,
)
from holdfast.errors import CheckpointMismatch, InvalidInput, InvalidLimit, UnknownFormat

Messages = list[dict[str, object]]


def talk(turns: int, words: int = 30) -> Messages:
    said = "some words about the work " * (words // 5)
    return [
        {"role": role, "content": f"{role[0]}{number} {said}"}
        for number in range(1, turns + 1)
        for role in ("user", "assistant")
    ]


def test_under_the_budget_nothing_happens() -> None:
    messages = talk(3)
    result = compact(messages, budget=100_000)
    assert result.outcome is Outcome.NOT_NEEDED
    assert result.messages == messages
    assert (result.kept, result.archived, result.checkpoint) == (messages, [], None)


def test_over_the_budget_it_comes_down_to_half() -> None:
    messages = talk(200)
    result = compact(messages, budget=2_000)
    assert result.outcome is Outcome.COMPACTED
    assert result.tokens_after <= 1_000 < 2_000 < result.tokens_before
    assert result.messages[-2:] == messages[-2:]
    assert check(result.messages, "openai") == []
    assert result.tokens_saved == result.tokens_before - result.tokens_after
    assert len(result.kept) + result.removed == len(messages)


def test_with_target_equal_to_budget_the_whole_budget_is_used() -> None:
    messages = talk(200)
    half, whole = compact(messages, budget=2_000), compact(messages, budget=2_000, target=2_000)
    assert 1_700 < whole.tokens_after <= 2_000
    assert len(whole.messages) > len(half.messages)


def test_a_note_says_what_is_missing() -> None:
    note = str(compact(talk(200), budget=2_000).messages[0]["content"])
    assert "u1 some words" in note
    assert " messages are archived" in note


def test_the_input_is_copied() -> None:
    messages = talk(3)
    blocks: list[object] = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "http://x"}}]
    messages.append({"role": "user", "content": blocks})
    result = compact(messages, budget=100_000)
    blocks.clear()
    messages[0]["content"] = "changed"
    assert str(result.messages[0]["content"]).startswith("u1")
    assert len(result.messages[-1]["content"]) == 2


def test_system_prompt_and_tools_count() -> None:
    messages = talk(20)
    bare = compact(messages, budget=10**6)
    tools = [{"name": "read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}]
    full = compact(messages, budget=10**6, system="You are careful. " * 50, tools=tools)
    assert full.tokens_before > bare.tokens_before + 150
    listed = compact([{"role": "system", "content": "You are careful. " * 50}, *messages], budget=10**6)
    assert listed.tokens_before > bare.tokens_before + 150


def test_a_system_message_in_the_list_always_stays() -> None:
    system = {"role": "system", "content": "You are careful."}
    result = compact([system, *talk(200)], budget=2_000, strategy=SlidingWindow(4))
    assert result.messages[0] == system
    assert len(result.messages) == 5


def test_a_budget_below_the_newest_message_is_an_outcome_not_an_exception() -> None:
    messages = [*talk(5), {"role": "user", "content": "a very long question " * 200}]
    result = compact(messages, budget=50)
    assert result.outcome is Outcome.CANNOT_FIT
    assert result.messages == messages[-1:]
    assert "smallest valid context" in result.why


def test_an_unfinished_tool_loop_is_never_cut() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    loop: Messages = [
        {"role": "user", "content": "read it"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "x" * 5_000},
    ]
    result = compact([*talk(20), *loop], budget=100)
    assert result.outcome is Outcome.CANNOT_FIT
    assert result.messages == loop


def test_a_strategy_by_hand_has_its_own_limit_and_the_budget_still_holds() -> None:
    messages = talk(100)
    assert len(compact(messages, budget=1_000, strategy=SlidingWindow(4)).messages) == 4
    followed = compact(messages, budget=1_000, strategy=SlidingWindow(100))
    assert followed.strategy == "sliding window+token window"
    assert followed.tokens_after <= 1_000


def test_a_trigger_decides_if_one_is_given() -> None:
    messages = talk(10)
    assert compact(messages, budget=10**6, trigger=always, strategy=SlidingWindow(2)).outcome == "compacted"
    assert compact(messages, budget=10, trigger=lambda request: False).outcome == "not_needed"


def test_pruning_archives_nothing_and_keeps_its_round() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages: Messages = [
        {"role": "user", "content": "read it"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "x" * 9_000},
        {"role": "assistant", "content": "done"},
    ]
    result = compact(messages, budget=100, trigger=always, strategy=PruneToolResults(0, 100))
    assert (result.outcome, result.removed, result.round, len(result.edited)) == ("compacted", 0, 0, 1)
    assert [m for i, m in enumerate(result.messages) if i != 2] == [m for i, m in enumerate(messages) if i != 2]


def test_the_estimator_is_a_name_an_object_or_a_callable() -> None:
    messages = talk(10)
    assert compact(messages, budget=10**6, estimator=len).tokens_before == sum(len(str(m["content"])) for m in messages)
    assert compact(messages, budget=10**6, estimator="chars/4").tokens_before > 0


def test_async_code_gets_the_same() -> None:
    messages = talk(100)
    result = anyio.run(lambda: acompact(messages, budget=1_000))
    assert result.messages == compact(messages, budget=1_000).messages


@pytest.mark.parametrize(
    ("messages", "options", "error", "words"),
    [
        ([{"text": "hi"}], {}, UnknownFormat, "no format known"),
        ([{"role": "wizard", "content": "hi"}], {}, UnknownFormat, "no format known"),
        (
            [{"role": "user", "parts": [{"text": "a"}]}, {"role": "tool", "content": "b"}],
            {},
            UnknownFormat,
            "one format",
        ),
        ("hello", {}, InvalidInput, "list of messages"),
        ([42], {}, InvalidInput, "Message 0"),
        (talk(1), {"budget": 0}, InvalidLimit, "at least 1"),
        (talk(1), {"budget": -5}, InvalidLimit, "at least 1"),
        (talk(1), {"budget": 10, "target": 0}, InvalidLimit, "at least 1"),
        (talk(1), {"budget": 10, "target": 11}, InvalidLimit, "above budget"),
        (talk(1), {"format": "morse"}, UnknownFormat, "not a message format"),
        (talk(1), {"estimator": "abacus"}, InvalidInput, "not an estimator"),
        (talk(1), {"previous": {"boundary": 7}}, CheckpointMismatch, "earlier result"),
        (talk(1), {"summarizer": "any:model"}, InvalidInput, "There is no provider"),
        (talk(1), {"summarizer": 7}, InvalidInput, "A summarizer is"),
    ],
)
def test_bad_input_is_one_clear_error(messages: object, options: dict[str, object], error: type, words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        compact(messages, **{"budget": 1_000, **options})  # type: ignore[arg-type]
    assert isinstance(caught.value, HoldfastError)


def test_nothing_to_compact_in_an_empty_list() -> None:
    result = compact([], budget=10, trigger=always)
    assert (result.outcome, result.messages) == (Outcome.NOTHING_TO_COMPACT, [])


def test_the_door_is_listed_in_order() -> None:
    assert list(holdfast.__all__) == sorted(holdfast.__all__)
    assert all(hasattr(holdfast, name) for name in holdfast.__all__)


def test_a_window_with_an_estimator_of_its_own() -> None:
    messages = talk(10)
    result = compact(messages, budget=10**6, trigger=always, strategy=TokenWindow(2, estimator=lambda text: 1))
    assert result.messages == messages[-2:]
