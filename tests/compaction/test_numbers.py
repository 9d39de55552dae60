"""Notes cite messages by their place in what the caller has, whatever had to be put in to mend it (H1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast import CompactionResult, KeepLedger, Pipeline, SlidingWindow, acompact, compact, recall_messages
from holdfast.errors import InvalidInput

pytestmark = pytest.mark.anyio
Messages = list[dict[str, Any]]
CITED = re.compile(r"\[(\d+)\] (Order \d+:)")


def interrupted(first: int, last: int, format: str) -> Messages:
    """Orders, each with a call that nobody answered."""
    messages: Messages = []
    for number in range(first, last):
        id = f"c{number}"
        arguments = f'{{"berth": {number}}}'
        if format == "anthropic":
            called: dict[str, Any] = {"content": [{"type": "tool_use", "id": id, "name": "look", "input": {}}]}
        else:
            function = {"name": "look", "arguments": arguments}
            called = {"content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}
        messages += [
            {"role": "user", "content": f"Order {number}: paint berth {number}."},
            {"role": "assistant", **called},
            {"role": "user", "content": f"Never mind {number}. " + "It rains on the pier again. " * 20},
        ]
    return messages


def cited(result: CompactionResult) -> list[tuple[str, str]]:
    found = CITED.findall(str(result.messages[0]["content"]))
    assert len(found) > 5
    return found


def assert_they_name(found: Sequence[tuple[str, str]], history: Messages) -> None:
    for number, text in found:
        assert text in str(history[int(number) - 1]["content"]), (number, text)


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
async def test_h1_answers_that_mending_puts_in_are_not_counted(format: str) -> None:
    history = interrupted(0, 60, format)
    result = compact(history, budget=3_000, format=format)
    assert_they_name(cited(result), history)
    recall = await recall_messages(history, format=format)
    for number, text in cited(result)[::5]:
        assert text in (await recall.read(f"[{number}]")).text


def test_no_more_are_archived_than_there_were() -> None:
    history = interrupted(0, 60, "openai-chat")
    said = re.search(r": (\d+) messages are archived", compact(history, budget=3_000).messages[0]["content"])
    assert said is not None and int(said[1]) <= len(history)


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("hands_in", ["the whole history", "the last result"])
def test_h1_the_next_rounds_count_on(hands_in: str, format: str) -> None:
    history: Messages = []
    context: Messages = []
    checkpoint: Any = None
    for start in (0, 40, 80):
        new = interrupted(start, start + 40, format)
        history, context = history + new, context + new
        given = history if hands_in == "the whole history" else context
        result = compact(given, budget=3_000, format=format, previous=checkpoint)
        context, checkpoint = list(result.messages), result.checkpoint
        assert_they_name(cited(result), history)


def test_a_later_stage_cites_as_the_first_would() -> None:
    history = interrupted(0, 60, "openai-chat")
    result = compact(history, budget=3_000, strategy=Pipeline(SlidingWindow(120), KeepLedger(1_500)))
    assert result.strategy == "sliding window+ledger"
    assert_they_name(cited(result), history)


def test_who_knows_the_messages_by_other_numbers_gives_them() -> None:
    history = interrupted(0, 60, "openai-chat")
    result = compact(history, budget=3_000, numbers=range(1_001, 1_001 + len(history)))
    found = [(str(int(number.replace(",", "")) - 1_000), text) for number, text in _cited_far(result)]
    assert len(found) > 5
    assert_they_name(found, history)


def _cited_far(result: CompactionResult) -> list[tuple[str, str]]:
    return re.findall(r"\[([\d,]+)\] (Order \d+:)", result.messages[0]["content"])


def test_each_message_needs_a_number() -> None:
    with pytest.raises(InvalidInput, match="2 numbers for 3 messages"):
        compact(interrupted(0, 1, "openai-chat"), budget=3_000, numbers=[1, 2])


@pytest.mark.parametrize("given", [None, "hello", {"role": "user", "content": "hello"}, 7])
async def test_what_is_no_list_is_refused_alike_with_and_without_async(given: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        compact(given, budget=100)
    with pytest.raises(InvalidInput, match=f"^{re.escape(str(refused.value))}$"):
        await acompact(given, budget=100)
