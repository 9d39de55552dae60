"""`POST /v1/responses`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.providers.faults import Overflow, Status, StreamError
from tests.providers.openai_chat import error, key
from tests.providers.protocol import Json, count, number, sse, unknown
from tests.providers.reply import Piece, Say, signature
from tests.providers.request import Request, texts_of
from tests.providers.tools import wrong_tools

from judge import judge

__all__ = ["broken", "closing", "error", "key", "name", "opening", "overflow", "piece", "read", "refuse"]

name = "openai-responses"
_KNOWN = "model input instructions stream temperature max_output_tokens store include tools text"
_ENCRYPTED = "reasoning.encrypted_content"


def read(request: Request) -> None:
    given = request.body.get("input")
    items = [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []
    request.system = str(request.body.get("instructions") or "")
    reply = "\n".join(texts_of(item.get("content")) for item in items if item.get("role") == "user")
    request.prompt = given if isinstance(given, str) else reply


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
    if complaint := next(_kept_and_sent(body), None):
        return Status(400, complaint)
    if "max_output_tokens" in body and not count(body["max_output_tokens"]):
        return Status(400, "Invalid 'max_output_tokens': integer below minimum value.", "integer_below_min_value")
    if "temperature" in body and not number(body["temperature"], 0, 2):
        return Status(400, "Invalid 'temperature': decimal out of range.")
    return None


def _kept_and_sent(body: Json) -> Iterator[str]:
    if any(asked != _ENCRYPTED for asked in body.get("include", ())):
        yield "Invalid value: 'include[0]'."
    if "tools" in body:
        yield from wrong_tools(body["tools"], name)
    for item in body["input"] if isinstance(body["input"], list) else ():
        if item.get("type") == "reasoning" and not item.get("encrypted_content"):
            yield f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false."
        elif item.get("type") == "reasoning" and item != _thought(item.get("id"), item["summary"][0]["text"]):
            yield "The encrypted content could not be verified."


def _thought(own_id: Any, text: str) -> Json:
    summary = [{"type": "summary_text", "text": text}]
    return {"id": own_id, "type": "reasoning", "summary": summary, "encrypted_content": f"gAAAA{signature(text)}"}


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
    base = {
        "id": f"resp_{request.number}",
        "object": "response",
        "created_at": 1,
        "model": request.model,
        "status": status,
    }
    return base | empty | rest | fields


def opening(request: Request, reply: Say) -> list[bytes]:
    begun = _response(request, "in_progress")
    return [_event("response.created", response=begun), _event("response.in_progress", response=begun)]


def _item(request: Request, reply: Say, piece: Piece, status: str) -> Json:
    """Returns the complete item that a piece belongs to."""
    own = f"{request.number}_{piece.block}"
    if piece.kind == "thinking":
        thought = _thought(f"rs_{own}", reply.thinking)
        return thought if _ENCRYPTED in request.body.get("include", ()) else thought | {"encrypted_content": None}
    if piece.kind == "text":
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        if reply.finish == "refused":
            part = {"type": "refusal", "refusal": reply.text}
        return {"id": f"msg_{own}", "type": "message", "status": status, "role": "assistant", "content": [part]}
    assert piece.call is not None
    call_id = piece.call.id or f"call_{request.number}_{piece.number}"
    body = {"name": piece.call.name, "arguments": reply.written(piece.call)}
    return {"id": f"fc_{own}", "type": "function_call", "call_id": call_id, "status": status} | body


_EMPTY = {"thinking": {"summary": []}, "text": {"content": []}, "call": {"arguments": ""}}


def piece(request: Request, reply: Say, piece: Piece) -> list[bytes]:
    item = _item(request, reply, piece, "incomplete" if reply.cut and piece.call is reply.called[-1] else "completed")
    where = {"item_id": item["id"], "output_index": piece.block}
    begun = item | _EMPTY[piece.kind] | ({"status": "in_progress"} if "status" in item else {})
    frames = [_event("response.output_item.added", output_index=piece.block, item=begun)] if piece.first else []
    match piece.kind:
        case "thinking":
            frames.append(_event("response.reasoning_summary_text.delta", **where, summary_index=0, delta=piece.text))
        case "text":
            kind = "refusal" if reply.finish == "refused" else "output_text"
            frames.append(_event(f"response.{kind}.delta", **where, content_index=0, delta=piece.text, logprobs=[]))
        case _:
            frames.append(_event("response.function_call_arguments.delta", **where, delta=piece.text))
    return [
        *frames,
        *([_event("response.output_item.done", output_index=piece.block, item=item)] if piece.last else []),
    ]


def closing(request: Request, reply: Say) -> list[bytes]:
    taken, given = request.tokens(reply)
    usage = {
        "input_tokens": taken,
        "input_tokens_details": {"cached_tokens": reply.cached},
        "output_tokens": given,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": taken + given,
    }
    last = [piece for piece in reply.parts() if piece.last]
    cut = reply.called[-1] if reply.cut else None
    output = [
        _item(request, reply, piece, "incomplete" if cut and piece.call is cut else "completed") for piece in last
    ]
    status, why = ("incomplete", "max_output_tokens") if reply.finish == "length" else ("completed", None)
    if reply.finish == "refused" and not reply.text:
        status, why = "incomplete", "content_filter"
    details = {"incomplete_details": {"reason": why}} if why else {}
    whole = _response(request, status, output=output, usage=usage, **details)
    return [_event(f"response.{status}", response=whole)]


def broken(fault: StreamError) -> bytes:
    implied = {429: "rate_limit_exceeded", 400: "invalid_prompt"}.get(fault.status, "server_error")
    code = fault.code or implied
    error_body = {"code": code, "message": fault.message}
    return _event("response.failed", response=_response(Request(name, "", {}), "failed", error=error_body))
