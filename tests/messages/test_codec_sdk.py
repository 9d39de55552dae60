"""SDK objects, built offline with the SDKs' own classes, as their clients return them."""

from __future__ import annotations

from typing import Any

import anthropic.types as claude
import anthropic.types.beta as claude_beta
import google.genai.types as google
import openai.types.chat as chat
import openai.types.responses as responses
import pytest
from codec_kinds import ASK
from openai.types.responses import CompactedResponse, Response

from holdfast.errors import InvalidInput
from holdfast.messages import Media, Reasoning, Text, ToolCall, decode_all, encode_all
from judge import judge

CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"a": 1}'}}
COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": None, "refusal": None, "tool_calls": [CALL]},
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
ITEMS: list[dict[str, Any]] = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": "{}", "status": "completed"},
]
OUTPUT_TEXT = {"type": "output_text", "text": "done", "annotations": []}
OUTPUT_MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [OUTPUT_TEXT],
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-5",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [*ITEMS, OUTPUT_MESSAGE],
}
BLOCKS = [
    {"type": "thinking", "thinking": "hm", "signature": "sig"},
    {"type": "text", "text": "let me see", "citations": None},
    {"type": "tool_use", "id": "t1", "name": "read", "input": {"a": None}},
]
REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": BLOCKS,
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
SENT = [BLOCKS[0], {"type": "text", "text": "let me see"}, BLOCKS[2]]
GEMINI_PARTS = [
    google.Part(text="hm", thought=True),
    google.Part(function_call=google.FunctionCall(id="f1", name="read", args={"a": 1}), thought_signature=b"sig\xff"),
]


def test_sdk_openai_chat_completion_gives_its_message() -> None:
    completion = chat.ChatCompletion.model_validate(COMPLETION)
    messages, format = decode_all([ASK, completion])
    assert format == "openai-chat"
    assert encode_all(messages, format) == [ASK, {"role": "assistant", "content": None, "tool_calls": [CALL]}]


def test_sdk_openai_chat_message_is_accepted() -> None:
    message = chat.ChatCompletionMessage.model_validate(COMPLETION["choices"][0]["message"])
    assert decode_all([message])[0][0].calls == (ToolCall("c1", "read", '{"a": 1}'),)


def test_sdk_openai_response_gives_its_items() -> None:
    messages, format = decode_all([ASK, Response.model_validate(RESPONSE)])
    assert format == "openai-responses"
    assert encode_all(messages, format) == [ASK, *ITEMS, OUTPUT_MESSAGE]


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (responses.ResponseReasoningItem, ITEMS[0]),
        (responses.ResponseFunctionToolCall, ITEMS[1]),
        (responses.ResponseOutputMessage, OUTPUT_MESSAGE),
    ],
)
def test_sdk_openai_output_items_are_accepted(kind: Any, payload: dict[str, Any]) -> None:
    messages, format = decode_all([kind.model_validate(payload)])
    assert format == "openai-responses"
    assert encode_all(messages, format) == [payload]


