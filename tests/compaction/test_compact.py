"""`compact(messages, budget=…)`: outcomes, budget, triggers, strategies, invalid input."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import holdfast
from holdfast import HoldfastError, Outcome, PruneToolResults, SlidingWindow, TokenWindow, acompact, check, compact
from holdfast.errors import CheckpointMismatch, InvalidInput, InvalidLimit, UnknownFormat
from holdfast.strategies.names import parse_strategy
from holdfast.triggers import always

Messages = list[dict[str, object]]


def talk(turns: int, words: int = 30) -> Messages:
    text = "some words about the work " * (words // 5)
    return [
        {"role": role, "content": f"{role[0]}{number} {text}"}
        for number in range(1, turns + 1)
        for role in ("user", "assistant")
    ]


def test_compact_under_budget_changes_nothing() -> None:
    messages = talk(3)
    result = compact(messages, budget=100_000)
    assert result.outcome is Outcome.NOT_NEEDED
    assert result.messages == messages
    assert ([event.message for event in result.kept], result.archived, result.checkpoint) == (messages, [], None)


def test_compact_over_budget_reduces_to_half() -> None:
    messages = talk(200)
    result = compact(messages, budget=2_000)
    assert result.outcome is Outcome.COMPACTED
    assert result.tokens_after <= 1_000 < 2_000 < result.tokens_before
    assert result.messages[-2:] == messages[-2:]
    assert check(result.messages, "openai") == []
    assert result.tokens_saved == result.tokens_before - result.tokens_after
    assert len(result.kept) + result.removed == len(messages)


def test_compact_with_target_equal_to_budget_uses_the_budget() -> None:
    messages = talk(200)
    half, whole = compact(messages, budget=2_000), compact(messages, budget=2_000, target=2_000)
    assert 1_700 < whole.tokens_after <= 2_000
    assert len(whole.messages) > len(half.messages)


def test_compact_note_counts_archived_messages() -> None:
    note = str(compact(talk(200), budget=2_000).messages[0]["content"])
    assert "u1 some words" in note
    assert " messages are no longer shown" in note


def test_compact_copies_its_input() -> None:
    messages = talk(3)
    blocks: list[object] = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "http://x"}}]
    messages.append({"role": "user", "content": blocks})
    result = compact(messages, budget=100_000)
    blocks.clear()
    messages[0]["content"] = "changed"
    assert str(result.messages[0]["content"]).startswith("u1")
    assert len(result.messages[-1]["content"]) == 2


def test_compact_counts_system_prompt_and_tools() -> None:
    messages = talk(20)
    bare = compact(messages, budget=10**6)
    tools = [{"name": "read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}]
    full = compact(messages, budget=10**6, system="You are careful. " * 50, tools=tools)
    assert full.tokens_before > bare.tokens_before + 150
    listed = compact([{"role": "system", "content": "You are careful. " * 50}, *messages], budget=10**6)
    assert listed.tokens_before > bare.tokens_before + 150


def test_compact_keeps_system_messages() -> None:
    system = {"role": "system", "content": "You are careful."}
    result = compact([system, *talk(200)], budget=2_000, strategy=SlidingWindow(4))
    assert result.messages[0] == system
    assert len(result.messages) == 5


def test_compact_with_budget_below_newest_message_cannot_fit() -> None:
    messages = [*talk(5), {"role": "user", "content": "a very long question " * 200}]
    result = compact(messages, budget=50)
    assert result.outcome is Outcome.CANNOT_FIT
    assert result.messages == messages[-1:]
    assert "smallest valid context" in result.why


def test_compact_keeps_an_unfinished_tool_loop() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    loop: Messages = [
        {"role": "user", "content": "read it"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "x" * 5_000},
    ]
    result = compact([*talk(20), *loop], budget=100)
    assert result.outcome is Outcome.COMPACTED and result.tokens_after <= 100
    assert result.messages[:2] == loop[:2]
    assert str(result.messages[2]["content"]).startswith("[cut: 43]\nxxx"), "what may not be archived is shortened"


def test_compact_with_a_strategy_still_meets_the_budget() -> None:
    messages = talk(100)
    assert len(compact(messages, budget=1_000, strategy=SlidingWindow(4)).messages) == 4
    followed = compact(messages, budget=1_000, strategy=SlidingWindow(100))
    assert followed.strategy == "sliding window+token window"
    assert followed.tokens_after <= 1_000


def test_compact_uses_the_given_trigger() -> None:
    messages = talk(10)
    assert compact(messages, budget=10**6, trigger=always, strategy=SlidingWindow(2)).outcome == "compacted"
    assert compact(messages, budget=10, trigger=lambda request: False).outcome == "not_needed"


def test_pruning_archives_nothing_and_keeps_the_round() -> None:
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


def test_estimator_may_be_a_name_or_a_callable() -> None:
    messages = talk(10)
    assert compact(messages, budget=10**6, estimator=len).tokens_before == sum(len(str(m["content"])) for m in messages)
    assert compact(messages, budget=10**6, estimator="chars/4").tokens_before > 0


def test_acompact_equals_compact() -> None:
    messages = talk(100)
    result = anyio.run(lambda: acompact(messages, budget=1_000))
    assert result.messages == compact(messages, budget=1_000).messages


@pytest.mark.parametrize(
    ("messages", "options", "error", "words"),
    [
        ([{"text": "hi"}], {}, UnknownFormat, "no known format"),
        ([{"role": "wizard", "content": "hi"}], {}, InvalidInput, "has the role 'wizard'"),
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
def test_invalid_input_raises_a_holdfast_error(
    messages: object, options: dict[str, object], error: type, words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        compact(messages, **{"budget": 1_000, **options})  # type: ignore[arg-type]
    assert isinstance(caught.value, HoldfastError)


def test_compact_of_an_empty_list_has_nothing_to_compact() -> None:
    result = compact([], budget=10, trigger=always)
    assert (result.outcome, result.messages) == (Outcome.NOTHING_TO_COMPACT, [])


def test_public_names_are_sorted_and_importable() -> None:
    assert list(holdfast.__all__) == sorted(holdfast.__all__)
    assert all(hasattr(holdfast, name) for name in holdfast.__all__)


def test_token_window_uses_its_own_estimator() -> None:
    messages = talk(10)
    result = compact(messages, budget=10**6, trigger=always, strategy=TokenWindow(2, estimator=lambda text: 1))
    assert result.messages == messages[-2:]


@pytest.mark.parametrize("name", ["sliding:3", "prune+tokens:40", "last:4", "fraction:0.2"])
def test_strategy_may_be_named_as_on_the_command_line(name: str) -> None:
    messages = [{"role": role, "content": f"{number} " * 20} for number in range(20) for role in ("user", "assistant")]
    by_name = compact(messages, budget=10_000, strategy=name, trigger=always)
    assert by_name.outcome is Outcome.COMPACTED
    assert by_name.messages == compact(messages, budget=10_000, strategy=parse_strategy(name), trigger=always).messages
    assert compact(messages, budget=600, strategy="default").messages == compact(messages, budget=600).messages


def test_unknown_strategy_name_is_refused_with_the_closest() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'sliding'"):
        compact([{"role": "user", "content": "hi"}], budget=100, strategy="slidng:20")


@pytest.mark.parametrize("previous", [{"a": 1}, '{"a": 1}', "[1]"])
def test_previous_that_is_no_checkpoint_is_refused_in_one_line(previous: Any) -> None:
    with pytest.raises(CheckpointMismatch, match="previous= takes the `checkpoint` of an earlier result") as refused:
        compact([{"role": "user", "content": "hi"}], budget=100, previous=previous)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("format", [None, "openai-chat", "openai-responses", "anthropic"])
def test_unknown_role_is_named_in_the_error(format: str | None) -> None:
    with pytest.raises(InvalidInput, match="role 'narrator'"):
        compact([{"role": "narrator", "content": "hi"}], budget=100, format=format)
