"""`POST /v1/chat/completions`."""

from __future__ import annotations

from judge import judge

from .dialect import Json, count, number, sse, unknown
from .faults import Overflow, Say, Status, StreamError
from .request import Request, texts_of

name = "openai-chat"
_KNOWN = "model messages stream stream_options temperature max_tokens max_completion_tokens store"
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
    if complaints := judge(body["messages"], name, pending_ok=False, extras_ok=False):
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
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": request.model}
    return sse(base | {"choices": choices} | more)


def opening(request: Request, said: Say) -> list[bytes]:
    return [_chunk(request, [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])]


def piece(request: Request, text: str) -> list[bytes]:
    return [_chunk(request, [{"index": 0, "delta": {"content": text}, "finish_reason": None}])]


def closing(request: Request, said: Say) -> list[bytes]:
    frames = []
    if said.finish == "tool_call":
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        frames.append(_chunk(request, [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]))
    frames.append(_chunk(request, [{"index": 0, "delta": {}, "finish_reason": _FINISH[said.finish]}]))
    if (request.body.get("stream_options") or {}).get("include_usage"):
        taken, given = request.tokens(said)
        usage = {
            "prompt_tokens": taken,
            "completion_tokens": given,
            "total_tokens": taken + given,
            "prompt_tokens_details": {"cached_tokens": said.cached},
        }
        frames.append(_chunk(request, [], usage=usage))
    return [*frames, sse("[DONE]")]


def broken(fault: StreamError) -> bytes:
    return sse(error(fault.status, fault.message, fault.code))
