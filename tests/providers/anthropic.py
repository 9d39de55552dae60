"""`POST /v1/messages`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.providers.faults import Overflow, Status, StreamError
from tests.providers.protocol import Json, count, number, sse, unknown
from tests.providers.reply import Piece, Say, signature
from tests.providers.request import Request, texts_of
from tests.providers.tools import wrong_tools

from judge import judge

name = "anthropic"
_KNOWN = "model messages system max_tokens temperature stream metadata stop_sequences tools cache_control output_config"
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
    counts = "/count_tokens" in request.path
    for field in ("model", "messages") if counts else ("model", "messages", "max_tokens"):
        if field not in body:
            return Status(400, f"{field}: Field required")
    if not counts and not count(body["max_tokens"]):
        return Status(400, "max_tokens: Input should be greater than or equal to 1")
    if not isinstance(body["messages"], list) or not body["messages"]:
        return Status(400, "messages: at least one message is required")
    if body["messages"][0].get("role") != "user":
        return Status(400, "messages: first message must use the user role")
    if complaints := judge(body["messages"], name, pending_ok=False, extras_ok=False):
        return Status(400, complaints[0])
    if body["messages"][-1].get("role") == "assistant":
        return Status(
            400, "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    if complaint := next(_blocks_and_tools(body), None):
        return Status(400, complaint)
    if "system" in body and not body["system"]:
        return Status(400, "system: text content blocks must be non-empty")
    if "temperature" in body and not number(body["temperature"], 0, 1):
        return Status(400, "temperature: range: 0..1")
    return None


def _blocks_and_tools(body: Json) -> Iterator[str]:
    blocks = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
    for block in blocks:
        if block["type"] == "thinking" and block["signature"] != signature(block["thinking"]):
            yield "messages: Invalid `signature` in `thinking` block"
        if block["type"] == "redacted_thinking" and block["data"] != signature("redacted"):
            yield "messages: Invalid `data` in `redacted_thinking` block"
    if "tools" in body:
        yield from wrong_tools(body["tools"], name)
    elif any(block["type"] in ("tool_use", "tool_result") for block in blocks):
        yield "Requests which include `tool_use` or `tool_result` blocks must define tools."
    if body.get("cache_control", {"type": "ephemeral"}) != {"type": "ephemeral"}:
        yield "cache_control.type: Input should be 'ephemeral'"


def error(status: int, message: str, code: str | None = None) -> Json:
    kind = code or _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def overflow(fault: Overflow) -> Status:
    return Status(400, f"prompt is too long: {fault.tokens} tokens > {fault.window} maximum")


def opening(request: Request, reply: Say) -> list[bytes]:
    taken, _ = request.tokens(reply)
    usage = {"input_tokens": taken - reply.cached, "cache_read_input_tokens": reply.cached, "output_tokens": 1}
    message = {
        "id": f"msg_{request.number}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage | {"cache_creation_input_tokens": 0},
    }
    frames = [sse({"type": "message_start", "message": message}, "message_start"), sse({"type": "ping"}, "ping")]
    if reply.redacted:
        frames.append(_start(0, {"type": "redacted_thinking", "data": signature("redacted")}))
        frames.append(_stop(0))
    return frames


def _start(index: int, block: Json) -> bytes:
    return sse({"type": "content_block_start", "index": index, "content_block": block}, "content_block_start")


def _delta(index: int, kind: str, **fields: Any) -> bytes:
    delta = {"type": kind} | fields
    return sse({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")


def _stop(index: int) -> bytes:
    return sse({"type": "content_block_stop", "index": index}, "content_block_stop")


def piece(request: Request, reply: Say, piece: Piece) -> list[bytes]:
    index = piece.block + reply.redacted
    match piece.kind:
        case "thinking":
            begun: Json = {"type": "thinking", "thinking": "", "signature": ""}
            frames = [_delta(index, "thinking_delta", thinking=piece.text)]
            frames += [_delta(index, "signature_delta", signature=signature(reply.thinking))] if piece.last else []
        case "text":
            begun = {"type": "text", "text": ""}
            frames = [_delta(index, "text_delta", text=piece.text)]
        case _:
            assert piece.call is not None
            own_id = piece.call.id or f"toolu_{request.number}_{piece.number}"
            begun = {"type": "tool_use", "id": own_id, "name": piece.call.name, "input": {}}
            empty = [_delta(index, "input_json_delta", partial_json="")] if piece.first else []
            frames = empty + (
                [_delta(index, "input_json_delta", partial_json=piece.text)] if piece.text != "{}" else []
            )
    opened = [_start(index, begun)] if piece.first else []
    return [*opened, *frames, *([_stop(index)] if piece.last else [])]


def closing(request: Request, reply: Say) -> list[bytes]:
    delta = {"stop_reason": _STOP[reply.ending], "stop_sequence": None}
    usage = {"output_tokens": request.tokens(reply)[1]}
    changed = sse({"type": "message_delta", "delta": delta, "usage": usage}, "message_delta")
    return [changed, sse({"type": "message_stop"}, "message_stop")]


def broken(fault: StreamError) -> bytes:
    return sse(error(fault.status, fault.message, fault.code), "error")
