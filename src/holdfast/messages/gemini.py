"""Gemini contents: user and model turns made of parts, function calls matched by order or id."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from .json_text import to_json
from .parts import End, FindCall, Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from .patch import Drop, Edit, Path, Replace
from .payload import as_dict, as_list, as_text, drop_none, mime_of, placeholder_text, result_texts
from .tool_calls import GENERATED_ID_PREFIX

name = "gemini"
OPAQUE = frozenset(("executableCode", "codeExecutionResult", "toolCall", "toolResponse"))
"""Parts that are kept and never interpreted: tools run by the API."""
ROLES: dict[str, Role] = {
    "user": "user",
    "model": "assistant",
    "function": "tool",
    "tool": "tool",
    "system": "system",
}
_METADATA_FIELDS = frozenset(("thought", "thoughtSignature", "thought_signature", "videoMetadata", "video_metadata"))
_ANSWER_KEYS = frozenset(("output", "result", "error"))
_URLSAFE_TO_STANDARD = str.maketrans("-_", "+/")


def decode(raw: Json) -> Message:
    role = ROLES[raw.get("role") or "user"]
    parts = tuple([_part(part) for part in raw["parts"] or ()])
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
        return ToolCall(
            as_text(call.get("id")), as_text(call.get("name")), call.get("args") or {}, "function", signature
        )
    if isinstance(answer := _get(part, "functionResponse", "function_response"), dict):
        return _result(answer)
    return _media(part) or _opaque(part)


def _opaque(part: Json) -> Opaque:
    """Returns a part that is not interpreted, by the name of its field as the API writes it."""
    first, *others = next((key for key in part if key not in _METADATA_FIELDS), "part").split("_")
    return Opaque(first + "".join(map(str.capitalize, others)), part, name)


def _media(part: Json) -> Media | None:
    if isinstance(inline := _get(part, "inlineData", "inline_data"), dict):
        mime = _get(inline, "mimeType", "mime_type")
        # the SDK writes URL-safe base64, which others reject
        data = as_text(inline.get("data")).translate(_URLSAFE_TO_STANDARD)
        return Media(_kind(mime), mime, data, name=_get(inline, "displayName", "display_name"))
    if isinstance(file := _get(part, "fileData", "file_data"), dict):
        mime = _get(file, "mimeType", "mime_type")
        url, title = _get(file, "fileUri", "file_uri"), _get(file, "displayName", "display_name")
        return Media(_kind(mime), mime, url=url, name=title)
    return None


def _kind(mime: Any) -> Any:
    family = as_text(mime).partition("/")[0]
    return family if family in ("image", "audio", "video") else "file"


def _result(answer: Json) -> ToolResult:
    """Decodes a response: a single text under a usual key as that text, any other object as JSON."""
    response = answer.get("response")
    failed = isinstance(response, dict) and response.keys() == {"error"}
    if isinstance(response, dict) and len(response) == 1 and _ANSWER_KEYS & response.keys():
        body = next(iter(response.values()))
        texts = list(body) if _is_texts(body) else [as_text(body)]
    else:
        texts = [to_json(response)] if response else []
    content: list[Text | Media | Opaque] = [Text(text) for text in texts if text or len(texts) > 1]
    content += [_media(part) or _opaque(part) for part in as_list(answer.get("parts"))]
    return ToolResult(as_text(answer.get("id")), tuple(content), failed, answer.get("name"))


def _is_texts(body: Any) -> bool:
    return isinstance(body, list) and len(body) > 1 and all(isinstance(item, str) for item in body)


def places(raw: Json) -> list[tuple[Path, ...]]:
    """Returns where each part lies."""
    return [(("parts", index),) for index in range(len(raw["parts"] or ()))]


def retext(part: Any, text: str) -> Iterable[Edit]:
    """Returns edits of a text or a result, which keeps the key of its answer; media beside it are dropped."""
    if isinstance(part, str):
        return [Replace((), text)]
    name = next((name for name in ("functionResponse", "function_response") if name in part), None)
    if name is None:
        return [Replace(("text",), text)]
    answer = part[name]
    response = answer.get("response")
    known = isinstance(response, dict) and len(response) == 1 and _ANSWER_KEYS & response.keys()
    new = dict.fromkeys(response, text) if known else {"output": text}
    return [Replace((name, "response"), new), *([Drop((name, "parts"))] if "parts" in answer else [])]


_TOOL_PARTS: dict[str, Literal["opens", "closes"]] = {
    "toolCall": "opens",
    "tool_call": "opens",
    "executableCode": "opens",
    "executable_code": "opens",
    "toolResponse": "closes",
    "tool_response": "closes",
    "codeExecutionResult": "closes",
    "code_execution_result": "closes",
}
"""Parts of tools that the API runs, and of their results."""


def ends(raw: Json) -> list[End]:
    """Returns the ends of edges between tools that the API runs and their results, where they have ids."""
    return [
        End(part, "tool call", key, role, f"{kind} {key!r}")
        for part, given in enumerate(raw.get("parts") or ())
        for kind, role in _TOOL_PARTS.items()
        if isinstance(given, dict) and kind in given and isinstance(key := as_dict(given[kind]).get("id"), str)
    ]


def encode(message: Message, call_of: FindCall) -> list[Json]:
    """Encodes a message that has no payload of this format."""
    parts = [shown for part in message.parts if (shown := _render(part, call_of)) is not None]
    if not parts and message.parts:
        return []
    return [{"role": "model" if message.role == "assistant" else "user", "parts": parts}]


def join(payload: Json, more: Json) -> Json:
    """Joins the results of one batch into one content."""
    return payload | {"parts": as_list(payload.get("parts")) + as_list(more.get("parts"))}


def _render(part: Part, call_of: FindCall) -> Json | None:
    match part:
        case Text():
            return _signed({"text": part.text}, part.signature)
        case ToolCall():
            call = {"name": part.name, "args": part.arguments_dict}
            return _signed({"functionCall": _with_id(part.id, call)}, part.signature)
        case ToolResult():
            return {"functionResponse": _with_id(part.call_id, _response(part, call_of))}
        case Reasoning(origin="gemini"):
            return _signed({"text": part.text, "thought": True}, part.signature)
        case Opaque(origin="gemini"):
            return part.data
        case Media() if (shown := _render_media(part)) is not None:
            return shown
    return {"text": text} if (text := placeholder_text(part)) else None


def _render_media(media: Media) -> Json | None:
    kind = mime_of(media)
    if media.data is not None:
        return {"inlineData": drop_none({"mimeType": kind, "data": media.data, "displayName": media.name})}
    if media.url is not None:
        return {"fileData": drop_none({"mimeType": kind, "fileUri": media.url, "displayName": media.name})}
    return None


def _signed(part: Json, signature: str | None) -> Json:
    return part if signature is None else part | {"thoughtSignature": signature}


def _with_id(call_id: str, body: Json) -> Json:
    return body if not call_id or call_id.startswith(GENERATED_ID_PREFIX) else {"id": call_id, **body}


def _response(result: ToolResult, call_of: FindCall) -> Json:
    call = None if result.name else call_of(result.call_id)
    more = [shown for part in result.content if (shown := _response_part(part)) is not None]
    texts = [] if more and not result.text else result_texts(result)
    answer: Json = {
        "name": result.name or (call.name if call else "tool"),
        "response": {"error" if result.is_error else "output": texts if len(texts) > 1 else "".join(texts)},
    }
    return answer | {"parts": more} if more else answer


def _response_part(part: Text | Media | Opaque) -> Json | None:
    if isinstance(part, Media):
        return _render_media(part)
    return part.data if isinstance(part, Opaque) and part.origin == name else None
