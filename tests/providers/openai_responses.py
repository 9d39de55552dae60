"""`POST /v1/responses`."""

from __future__ import annotations

from typing import Any

from judge import judge

from .dialect import Json, count, number, sse, unknown
from .faults import Overflow, Say, Status, StreamError
from .openai_chat import error, key
from .request import Request, texts_of

__all__ = ["broken", "closing", "error", "key", "name", "opening", "overflow", "piece", "read", "refuse"]

name = "openai-responses"
_KNOWN = "model input instructions stream temperature max_output_tokens store"


def read(request: Request) -> None:
    given = request.body.get("input")
    items = [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []
    request.system = str(request.body.get("instructions") or "")
    said = "\n".join(texts_of(item.get("content")) for item in items if item.get("role") == "user")
    request.prompt = given if isinstance(given, str) else said


def refuse(request: Request) -> Status | None:
    body = request.body
    if more := unknown(body, _KNOWN):
        return Status(400, f"Unknown parameter: '{more[0]}'.", "unknown_parameter")
    if not isinstance(body.get("model"), str) or not body["model"]:
        return Status(400, "Missing required parameter: 'model'.", "missing_required_parameter")
    if not body.get("input"):
        return Status(400, "Missing required parameter: 'input'.", "missing_required_parameter")
    if isinstance(body["input"], list) and (
        complaints := judge(body["input"], name, pending_ok=False, extras_ok=False)
    ):
        return Status(400, complaints[0])
    if "max_output_tokens" in body and not count(body["max_output_tokens"]):
        return Status(400, "Invalid 'max_output_tokens': integer below minimum value.", "integer_below_min_value")
    if "temperature" in body and not number(body["temperature"], 0, 2):
        return Status(400, "Invalid 'temperature': decimal out of range.")
    if body.get("stream") is not True:
        return Status(400, "This server only streams.")
    return None


def overflow(fault: Overflow) -> Status:
    return Status(
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "context_length_exceeded",
    )


def _event(kind: str, **fields: Any) -> bytes:
    return sse({"type": kind, "sequence_number": 0} | fields, kind)


def _response(request: Request, status: str, **fields: Any) -> Json:
    empty = {"error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "output": []}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "temperature": 1.0, "top_p": 1.0}
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": request.model, "status": status}
    return base | empty | rest | fields


def opening(request: Request, said: Say) -> list[bytes]:
    item = {"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
    return [
        _event("response.created", response=_response(request, "in_progress")),
        _event("response.output_item.added", output_index=0, item=item),
    ]


def piece(request: Request, text: str) -> list[bytes]:
    return [
        _event("response.output_text.delta", item_id="msg_1", output_index=0, content_index=0, delta=text, logprobs=[])
    ]


def closing(request: Request, said: Say) -> list[bytes]:
    taken, given = request.tokens(said)
    usage = {
        "input_tokens": taken,
        "input_tokens_details": {"cached_tokens": said.cached},
        "output_tokens": given,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": taken + given,
    }
    part = {"type": "output_text", "text": said.text, "annotations": []}
    if said.finish == "refused":
        part = {"type": "refusal", "refusal": said.text or "I cannot help with that."}
    output: list[Json] = [
        {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    ]
    if said.finish == "tool_call":
        output.append({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{}"})
    if said.finish == "length":
        cut = _response(
            request, "incomplete", output=output, usage=usage, incomplete_details={"reason": "max_output_tokens"}
        )
        return [_event("response.incomplete", response=cut)]
    return [_event("response.completed", response=_response(request, "completed", output=output, usage=usage))]


def broken(fault: StreamError) -> bytes:
    implied = {429: "rate_limit_exceeded", 400: "invalid_prompt"}.get(fault.status, "server_error")
    code = fault.code or implied
    told = {"code": code, "message": fault.message}
    return _event("response.failed", response=_response(Request(name, "", {}), "failed", error=told))
