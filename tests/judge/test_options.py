"""Options of the judge, and pairs that only the earlier history determines."""

from typing import Any

import pytest

from judge import PROFILES, bound_reasoning, judge

Message = dict[str, Any]
USER: Message = {"role": "user", "content": "hi"}
HI: Message = {"role": "user", "parts": [{"text": "hi"}]}
CALL: Message = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
WAITING: dict[str, list[Message]] = {
    "openai-chat": [USER, {"role": "assistant", "tool_calls": [CALL]}],
    "openai-responses": [USER, {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"}],
    "anthropic": [
        USER,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {}}]},
    ],
    "gemini": [HI, {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]}],
    "ai-sdk": [
        USER,
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "a", "toolName": "read", "input": {}}],
        },
    ],
}


@pytest.mark.parametrize("profile", PROFILES)
def test_judge_pending_calls_are_accepted_only_as_history(profile: str) -> None:
    assert judge(WAITING[profile], profile) == []
    assert len(judge(WAITING[profile], profile, pending_ok=False)) == 1


@pytest.mark.parametrize("profile", PROFILES)
def test_judge_unknown_fields_are_rejected_on_request(profile: str) -> None:
    first, *rest = WAITING[profile]
    assert judge([first, *rest], profile, extras_ok=False) == []
    marked = [{**first, "x_trace": 1}, *rest]
    assert judge(marked, profile) == []
    found = judge(marked, profile, extras_ok=False)
    assert len(found) == 1
    assert "x_trace" in found[0]


def step(signature: str | None) -> list[Message]:
    part: Message = {"functionCall": {"name": "read", "args": {}}}
    signed = {**part, "thoughtSignature": signature} if signature else part
    response: Message = {"functionResponse": {"name": "read", "response": {}}}
    return [{"role": "model", "parts": [signed, part]}, {"role": "user", "parts": [response, response]}]


def test_judge_gemini_3_requires_signature_on_first_call_of_current_steps() -> None:
    signed = [HI, *step("s"), *step("s")]
    unsigned = [HI, *step("s"), *step(None)]
    assert judge(signed, "gemini", need_thought_signature=True) == []
    assert judge(unsigned, "gemini") == []
    (found,) = judge(unsigned, "gemini", need_thought_signature=True)
    assert "missing a thought_signature" in found
    assert "contents[3].parts[0]" in found


def test_judge_gemini_3_ignores_signatures_of_earlier_turns() -> None:
    assert judge([HI, *step(None), HI, *step("s")], "gemini", need_thought_signature=True) == []


THOUGHT: Message = {"type": "reasoning", "id": "rs_1", "summary": []}
NEXT: Message = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "read", "arguments": "{}"}
DONE: Message = {"type": "function_call_output", "call_id": "a", "output": "x"}
BEFORE = [USER, THOUGHT, NEXT, DONE]


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(BEFORE, id="the same"),
        pytest.param([USER], id="all gone"),
        pytest.param([THOUGHT, {**NEXT, "arguments": ""}, DONE], id="the pair moved and shortened"),
        pytest.param([USER, {k: v for k, v in NEXT.items() if k != "id"}, DONE], id="id stripped"),
    ],
)
def test_judge_reasoning_still_verifies(after: list[Message]) -> None:
    assert bound_reasoning(BEFORE, after) == []


@pytest.mark.parametrize(
    "after",
    [
        pytest.param([USER, NEXT, DONE], id="reasoning dropped"),
        pytest.param([NEXT, DONE], id="reasoning cut off"),
        pytest.param([THOUGHT, USER, NEXT, DONE], id="something between"),
    ],
)
def test_judge_reasoning_lost_is_found(after: list[Message]) -> None:
    (found,) = bound_reasoning(BEFORE, after)
    assert found.startswith("Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item")
