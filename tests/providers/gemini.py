"""`POST /v1beta/models/{model}:streamGenerateContent?alt=sse`."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.providers.faults import Overflow, Status, StreamError
from tests.providers.protocol import Json, count, number, sse, unknown
from tests.providers.reply import Piece, Say, signature
from tests.providers.request import Request, texts_of
from tests.providers.tools import wrong_tools

from judge import judge

name = "gemini"
_KNOWN = "model contents systemInstruction generationConfig safetySettings tools"
_CONFIG = "temperature maxOutputTokens topP topK stopSequences candidateCount responseMimeType responseJsonSchema"
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
_SIGNING = "gemini-3"
"""These models sign and number their calls, and require the signatures back."""
_DUMMIES = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""Documented values for calls that the model did not make."""
_FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "tool_call": "STOP", "refused": "SAFETY"}


def read(request: Request) -> None:
    contents = [content for content in request.body.get("contents") or [] if isinstance(content, dict)]
    request.system = texts_of((request.body.get("systemInstruction") or {}).get("parts"))
    request.prompt = "\n".join(texts_of(content.get("parts")) for content in contents if content.get("role") == "user")


def key(request: Request) -> str | None:
    return request.headers.get("x-goog-api-key") or None


def refuse(request: Request) -> Status | None:
    body, config = request.body, request.body.get("generationConfig") or {}
    for more in [*unknown(body, _KNOWN), *unknown(config, _CONFIG)]:
        return Status(400, f'Invalid JSON payload received. Unknown name "{more}": Cannot find field.')
    if not isinstance(body.get("contents"), list) or not body["contents"]:
        return Status(400, "* GenerateContentRequest.contents: contents is not specified")
    signed = request.model.startswith(_SIGNING)
    if complaints := judge(body["contents"], name, pending_ok=False, extras_ok=False, need_thought_signature=signed):
        return Status(400, complaints[0])
    if complaint := next(_signatures(body["contents"]), None):
        return Status(400, complaint)
    if "tools" in body and (complaints := list(wrong_tools(body["tools"], name))):
        return Status(400, complaints[0])
    if "maxOutputTokens" in config and not count(config["maxOutputTokens"]):
        return Status(400, "* GenerateContentRequest.generation_config.max_output_tokens: must be positive.")
    if "temperature" in config and not number(config["temperature"], 0, 2):
        return Status(400, "* GenerateContentRequest.generation_config.temperature: must be in the range [0.0, 2.0].")
    if "alt=sse" not in request.path:
        return Status(400, "This server only streams.")
    return None


def _signatures(contents: list[Json]) -> Iterator[str]:
    for part in [part for content in contents for part in content["parts"] if "thoughtSignature" in part]:
        given = part["thoughtSignature"]
        if given not in _DUMMIES and given.translate(str.maketrans("-_", "+/")) != _signature(part):
            yield "Thought signature is not valid."


def _signature(part: Json) -> str:
    call = part.get("functionCall")
    return signature(
        part["text"] if call is None else call["name"] + json.dumps(call.get("args") or {}, sort_keys=True)
    )


def error(status: int, message: str, code: str | None = None) -> Json:
    return {"error": {"code": status, "message": message, "status": code or _STATUS.get(status, "INTERNAL")}}


def overflow(fault: Overflow) -> Status:
    return Status(
        400,
        f"The input token count ({fault.tokens}) exceeds the maximum number of tokens allowed ({fault.window}).",
    )


def _chunk(request: Request, parts: list[Json], reply: Say | None = None) -> bytes:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    chunk: Json = {"candidates": [candidate], "modelVersion": request.model, "responseId": f"r{request.number}"}
    if reply is not None:
        candidate["finishReason"] = _FINISH[reply.ending]
        taken, given = request.tokens(reply)
        chunk["usageMetadata"] = {
            "promptTokenCount": taken,
            "candidatesTokenCount": given,
            "totalTokenCount": taken + given,
            "cachedContentTokenCount": reply.cached,
        }
    return sse(chunk)


def opening(request: Request, reply: Say) -> list[bytes]:
    return []


def piece(request: Request, reply: Say, piece: Piece) -> list[bytes]:
    if piece.kind != "call":
        return [_chunk(request, [{"text": piece.text} | ({"thought": True} if piece.kind == "thinking" else {})])]
    call = piece.call
    if call is None or not piece.last or (reply.cut and call is reply.called[-1]):
        return []
    signs = request.model.startswith(_SIGNING)
    own_id = call.id or (f"fc{request.number}{piece.number}" if signs else None)
    part: Json = {"functionCall": ({"id": own_id} if own_id else {}) | {"name": call.name, "args": call.arguments}}
    if (signs or reply.thinking) and piece.number == 0:
        part["thoughtSignature"] = _signature(part)
    return [_chunk(request, [part])]


def closing(request: Request, reply: Say) -> list[bytes]:
    signed = {"thoughtSignature": signature("")} if reply.thinking and not reply.called else {}
    return [_chunk(request, [{"text": ""} | signed], reply)]


def broken(fault: StreamError) -> bytes:
    return sse(error(fault.status, fault.message, fault.code))
