"""Reasoning that is removed inside a running tool loop is named in the remarks: the model goes on without it."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import compact

Json = dict[str, Any]
LONG = "one more line of text. " * 400
OLD: list[Json] = [{"role": "user", "content": LONG}, {"role": "assistant", "content": LONG}] * 10
ASK: Json = {"role": "user", "content": "go"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
CALL = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
REMARK = "reasoning in the tool loop that still runs was removed: its signature covers messages that changed"


def reply(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def result(name: str = "a") -> Json:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "done"}]}


def remarks(*messages: Json, format: str = "anthropic", old: list[Json] = OLD) -> list[str]:
    done = compact([*old, *messages], budget=9_000, target=6_000, format=format)
    assert done.outcome == "compacted"
    return [remark for remark in done.remarks if "reasoning" in remark]


@pytest.mark.parametrize(
    "loop",
    [
        [reply(THOUGHT, CALL), result()],
        [reply(THOUGHT, CALL)],
        [reply(THOUGHT, CALL), result(), reply(THOUGHT, CALL | {"id": "b"}), result("b")],
        [reply(THOUGHT, CALL), result(), reply(CALL | {"id": "b"}), result("b")],
    ],
    ids=["answered", "waits", "two rounds", "first round"],
)
def test_reasoning_removed_from_a_running_tool_loop_is_named_once(loop: list[Json]) -> None:
    assert remarks(ASK, *loop) == [REMARK]


def test_reasoning_of_another_provider_behind_the_ai_sdk_is_named() -> None:
    thought = {"type": "reasoning", "text": "hm", "providerOptions": {"anthropic": {"signature": "s"}}}
    call = {"type": "tool-call", "toolCallId": "a", "toolName": "read", "input": {}}
    assert remarks(ASK, reply(thought, call), format="ai-sdk") == [REMARK]


@pytest.mark.parametrize(
    "end",
    [
        [reply(THOUGHT, CALL), result(), reply({"type": "text", "text": "done"})],
        [reply(THOUGHT, CALL), result(), reply({"type": "text", "text": "done"}), ASK],
        [reply(CALL), result()],
        [],
    ],
    ids=["finished", "next turn", "no reasoning", "no loop"],
)
def test_reasoning_outside_a_running_tool_loop_is_not_named(end: list[Json]) -> None:
    assert remarks(ASK, *end) == []


def test_reasoning_that_stays_is_not_named() -> None:
    """OpenAI's is bound to the item that follows it, and not to what came before."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gA"}
    call = {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "a", "output": "done"}
    assert remarks(ASK, thought, call, output, format="openai-responses") == []
