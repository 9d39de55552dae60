"""The judge of unread results, on requests in each wire format (H10)."""

from typing import Any

import pytest

from judge.unread import CutResult, cut_results, marked_results, newest_part, unread_results

Message = dict[str, Any]


def _chat(first: str, second: str) -> list[Message]:
    calls = [{"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}} for id in ("a", "b")]
    return [
        {"role": "user", "content": "Read both."},
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": first},
        {"role": "tool", "tool_call_id": "b", "content": second},
    ]


def _responses(first: str, second: str) -> list[Message]:
    return [
        {"role": "user", "content": "Read both."},
        *({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"} for id in ("a", "b")),
        {"type": "function_call_output", "call_id": "a", "output": first},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": second}]},
    ]


def _anthropic(first: str, second: str) -> list[Message]:
    return [
        {"role": "user", "content": "Read both."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "read", "input": {}} for i in "ab"]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": first},
                {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": second}]},
            ],
        },
    ]


def _gemini(first: str, second: str) -> list[Message]:
    given = [{"functionResponse": {"name": "read", "response": {"result": text}}} for text in (first, second)]
    return [
        {"role": "user", "parts": [{"text": "Read both."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}] * 2},
        {"role": "user", "parts": given},
    ]


def _sdk(first: str, second: str) -> list[Message]:
    called = [{"type": "tool-call", "toolCallId": id, "toolName": "read", "input": {}} for id in ("a", "b")]
    given = [
        {"type": "tool-result", "toolCallId": id, "toolName": "read", "output": {"type": "text", "value": text}}
        for id, text in (("a", first), ("b", second))
    ]
    return [
        {"role": "user", "content": "Read both."},
        {"role": "assistant", "content": called},
        {"role": "tool", "content": given},
    ]


REQUESTS = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ai-sdk": _sdk,
}
REPLIES: dict[str, Message] = {name: {"role": "assistant", "content": "Both are free."} for name in REQUESTS}
REPLIES["gemini"] = {"role": "model", "parts": [{"text": "Both are free."}]}
each_format = pytest.mark.parametrize("profile", REQUESTS)


@each_format
def test_results_are_unread_until_a_reply_follows(profile: str) -> None:
    messages = REQUESTS[profile]("berth 1 is free", "berth 2 is taken")
    assert unread_results(messages, profile) == ["berth 1 is free", "berth 2 is taken"]
    assert unread_results([*messages, REPLIES[profile]], profile) == []


@each_format
def test_what_is_missing_of_a_result_is_counted(profile: str) -> None:
    before = REQUESTS[profile]("berth 1 is free", "berth 2 is taken")
    after = REQUESTS[profile]("[cut: 3]", "berth 2 is taken")
    assert cut_results(before, before, profile) == []
    assert cut_results(before, after, profile) == [CutResult("berth 1 is free", 7)]


@each_format
def test_marks_of_shortened_and_cleared_results_are_found(profile: str) -> None:
    gap = "[… 1,200 characters left out: ask for them in parts]"
    shown = REQUESTS[profile](f"[cut: 3]\nberth 1\n{gap}\nis free", "[Old tool result cleared.]")
    assert marked_results(shown, profile) == [CutResult("", 1_200), CutResult("", 0)]
    assert marked_results([*shown, REPLIES[profile]], profile) == []


@each_format
def test_newest_part_is_what_the_user_asked_and_the_calls_with_their_results(profile: str) -> None:
    messages = REQUESTS[profile]("berth 1 is free", "berth 2 is taken")
    assert newest_part([messages[0], REPLIES[profile], *messages], profile) == messages
