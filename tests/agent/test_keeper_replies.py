"""`Keeper` takes what a provider's SDK returns, as object or as dict: the reply with its usage (L12, P3)."""

from __future__ import annotations

from typing import Any

import anthropic.types as claude
import google.genai.types as google
import openai.types.chat as chat
import pytest
from keeper_conversations import open_keeper, user_message
from openai.types.responses import Response

from holdfast import check
from holdfast.agent import Keeper

pytestmark = pytest.mark.anyio
FUNCTION = {"name": "read", "arguments": '{"path": "tides.csv"}'}
CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": FUNCTION}],
            },
        }
    ],
    "usage": {"prompt_tokens": 700, "completion_tokens": 20, "total_tokens": 720},
}
RESPONSES = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-5",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "status": "completed", **FUNCTION},
    ],
    "usage": {
        "input_tokens": 700,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 720,
    },
}
ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "tides.csv"}}],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 700, "output_tokens": 20},
}
GEMINI = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [{"functionCall": {"id": "c1", "name": "read", "args": {"path": "tides.csv"}}}],
            },
            "finishReason": "STOP",
        }
    ],
    "usageMetadata": {"promptTokenCount": 700, "candidatesTokenCount": 20, "totalTokenCount": 720},
}
REPLIES = [
    pytest.param("openai-chat", chat.ChatCompletion, CHAT, id="openai-chat"),
    pytest.param("openai-responses", Response, RESPONSES, id="openai-responses"),
    pytest.param("anthropic", claude.Message, ANTHROPIC, id="anthropic"),
    pytest.param("gemini", google.GenerateContentResponse, GEMINI, id="gemini"),
]
RESULTS: dict[str, dict[str, Any]] = {
    "openai-chat": {"role": "tool", "tool_call_id": "c1", "content": "4.20 m"},
    "openai-responses": {"type": "function_call_output", "call_id": "c1", "output": "4.20 m"},
    "anthropic": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "4.20 m"}]},
    "gemini": {
        "role": "user",
        "parts": [{"functionResponse": {"id": "c1", "name": "read", "response": {"result": "4.20 m"}}}],
    },
}


def opening(format: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": "Go."}]} if format == "gemini" else user_message("Go.")


@pytest.mark.parametrize("as_dict", [False, True], ids=["object", "dict"])
@pytest.mark.parametrize(("format", "kind", "payload"), REPLIES)
async def test_l12_on_step_finish_stores_a_whole_reply_and_its_usage(
    format: str, kind: Any, payload: Any, as_dict: bool
) -> None:
    keeper = await open_keeper([opening(format)])
    await keeper.on_step_finish(payload if as_dict else kind.model_validate(payload))
    await keeper.sessions.append(keeper.session_id, RESULTS[format])
    context = await keeper.context()
    assert context.format == format
    assert check(list(context), format, ready=True) == []
    assert 720 < context.tokens < 800, "the provider's count, and an estimate of the result alone"


@pytest.mark.parametrize("as_dict", [False, True], ids=["object", "dict"])
@pytest.mark.parametrize(("format", "kind", "payload"), REPLIES)
async def test_l12_on_length_takes_a_whole_reply(format: str, kind: Any, payload: Any, as_dict: bool) -> None:
    keeper = await open_keeper([opening(format)], window=100_000)
    cut = await keeper.on_length(payload if as_dict else kind.model_validate(payload))
    assert [call.id for call in cut.calls] == ["c1"]
    assert not check([opening(format), *cut.messages], format)


@pytest.mark.parametrize("as_dict", [False, True], ids=["object", "dict"])
@pytest.mark.parametrize(("format", "kind", "payload"), REPLIES)
async def test_l12_message_list_may_contain_whole_replies(format: str, kind: Any, payload: Any, as_dict: bool) -> None:
    keeper = Keeper(window=8_000)
    history = [opening(format)]
    await keeper.prepare_step(history)
    session, reply = keeper.session_id, payload if as_dict else kind.model_validate(payload)
    await keeper.on_step_finish(reply)
    context = await keeper.prepare_step([*history, reply, RESULTS[format]])
    assert keeper.session_id == session
    assert check(list(context), format, ready=True) == []
    assert 720 < context.tokens < 800
    longer = await keeper.prepare_step([*history, reply, RESULTS[format], opening(format)])
    assert keeper.session_id == session and list(longer)[:-1] == list(context)
