"""Gemini contents: user and model turns made of parts, function calls matched by order or id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from .numbering import NAMELESS
from .parts import Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from .payload import as_list, drop_none, string

name = "gemini"
system_field = "systemInstruction"

OPAQUE_PARTS = frozenset(("executableCode", "codeExecutionResult", "toolCall", "toolResponse"))
_ROLES: dict[str, Role] = {
    "user": "user",
    "model": "assistant",
    "function": "tool",
    "tool": "tool",
    "system": "system",
}


def decode(raw: Json) -> Message:
    role = _ROLES[raw.get("role") or "user"]
    parts = tuple(_part(part) for part in raw["parts"] or ())
    if role == "user" and any(type(part) is ToolResult for part in parts):
        role = "tool"
    return Message(role, parts, name, raw)


def _get(part: Json, camel: str, snake: str) -> Any:
    return part[camel] if camel in part else part.get(snake)


def _part(part: Any) -> Part:
    if isinstance(part, str):
        return Text(part)
    signature = _get(part, "thoughtSignature", "thought_signature")
    if isinstance(text := part.get("text"), str):
        if part.get("thought"):
            return Reasoning(text, signature, origin=name)
        return Text(text, signature)
    if isinstance(call := _get(part, "functionCall", "function_call"), dict):
        return ToolCall(string(call.get("id")), string(call.get("name")), call.get("args") or {}, "function", signature)
    if isinstance(answer := _get(part, "functionResponse", "function_response"), dict):
        return _result(answer)
    if isinstance(inline := _get(part, "inlineData", "inline_data"), dict):
        mime = _get(inline, "mimeType", "mime_type")
        return Media(_kind(mime), mime, inline.get("data"), name=_get(inline, "displayName", "display_name"))
    if isinstance(file := _get(part, "fileData", "file_data"), dict):
        mime = _get(file, "mimeType", "mime_type")
        return Media(_kind(mime), mime, url=_get(file, "fileUri", "file_uri"))
    return Opaque(next(iter(part), "part"), part, name)


def _kind(mime: Any) -> Any:
    family = string(mime).partition("/")[0]
    return family if family in ("image", "audio", "video") else "file"


def _result(answer: Json) -> ToolResult:
    response = answer.get("response")
    failed = isinstance(response, dict) and response.keys() == {"error"}
    if isinstance(response, dict) and len(response) == 1 and (failed or "output" in response):
        body = next(iter(response.values()))
        texts = [Text(string(item)) for item in body] if _several(body) else [Text(string(body))]
    else:
        texts = [Text(msgspec.json.encode(response).decode())] if response else []
    media = [part for part in map(_part, as_list(answer.get("parts"))) if isinstance(part, Media)]
    content = tuple(text for text in texts if text.text or len(texts) > 1) + tuple(media)
    return ToolResult(string(answer.get("id")), content, failed, answer.get("name"))


def _several(body: Any) -> bool:
    return isinstance(body, list) and len(body) > 1 and all(isinstance(item, str) for item in body)


def encode(messages: Sequence[Message]) -> list[Json]:
    """Render messages that have no payload of this format; results of one batch share one content."""
    out: list[Json] = []
    names: dict[str, str] = {}
    batch = False
    for message in messages:
        names.update((call.id, call.name) for call in message.calls)
        parts = [shown for part in message.parts if (shown := _render(part, names)) is not None]
        if not parts and message.parts:
            continue
        tool = message.role == "tool"
        if tool and batch:
            out[-1]["parts"] = out[-1]["parts"] + parts
            continue
        batch = tool
        out.append({"role": "model" if message.role == "assistant" else "user", "parts": parts})
    return out


def join(payload: Json, rendered: Json) -> Json:
    """Put a rendered result into the content that already holds results of the same batch."""
    return payload | {"parts": as_list(payload.get("parts")) + rendered["parts"]}


def _render(part: Part, names: dict[str, str]) -> Json | None:
    match part:
        case Text():
            return _signed({"text": part.text}, part.signature)
        case ToolCall():
            call = {"name": part.name, "args": part.object}
            return _signed({"functionCall": _with_id(part.id, call)}, part.signature)
        case ToolResult():
            return {"functionResponse": _with_id(part.call_id, _response(part, names))}
        case Reasoning(origin="gemini"):
            return _signed({"text": part.text, "thought": True}, part.signature)
        case Media(data=str()):
            inline = {
                "mimeType": part.mime or "application/octet-stream",
                "data": part.data,
                "displayName": part.name,
            }
            return {"inlineData": drop_none(inline)}
        case Media(url=str()):
            return {"fileData": drop_none({"mimeType": part.mime, "fileUri": part.url})}
        case Opaque(origin="gemini"):
            return part.data
        case _:
            return None


def _signed(part: Json, signature: str | None) -> Json:
    return part if signature is None else part | {"thoughtSignature": signature}


def _with_id(call_id: str, body: Json) -> Json:
    return body if not call_id or call_id.startswith(NAMELESS) else {"id": call_id, **body}


def _response(result: ToolResult, names: dict[str, str]) -> Json:
    texts = [part.text for part in result.content if isinstance(part, Text)]
    said: Any = texts if len(texts) > 1 else "".join(texts)
    answer: Json = {
        "name": result.name or names.get(result.call_id) or "tool",
        "response": {"error" if result.is_error else "output": said},
    }
    media = [shown for p in result.content if isinstance(p, Media) and (shown := _render(p, names)) is not None]
    return answer | {"parts": media} if media else answer
