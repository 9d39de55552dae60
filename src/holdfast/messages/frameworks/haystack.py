"""Haystack messages: `ChatMessage`, in the form of its own `to_dict`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..json_text import from_json, to_json
from ..parts import Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ..patch import Edit, Path, Replace
from ..payload import ResultParts, as_list, as_text, drop_none, mime_of, placeholder_text, retext_content
from . import FrameworkCodec

name = "haystack"


def dump(item: Any) -> list[Json]:
    dumped: Json = item.to_dict()
    if "role" not in dumped:
        raise TypeError("it has no role")
    return [dumped]


def load(dumped: Json) -> Any:
    from haystack.dataclasses import ChatMessage

    return ChatMessage.from_dict(dumped)


def decode(dumped: Json) -> tuple[Role, Sequence[Part]]:
    return dumped["role"], [_part(block) for block in dumped["content"]]


def _part(block: Json) -> Part:
    ((kind, content),) = block.items()
    match kind:
        case "text":
            return Text(content)
        case "tool_call":
            return ToolCall(as_text(content.get("id")), content["tool_name"], content["arguments"])
        case "tool_call_result":
            return _result(content)
        case "reasoning":
            signature = to_json(content["extra"]) if content.get("extra") else None
            return Reasoning(content["reasoning_text"], signature, origin=name)
        case "image":
            return Media("image", content.get("mime_type"), content["base64_image"])
        case "file":
            return Media("file", content.get("mime_type"), content["base64_data"], name=content.get("filename"))
    return Opaque(kind, block, name)


def _result(content: Json) -> ToolResult:
    origin, given = content["origin"], content["result"]
    blocks = [{"text": given}] if isinstance(given, str) and given else as_list(given)
    parts: ResultParts = tuple(part for block in blocks if isinstance(part := _part(block), Text | Media | Opaque))
    return ToolResult(as_text(origin.get("id")), parts, bool(content.get("error")), origin["tool_name"])


def places(dumped: Json) -> list[tuple[Path, ...]]:
    """Returns where each part lies."""
    return [(("content", index),) for index in range(len(dumped["content"]))]


def retext(block: Json, text: str) -> Iterable[Edit]:
    """Returns edits of a text or a result."""
    if "text" in block:
        return [Replace(("text",), text)]
    return retext_content(block["tool_call_result"]["result"], text, ("tool_call_result", "result"))


def encode(message: Message) -> Sequence[Json]:
    results = [_dumped("tool", [_encode_result(result)]) for result in message.results]
    rest = [part for part in message.parts if not isinstance(part, ToolResult)]
    if not rest and message.parts:
        return results
    role = "user" if message.role == "tool" else message.role
    blocks = [block for part in rest if (block := _render(part, role)) is not None]
    if role == "system":  # it holds one text
        return [_dumped(role, [block]) for block in blocks]
    return [*results, _dumped(role, blocks)] if blocks or not rest else results


def _dumped(role: str, content: list[Json]) -> Json:
    return {"role": role, "content": content or [{"text": ""}], "meta": {}, "name": None}


def _encode_result(result: ToolResult) -> Json:
    blocks = [block for part in result.content if (block := _render(part, "tool")) is not None]
    alone = len(blocks) == 1 and "text" in blocks[0]
    origin: Json = {"tool_name": result.name or "tool", "arguments": {}, "id": result.call_id, "extra": None}
    shown: Any = blocks[0]["text"] if alone else blocks or ""
    return {"tool_call_result": {"result": shown, "origin": origin, "error": result.is_error}}


def _render(part: Part, role: str) -> Json | None:
    match part:
        case Text():
            return {"text": part.text}
        case ToolCall():
            call = {"tool_name": part.name, "arguments": part.arguments_dict, "id": part.id, "extra": None}
            return {"tool_call": call}
        case Reasoning(origin="haystack"):
            extra = from_json(part.signature) if part.signature else {}
            return {"reasoning": {"reasoning_text": part.text, "extra": extra}}
        case Media(kind="image", data=str()) if role != "system":
            image: Json = {"base64_image": part.data, "mime_type": mime_of(part), "meta": {}, "validation": False}
            return {"image": image}
        case Media(data=str()) if role == "user":
            file = {"base64_data": part.data, "mime_type": mime_of(part), "filename": part.name, "validation": False}
            return {"file": drop_none(file)}
        case Opaque(origin="haystack"):
            return part.data
    return {"text": text} if (text := placeholder_text(part)) else None


def usage(dumped: Json) -> Any:
    reported = dumped.get("meta", {}).get("usage") or {}
    return reported if reported.get("prompt_tokens") or reported.get("input_tokens") else None


codec = FrameworkCodec(name, dump, load, decode, encode, places, retext, usage=usage)
