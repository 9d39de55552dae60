"""Notes cite messages by their position in the input, even if repair inserted messages (H1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast import CompactionResult, KeepLedger, Pipeline, SlidingWindow, acompact, compact
from holdfast.errors import InvalidInput
from holdfast.recall import recall_messages

pytestmark = pytest.mark.anyio
Messages = list[dict[str, Any]]
CITED = re.compile(r"\[(\d+)\] (Order \d+:)")


def interrupted(first: int, last: int, format: str) -> Messages:
    """Orders, each with a tool call without a result."""
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


def assert_citations_match(found: Sequence[tuple[str, str]], history: Messages) -> None:
    for number, text in found:
        assert text in str(history[int(number) - 1]["content"]), (number, text)


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
async def test_h1_results_added_by_repair_are_not_numbered(format: str) -> None:
    history = interrupted(0, 60, format)
    result = compact(history, budget=3_000, format=format)
    assert_citations_match(cited(result), history)
    recall = await recall_messages(history, format=format)
    for number, text in cited(result)[::5]:
        assert text in (await recall.read(f"[{number}]")).text


def test_archived_count_is_at_most_the_input() -> None:
    history = interrupted(0, 60, "openai-chat")
    count = re.search(r": (\d+) messages are no longer shown", compact(history, budget=3_000).messages[0]["content"])
    assert count is not None and int(count[1]) <= len(history)


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("passes", ["the whole history", "the last result"])
def test_h1_numbers_continue_in_later_rounds(passes: str, format: str) -> None:
    history: Messages = []
    context: Messages = []
    checkpoint: Any = None
    for start in (0, 40, 80):
        new = interrupted(start, start + 40, format)
        history, context = history + new, context + new
        given = history if passes == "the whole history" else context
        result = compact(given, budget=3_000, format=format, previous=checkpoint)
        context, checkpoint = list(result.messages), result.checkpoint
        assert_citations_match(cited(result), history)


def test_later_stage_cites_input_numbers() -> None:
    history = interrupted(0, 60, "openai-chat")
    result = compact(history, budget=3_000, strategy=Pipeline(SlidingWindow(120), KeepLedger(1_500)))
    assert result.strategy == "sliding window+ledger"
    assert_citations_match(cited(result), history)


def test_given_numbers_are_used_in_citations() -> None:
    history = interrupted(0, 60, "openai-chat")
    result = compact(history, budget=3_000, numbers=range(1_001, 1_001 + len(history)))
    found = [(str(int(number.replace(",", "")) - 1_000), text) for number, text in _cited_thousands(result)]
    assert len(found) > 5
    assert_citations_match(found, history)


def _cited_thousands(result: CompactionResult) -> list[tuple[str, str]]:
    return re.findall(r"\[([\d,]+)\] (Order \d+:)", result.messages[0]["content"])


def test_too_few_numbers_are_rejected() -> None:
    with pytest.raises(InvalidInput, match="2 numbers for 3 messages"):
        compact(interrupted(0, 1, "openai-chat"), budget=3_000, numbers=[1, 2])


@pytest.mark.parametrize("given", [None, "hello", {"role": "user", "content": "hello"}, 7])
async def test_input_that_is_not_a_list_is_rejected_sync_and_async(given: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        compact(given, budget=100)
    with pytest.raises(InvalidInput, match=f"^{re.escape(str(refused.value))}$"):
        await acompact(given, budget=100)
