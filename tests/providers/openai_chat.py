"""`POST /v1/chat/completions`."""

from __future__ import annotations

from typing import Any

from tests.providers.faults import Overflow, Status, StreamError
from tests.providers.protocol import Json, count, number, sse, unknown
from tests.providers.reply import Piece, Say
from tests.providers.request import Request, texts_of
from tests.providers.tools import wrong_tools

from judge import judge

name = "openai-chat"
_KNOWN = "model messages stream stream_options temperature max_tokens max_completion_tokens store tools response_format"
_TYPES = {401: "authentication_error", 429: "rate_limit_error", 404: "not_found_error"}
_FINISH = {"stop": "stop", "length": "length", "tool_call": "tool_calls", "refused": "content_filter"}


def read(request: Request) -> None:
    messages = [message for message in request.body.get("messages") or [] if isinstance(message, dict)]
    request.system = "\n".join(texts_of(m.get("content")) for m in messages if m.get("role") in ("system", "developer"))
    request.prompt = "\n".join(texts_of(m.get("content")) for m in messages if m.get("role") == "user")


def key(request: Request) -> str | None:
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    return given if kind == "Bearer" and given else None


def refuse(request: Request) -> Status | None:
    body = request.body
    if more := unknown(body, _KNOWN):
        return Status(400, f"Unrecognized request argument supplied: {more[0]}")
    if not isinstance(body.get("model"), str) or not body["model"]:
        return Status(400, "you must provide a model parameter")
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        return Status(400, "Invalid 'messages': empty array. Expected an array with minimum length 1.")
    if complaints := judge(_without_reasoning(body["messages"]), name, pending_ok=False, extras_ok=False):
        return Status(400, complaints[0])
    if "tools" in body and (complaints := list(wrong_tools(body["tools"], name))):
        return Status(400, complaints[0])
    if "max_tokens" in body and "max_completion_tokens" in body:
        return Status(400, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    for limit in ("max_tokens", "max_completion_tokens"):
        if limit in body and not count(body[limit]):
            return Status(400, f"Invalid '{limit}': integer below minimum value.")
    if "temperature" in body and not number(body["temperature"], 0, 2):
        return Status(400, "Invalid 'temperature': decimal out of range.")
    if body.get("stream") is not True:
        return Status(400, "This server only streams.")
    return None


def _without_reasoning(messages: list[Any]) -> list[Any]:
    """Removes reasoning, which compatible servers accept; OpenAI's never sends it."""
    return [
        {key: value for key, value in message.items() if key != "reasoning_content" or not isinstance(value, str)}
        if isinstance(message, dict) and message.get("role") == "assistant"
        else message
        for message in messages
    ]


def error(status: int, message: str, code: str | None = None) -> Json:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def overflow(fault: Overflow) -> Status:
    return Status(
        400,
        f"This model's maximum context length is {fault.window} tokens. However, your messages resulted in "
        f"{fault.tokens} tokens. Please reduce the length of the messages.",
        "context_length_exceeded",
    )


def _chunk(request: Request, choices: list[Json], **more: object) -> bytes:
    base = {"id": f"chatcmpl-{request.number}", "object": "chat.completion.chunk", "created": 1, "model": request.model}
    return sse(base | {"choices": choices} | more)


def _choice_chunk(request: Request, delta: Json, finish: str | None = None) -> bytes:
    return _chunk(request, [{"index": 0, "delta": delta, "finish_reason": finish}])


def opening(request: Request, reply: Say) -> list[bytes]:
    return [_choice_chunk(request, {"role": "assistant", "content": ""})]


def piece(request: Request, reply: Say, piece: Piece) -> list[bytes]:
    match piece.kind:
        case "thinking":
            return [_choice_chunk(request, {"reasoning_content": piece.text})]
        case "text":
            return [_choice_chunk(request, {"refusal" if reply.finish == "refused" else "content": piece.text})]
    assert piece.call is not None
    begun = {"id": piece.call.id or f"call_{request.number}_{piece.number}", "type": "function"}
    opened = begun | {"index": piece.number, "function": {"name": piece.call.name, "arguments": ""}}
    more = {"index": piece.number, "function": {"arguments": piece.text}}
    return [_choice_chunk(request, {"tool_calls": [call]}) for call in ([opened, more] if piece.first else [more])]


def closing(request: Request, reply: Say) -> list[bytes]:
    finish = "stop" if reply.finish == "refused" and reply.text else _FINISH[reply.ending]
    frames = [_choice_chunk(request, {}, finish)]
    if (request.body.get("stream_options") or {}).get("include_usage"):
        taken, given = request.tokens(reply)
        usage = {
            "prompt_tokens": taken,
            "completion_tokens": given,
            "total_tokens": taken + given,
            "prompt_tokens_details": {"cached_tokens": reply.cached},
        }
        frames.append(_chunk(request, [], usage=usage))
    return [*frames, sse("[DONE]")]


def broken(fault: StreamError) -> bytes:
    return sse(error(fault.status, fault.message, fault.code))
