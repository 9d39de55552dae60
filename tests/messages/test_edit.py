"""Edits of kept messages: one part changes, its siblings, their fields and their order stay (H6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.errors import InvalidInput
from holdfast.messages import (
    Drop,
    Json,
    Message,
    Replace,
    Text,
    ToolCall,
    ToolResult,
    apply_edits,
    change,
    decode_all,
    drop_parts,
    encode_all,
    fold_edits,
    rename_calls,
)

MARK = {"type": "ephemeral"}
LONG = "a long result"
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "s"}
CITED: Json = {"type": "text", "text": "answer", "cache_control": MARK, "citations": [{"cited_text": "x"}], "more": 1}
SHOT = {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}}
CALL = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}, "extra": 1}
OPTIONS: Json = {"providerOptions": {"anthropic": {"cacheControl": MARK}}}
THOUGHT = {"type": "reasoning", "text": "hm", "providerOptions": {"anthropic": {"signature": "s"}}}
AI_TEXT = {"type": "text", "text": "answer", **OPTIONS, "more": 1}
AI_CALL = {"type": "tool-call", "toolCallId": "a", "toolName": "read", "input": {}, **OPTIONS}
AI_RESULT: Json = {"type": "tool-result", "toolCallId": "a", "toolName": "read", **OPTIONS}
AI_SHOT = {"type": "image-data", "data": "iVBORw0KGgo=", "mediaType": "image/png"}


def decoded(payload: Json, format: str) -> Message:
    return decode_all([payload], format)[0][0]


def sent(message: Message) -> str:
    return json.dumps(encode_all([message], message.format or "common"))


CASES: dict[str, tuple[str, Json, dict[int, str | None], Json | None]] = {
    "anthropic: thinking goes, citations and cache mark stay": (
        "anthropic",
        {"role": "assistant", "content": [SIGNED, CITED], "name": "kept"},
        {0: None},
        {"role": "assistant", "content": [CITED], "name": "kept"},
    ),
    "anthropic: a result keeps its mark": (
        "anthropic",
        {
            "role": "user",
            "content": [{"cache_control": MARK, "tool_use_id": "a", "type": "tool_result", "content": LONG}],
        },
        {0: "cut"},
        {
            "role": "user",
            "content": [{"cache_control": MARK, "tool_use_id": "a", "type": "tool_result", "content": "cut"}],
        },
    ),
    "anthropic: the first text block of a result is rewritten, the others go": (
        "anthropic",
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": [SHOT, CITED, SHOT]}, CITED],
        },
        {0: "cut"},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": [CITED | {"text": "cut"}]}, CITED],
        },
    ),
    "chat: a tool message keeps its name": (
        "openai-chat",
        {"tool_call_id": "a", "role": "tool", "name": "read", "content": LONG},
        {0: "cut"},
        {"tool_call_id": "a", "role": "tool", "name": "read", "content": "cut"},
    ),
    "chat: a failed result stays failed": (
        "openai-chat",
        {"role": "tool", "tool_call_id": "a", "content": f"[tool error] {LONG}"},
        {0: "cut"},
        {"role": "tool", "tool_call_id": "a", "content": "[tool error] cut"},
    ),
    "chat: dropped words leave null beside calls": (
        "openai-chat",
        {"role": "assistant", "content": "words", "tool_calls": [CALL], "x": 1},
        {0: None},
        {"role": "assistant", "content": None, "tool_calls": [CALL], "x": 1},
    ),
    "chat: the last dropped part of a list leaves null": (
        "openai-chat",
        {"role": "assistant", "content": [{"type": "text", "text": "words"}], "tool_calls": [CALL]},
        {0: None},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
    ),
    "chat: no empty list of calls is left": (
        "openai-chat",
        {"role": "assistant", "content": "words", "tool_calls": [CALL], "x": 1},
        {1: None},
        {"role": "assistant", "content": "words", "x": 1},
    ),
    "chat: reasoning goes from both of its fields": (
        "openai-chat",
        {"role": "assistant", "reasoning": "hm", "reasoning_content": "hm", "content": "words"},
        {0: None},
        {"role": "assistant", "content": "words"},
    ),
    "responses: an output keeps its id and status": (
        "openai-responses",
        {"type": "function_call_output", "id": "fo", "call_id": "a", "status": "completed", "output": LONG},
        {0: "cut"},
        {"type": "function_call_output", "id": "fo", "call_id": "a", "status": "completed", "output": "cut"},
    ),
    "responses: a shell's output keeps its outcome": (
        "openai-responses",
        {
            "type": "shell_call_output",
            "call_id": "a",
            "max_output_length": 9,
            "output": [
                {"stdout": LONG, "stderr": "e", "outcome": {"type": "exit", "exit_code": 2}},
                {"stdout": "more"},
            ],
        },
        {0: "cut"},
        {
            "type": "shell_call_output",
            "call_id": "a",
            "max_output_length": 9,
            "output": [{"stdout": "cut", "stderr": "", "outcome": {"type": "exit", "exit_code": 2}}],
        },
    ),
    "responses: a message keeps its id": (
        "openai-responses",
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "a", "annotations": [1]}],
        },
        {0: "cut"},
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "cut", "annotations": [1]}],
        },
    ),
    "gemini: an answer keeps its key and its fields": (
        "gemini",
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "a", "name": "read", "response": {"result": LONG}}, "x": 1}],
        },
        {0: "cut"},
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "a", "name": "read", "response": {"result": "cut"}}, "x": 1}],
        },
    ),
    "gemini: an answer of many fields becomes one text": (
        "gemini",
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"a": 1, "b": 2}}}]},
        {0: "cut"},
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "cut"}}}]},
    ),
    "ai-sdk: reasoning goes, the options of its siblings stay": (
        "ai-sdk",
        {"role": "assistant", "content": [THOUGHT, AI_TEXT, AI_CALL], "id": "m"},
        {0: None},
        {"role": "assistant", "content": [AI_TEXT, AI_CALL], "id": "m"},
    ),
    "ai-sdk: an output keeps its options": (
        "ai-sdk",
        {"role": "tool", "content": [AI_RESULT | {"output": {"value": LONG, "type": "error-text", "x": 1}}, AI_RESULT]},
        {0: "cut"},
        {
            "role": "tool",
            "content": [AI_RESULT | {"output": {"value": "cut", "type": "error-text", "x": 1}}, AI_RESULT],
        },
    ),
    "ai-sdk: an output that is no text becomes one": (
        "ai-sdk",
        {"role": "tool", "content": [AI_RESULT | {"output": {"type": "json", "value": {"a": LONG}, "x": 1}}]},
        {0: "cut"},
        {"role": "tool", "content": [AI_RESULT | {"output": {"type": "text", "value": "cut", "x": 1}}]},
    ),
    "ai-sdk: an error that is no text becomes one": (
        "ai-sdk",
        {"role": "tool", "content": [AI_RESULT | {"output": {"type": "error-json", "value": {"a": LONG}}}]},
        {0: "cut"},
        {"role": "tool", "content": [AI_RESULT | {"output": {"type": "error-text", "value": "cut"}}]},
    ),
    "ai-sdk: a denial has another reason": (
        "ai-sdk",
        {"role": "tool", "content": [AI_RESULT | {"output": {"type": "execution-denied"}}]},
        {0: "cut"},
        {"role": "tool", "content": [AI_RESULT | {"output": {"type": "execution-denied", "reason": "cut"}}]},
    ),
    "ai-sdk: the first text of an output is rewritten, its media go": (
        "ai-sdk",
        {"role": "tool", "content": [AI_RESULT | {"output": {"type": "content", "value": [AI_SHOT, AI_TEXT]}}]},
        {0: "cut"},
        {
            "role": "tool",
            "content": [AI_RESULT | {"output": {"type": "content", "value": [AI_TEXT | {"text": "cut"}]}}],
        },
    ),
    "ai-sdk: an output of media alone becomes a text": (
        "ai-sdk",
        {"role": "tool", "content": [AI_RESULT | {"output": {"type": "content", "value": [AI_SHOT]}}]},
        {0: "cut"},
        {
            "role": "tool",
            "content": [AI_RESULT | {"output": {"type": "content", "value": [{"type": "text", "text": "cut"}]}}],
        },
    ),
    "ai-sdk: a result of version 4 is a text, whatever it was": (
        "ai-sdk",
        {"role": "tool", "content": [AI_RESULT | {"result": {"a": LONG}, "experimental_content": [AI_SHOT], "x": 1}]},
        {0: "cut"},
        {"role": "tool", "content": [AI_RESULT | {"result": "cut", "x": 1}]},
    ),
    "ai-sdk: a call goes from both of its places": (
        "ai-sdk",
        {"role": "assistant", "content": [AI_TEXT, AI_CALL], "toolCalls": [AI_CALL, AI_CALL | {"toolCallId": "b"}]},
        {1: None},
        {"role": "assistant", "content": [AI_TEXT], "toolCalls": [AI_CALL | {"toolCallId": "b"}]},
    ),
    "ai-sdk: dropped words leave an empty text beside calls": (
        "ai-sdk",
        {"role": "assistant", "content": [AI_TEXT], "toolCalls": [AI_CALL]},
        {0: None},
        {"role": "assistant", "content": "", "toolCalls": [AI_CALL]},
    ),
    "a message that loses all parts is not sent": (
        "anthropic",
        {"role": "assistant", "content": [SIGNED]},
        {0: None},
        None,
    ),
}


@pytest.mark.parametrize(("format", "payload", "changes", "expected"), CASES.values(), ids=CASES)
def test_h6_edited_message_keeps_every_other_field(
    format: str, payload: Json, changes: dict[int, str | None], expected: Json | None
) -> None:
    message = decoded(payload, format)
    changed = change(message, changes)
    assert sent(changed) == json.dumps([] if expected is None else [expected])
    if expected is not None:
        assert changed.parts == decoded(expected, format).parts
    assert apply_edits(message, changed.edits) == changed
    assert sent(fold_edits(changed)) == sent(changed)


def test_edits_of_one_message_add_up_whatever_was_dropped_before() -> None:
    blocks: list[Any] = [SIGNED, CITED, {"type": "tool_use", "id": "a", "name": "read", "input": {}}]
    message = decoded({"role": "assistant", "content": blocks}, "anthropic")
    changed = change(change(change(message, {0: None}), {0: "x"}), {0: "y"})
    assert changed.edits == (Drop(("content", 0)), Replace(("content", 1, "text"), "y"))
    assert apply_edits(message, changed.edits) == changed
    assert change(changed, {0: None, 1: None}).parts == ()


@pytest.mark.parametrize("drops", [{0: None, 1: None}, {1: None, 0: None}])
def test_parts_dropped_one_by_one_leave_what_they_leave_at_once(drops: dict[int, None]) -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    message = decoded({"role": "assistant", "content": blocks, "tool_calls": [CALL]}, "openai-chat")
    assert change(change(message, {1: None}), {0: None}) == change(message, drops)


def test_message_without_a_payload_is_edited_in_its_parts() -> None:
    plain = Message("user", (Text("words"),))
    assert change(plain, {0: "cut"}).edits == (Replace(("content",), "cut"),)
    neutral = Message("tool", tuple(ToolResult(name, (Text(LONG),)) for name in "abc"))
    changed = change(change(neutral, {0: None}), {1: "cut"})
    assert [(result.call_id, result.text) for result in changed.results] == [("b", LONG), ("c", "cut")]
    assert apply_edits(neutral, changed.edits) == changed


def test_only_texts_and_results_have_a_text() -> None:
    with pytest.raises(InvalidInput, match="A ToolCall has no text to replace"):
        change(Message("assistant", (ToolCall("a", "read", {}),)), {0: "x"})


RENAMED = [
    ("openai-chat", {"role": "assistant", "content": None, "tool_calls": [CALL]}, '"id": "a"'),
    ("openai-chat", {"role": "tool", "tool_call_id": "a", "id": "m", "content": "a"}, '"tool_call_id": "a"'),
    (
        "openai-responses",
        {"type": "function_call", "id": "f", "call_id": "a", "name": "n", "arguments": "{}"},
        '"call_id": "a"',
    ),
    ("openai-responses", {"type": "function_call_output", "id": "f", "call_id": "a", "output": "a"}, '"call_id": "a"'),
    (
        "anthropic",
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "n", "input": {"id": "a"}}]},
        '"tool_use", "id": "a"',
    ),
    (
        "anthropic",
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "cache_control": MARK}]},
        '"tool_use_id": "a"',
    ),
    (
        "gemini",
        {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "n", "args": {"id": "a"}}}]},
        '{"functionCall": {"id": "a"',
    ),
    (
        "ai-sdk",
        {"role": "assistant", "content": [AI_CALL | {"input": {"toolCallId": "a"}}]},
        '"tool-call", "toolCallId": "a"',
    ),
    ("ai-sdk", {"role": "tool", "content": [AI_RESULT | {"result": "a"}]}, '"toolCallId": "a"'),
]


@pytest.mark.parametrize(("format", "payload", "place"), RENAMED)
def test_renamed_call_keeps_every_other_field(format: str, payload: Json, place: str) -> None:
    renamed = rename_calls(decoded(payload, format), {0: "a-2"})
    assert sent(renamed) == json.dumps([payload]).replace(place, place[:-1] + '-2"')
    assert decoded(encode_all([renamed], format)[0], format).parts == renamed.parts


def test_dropping_nothing_is_no_edit() -> None:
    message = decoded({"role": "assistant", "content": [CITED]}, "anthropic")
    assert drop_parts(message, []) is message and fold_edits(message) is message
