"""`POST /v1/messages`."""

from __future__ import annotations

from judge import judge

from .dialect import Json, count, number, sse, unknown
from .faults import Overflow, Say, Status, StreamError
from .request import Request, texts_of

name = "anthropic"
_KNOWN = "model messages system max_tokens temperature stream metadata stop_sequences"
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_STOP = {"stop": "end_turn", "length": "max_tokens", "tool_call": "tool_use", "refused": "refusal"}


def read(request: Request) -> None:
    messages = [message for message in request.body.get("messages") or [] if isinstance(message, dict)]
    request.system = texts_of(request.body.get("system"))
    request.prompt = "\n".join(texts_of(m.get("content")) for m in messages if m.get("role") == "user")


def key(request: Request) -> str | None:
    return request.headers.get("x-api-key") or request.headers.get("authorization", "").partition(" ")[2] or None


def refuse(request: Request) -> Status | None:
    body = request.body
    if "anthropic-version" not in request.headers:
        return Status(400, "anthropic-version: header is required")
    if more := unknown(body, _KNOWN):
        return Status(400, f"{more[0]}: Extra inputs are not permitted")
    for field in ("model", "messages", "max_tokens"):
        if field not in body:
            return Status(400, f"{field}: Field required")
    if not count(body["max_tokens"]):
        return Status(400, "max_tokens: Input should be greater than or equal to 1")
    if not isinstance(body["messages"], list) or not body["messages"]:
        return Status(400, "messages: at least one message is required")
    if body["messages"][0].get("role") != "user":
        return Status(400, "messages: first message must use the user role")
    if complaints := judge(body["messages"], name, pending_ok=False, extras_ok=False):
        return Status(400, complaints[0])
    if "system" in body and not body["system"]:
        return Status(400, "system: text content blocks must be non-empty")
    if "temperature" in body and not number(body["temperature"], 0, 1):
        return Status(400, "temperature: range: 0..1")
    if body.get("stream") is not True:
        return Status(400, "This server only streams.")
    return None


def error(status: int, message: str, code: str | None = None) -> Json:
    kind = code or _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def overflow(fault: Overflow) -> Status:
    return Status(400, f"prompt is too long: {fault.tokens} tokens > {fault.window} maximum")


def opening(request: Request, said: Say) -> list[bytes]:
    taken, _ = request.tokens(said)
    usage = {"input_tokens": taken - said.cached, "cache_read_input_tokens": said.cached, "output_tokens": 1}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage | {"cache_creation_input_tokens": 0},
    }
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    return [
        sse({"type": "message_start", "message": message}, "message_start"),
        sse({"type": "ping"}, "ping"),
        sse(start, "content_block_start"),
    ]


def piece(request: Request, text: str) -> list[bytes]:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return [sse(delta, "content_block_delta")]


def closing(request: Request, said: Say) -> list[bytes]:
    frames = [sse({"type": "content_block_stop", "index": 0}, "content_block_stop")]
    if said.finish == "tool_call":
        block = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
        start = {"type": "content_block_start", "index": 1, "content_block": block}
        frames += [
            sse(start, "content_block_start"),
            sse({"type": "content_block_stop", "index": 1}, "content_block_stop"),
        ]
    delta = {"stop_reason": _STOP[said.finish], "stop_sequence": None}
    usage = {"output_tokens": request.tokens(said)[1]}
    frames.append(sse({"type": "message_delta", "delta": delta, "usage": usage}, "message_delta"))
    return [*frames, sse({"type": "message_stop"}, "message_stop")]


def broken(fault: StreamError) -> bytes:
    return sse(error(fault.status, fault.message, fault.code), "error")