def test_sdk_openai_compacted_response_gives_its_items() -> None:
    payload = {
        "id": "resp_1",
        "object": "response.compaction",
        "created_at": 1,
        "output": [{"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}],
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        },
    }
    messages, format = decode_all([CompactedResponse.construct(**payload)])
    assert encode_all(messages, format) == payload["output"]


@pytest.mark.parametrize("kind", [claude.Message, claude_beta.BetaMessage])
def test_sdk_anthropic_reply_gives_role_and_content(kind: Any) -> None:
    """Fields that the API adds to a reply, and nulls, would be rejected in a request."""
    messages, format = decode_all([ASK, kind.model_validate(REPLY)])
    assert format == "anthropic"
    assert encode_all(messages, format) == [ASK, {"role": "assistant", "content": SENT}]
    assert judge(encode_all(messages, format), format, extras_ok=False) == []


def test_anthropic_reply_dict_gives_role_and_content() -> None:
    messages, format = decode_all([ASK, REPLY])
    assert format == "anthropic"
    assert encode_all(messages, format) == [ASK, {"role": "assistant", "content": BLOCKS}]


def test_sdk_anthropic_blocks_inside_dict_are_accepted() -> None:
    """The usual pattern: `{"role": "assistant", "content": reply.content}`."""
    reply = claude.Message.model_validate(REPLY)
    given = {"role": "assistant", "content": reply.content}
    messages, format = decode_all([ASK, given])
    assert format == "anthropic"
    assert messages[1].parts == (
        Reasoning("hm", "sig", origin="anthropic"),
        Text("let me see"),
        ToolCall("t1", "read", {"a": None}),
    )
    assert encode_all(messages, format) == [ASK, {"role": "assistant", "content": SENT}]
    assert given["content"] is reply.content
    assert isinstance(given["content"][0], claude.ThinkingBlock)


def test_sdk_anthropic_message_params_are_plain_dicts() -> None:
    block = claude.ToolResultBlockParam(type="tool_result", tool_use_id="t1", content="ok")
    given: claude.MessageParam = {"role": "user", "content": [block]}
    assert decode_all([given])[1] == "anthropic"


def test_sdk_openai_parts_inside_dict_are_accepted() -> None:
    message = chat.ChatCompletionMessage.model_validate(COMPLETION["choices"][0]["message"])
    messages, format = decode_all([{"role": "assistant", "content": None, "tool_calls": message.tool_calls}])
    assert format == "openai-chat"
    assert encode_all(messages, format) == [{"role": "assistant", "content": None, "tool_calls": [CALL]}]


def test_sdk_gemini_content_keeps_signature() -> None:
    content = google.Content(role="model", parts=GEMINI_PARTS)
    messages, format = decode_all([google.Content(role="user", parts=[google.Part(text="go")]), content])
    assert format == "gemini"
    out = encode_all(messages, format)
    assert google.Content.model_validate(out[1]) == content
    assert messages[1].calls[0].signature == out[1]["parts"][1]["thoughtSignature"]


def test_sdk_gemini_response_gives_first_candidate() -> None:
    content = google.Content(role="model", parts=GEMINI_PARTS)
    response = google.GenerateContentResponse(candidates=[google.Candidate(content=content)])
    assert decode_all([response]) == decode_all([content])


def test_sdk_gemini_parts_inside_dict_are_accepted() -> None:
    messages, format = decode_all([{"role": "model", "parts": GEMINI_PARTS}])
    assert format == "gemini"
    assert messages == decode_all([google.Content(role="model", parts=GEMINI_PARTS)])[0]


def test_sdk_gemini_bytes_become_standard_base64() -> None:
    picture = google.Part(inline_data=google.Blob(mime_type="image/png", data=b"\xff\xef\xbe"))
    messages, _ = decode_all([google.Content(role="user", parts=[picture])])
    assert messages[0].parts == (Media("image", "image/png", "/+++"),)
    out = encode_all(messages, "gemini")
    assert google.Content.model_validate(out[0]).parts == [picture]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (google.GenerateContentResponse(candidates=[]), "no candidate"),
        (google.GenerateContentResponse(candidates=[google.Candidate()]), "a candidate without content"),
        (chat.ChatCompletion.model_validate(COMPLETION | {"choices": []}), "no choice"),
    ],
)
def test_sdk_empty_reply_is_rejected_with_help(response: Any, expected: str) -> None:
    with pytest.raises(InvalidInput, match=f"A model's reply has {expected}"):
        decode_all([response])


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        pytest.param(chat.ChatCompletion, COMPLETION, id="openai-chat"),
        pytest.param(Response, RESPONSE, id="openai-responses"),
        pytest.param(
            google.GenerateContentResponse,
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "done"}]}}]},
            id="gemini",
        ),
    ],
)
def test_reply_dict_gives_the_messages_of_the_sdk_object(kind: Any, payload: dict[str, Any]) -> None:
    assert decode_all([payload]) == decode_all([kind.model_validate(payload)])


@pytest.mark.parametrize("reply", [{"choices": []}, {"choices": {"a": 1}}, {"candidates": [{}]}, {"candidates": "x"}])
def test_reply_dict_without_a_message_is_rejected_with_help(reply: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="A model's reply has"):
        decode_all([reply])
