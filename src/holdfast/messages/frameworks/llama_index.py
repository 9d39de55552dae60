"""LlamaIndex messages: `ChatMessage`, a list of content blocks and `additional_kwargs`.

A call is a `ToolCallBlock`; OpenAI's integration repeats it in `additional_kwargs`, and older messages have it only
there. A result is a message of its own whose `additional_kwargs` name the call. There is no mark for a failed result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..parts import Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ..patch import Edit, Path, Replace
from ..payload import (
    ResultParts,
    as_dict,
    as_list,
    as_text,
    drop_none,
    mark_error,
    placeholder_text,
    read_error,
    retext_content,
)
from . import FrameworkCodec, split_results

name = "llama_index"
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
_SIGNATURES = "thought_signatures"
"""Field of `additional_kwargs` with Gemini's signature of each block, in their order."""
_DATA_FIELDS = {"image": "image", "audio": "audio", "video": "video", "document": "data"}
_MIME_FIELDS = {"image": "image_mimetype", "video": "video_mimetype", "document": "document_mimetype"}
OPAQUE = frozenset((*_DATA_FIELDS, "cache", "citable", "citation"))
"""Blocks that are kept and never interpreted: citations, cache marks, and media in a file."""


def dump(item: Any) -> list[Json]:
    fields: Json = item.model_dump(mode="json", exclude_none=True)
    return [{"role": fields["role"], "blocks": fields["blocks"], "additional_kwargs": fields["additional_kwargs"]}]


def load(dumped: Json) -> Any:
    from llama_index.core.base.llms.types import ChatMessage

    return ChatMessage.model_validate(dumped)


def decode(dumped: Json) -> tuple[Role, Sequence[Part]]:
    role, more = _ROLES[dumped["role"]], as_dict(dumped.get("additional_kwargs"))
    parts = [_part(block) for block in as_list(dumped.get("blocks"))]
    if role == "tool":
        return role, [_result(parts, more)]
    return role, parts if role != "assistant" else [*parts, *_repeated_calls(parts, more)]


def _repeated_calls(parts: Sequence[Part], more: Json) -> Iterator[ToolCall]:
    """Yields the calls in `additional_kwargs` that no block has."""
    known = {part.id for part in parts if isinstance(part, ToolCall)}
    for call in as_list(more.get("tool_calls")):
        function = as_dict(as_dict(call).get("function"))
        if function and (call_id := as_text(call.get("id"))) not in known:
            yield ToolCall(call_id, as_text(function.get("name")), as_text(function.get("arguments")))


def _result(parts: Sequence[Part], more: Json) -> ToolResult:
    content: ResultParts = tuple(part for part in parts if isinstance(part, Text | Media | Opaque))
    failed, content = read_error(content)
    call_id = as_text(more.get("tool_call_id") or more.get("call_id"))
    return ToolResult(call_id, content, failed, more.get("name"))


def _part(block: Json) -> Part:
    match block.get("block_type"):
        case "text":
            return Text(as_text(block.get("text")))
        case "thinking":
            about = as_dict(block.get("additional_information"))
            signature, encrypted = about.get("signature"), about.get("encrypted_content")
            return Reasoning(as_text(block.get("content")), signature, encrypted, about.get("id"), name)
        case "tool_call":
            arguments = block.get("tool_kwargs")
            written = arguments if isinstance(arguments, dict) else as_text(arguments)
            return ToolCall(as_text(block.get("tool_call_id")), as_text(block.get("tool_name")), written)
        case "image" | "audio" | "video" | "document" as kind if block.get(_DATA_FIELDS[kind]) or block.get("url"):
            return _media(kind, block)
        case kind:
            return Opaque(as_text(kind) or "block", block, name)


def _media(kind: str, block: Json) -> Media:
    data = block.get(_DATA_FIELDS[kind])
    mime = block.get(_MIME_FIELDS.get(kind, ""))
    if kind == "audio" and block.get("format"):
        mime = f"audio/{block['format']}"
    known: Any = "file" if kind == "document" else kind
    return Media(known, mime, data, None if data else as_text(block.get("url")), None, block.get("title"))


def places(dumped: Json) -> Iterator[tuple[Path, ...]]:
    """Yields where each part lies; a call also where `additional_kwargs` repeat it, and the signature of any part."""
    role, more = _ROLES[dumped["role"]], as_dict(dumped.get("additional_kwargs"))
    if role == "tool":
        yield ((),)
        return
    calls: list[tuple[Path, str]] = [
        (("additional_kwargs", "tool_calls", index), as_text(call.get("id")))
        for index, call in enumerate(as_list(more.get("tool_calls")) if role == "assistant" else [])
        if as_dict(as_dict(call).get("function"))
    ]
    signed = len(as_list(more.get(_SIGNATURES)))
    blocks = as_list(dumped.get("blocks"))
    ids = [as_text(block.get("tool_call_id")) if block.get("block_type") == "tool_call" else None for block in blocks]
    for index, known in enumerate(ids):
        signature: list[Path] = [("additional_kwargs", _SIGNATURES, index)] if index < signed else []
        yield (("blocks", index), *(path for path, call_id in calls if call_id == known), *signature)
    yield from ((path,) for path, call_id in calls if call_id not in ids)


def retext(value: Any, text: str) -> Iterable[Edit]:
    """Returns edits of a text or of a result, which is the whole message; a text's signature stays."""
    if not isinstance(value, dict):
        return []
    if "role" in value:
        return retext_content(value.get("blocks"), text, ("blocks",), marks=True, block={"block_type": "text"})
    return [Replace(("text",), text)]


def encode(message: Message) -> Sequence[Json]:
    """Returns dumps for a message that has none: one for each result, one for the rest."""
    results, role, rest = split_results(message)
    dumps = [_encode_result(result) for result in results]
    blocks = [block for part in rest if (block := _render(part)) is not None]
    if role is not None and (blocks or not rest):
        dumps.append({"role": role, "blocks": blocks, "additional_kwargs": {}})
    return dumps


def _encode_result(result: ToolResult) -> Json:
    blocks = [block for part in mark_error(result) if (block := _render(part)) is not None]
    about = drop_none({"tool_call_id": result.call_id, "name": result.name})
    return {"role": "tool", "blocks": blocks, "additional_kwargs": about}


def _render(part: Part) -> Json | None:
    match part:
        case Text():
            return _text(part.text)
        case ToolCall():
            call = {"tool_call_id": part.id, "tool_name": part.name, "tool_kwargs": part.arguments}
            return {"block_type": "tool_call", **call}
        case Reasoning(origin="llama_index"):
            about = {"signature": part.signature, "encrypted_content": part.encrypted, "id": part.id}
            return {"block_type": "thinking", "content": part.text, "additional_information": drop_none(about)}
        case Media() if part.data or part.url:
            return _render_media(part)
        case Opaque(origin="llama_index"):
            return part.data
    return _text(text) if (text := placeholder_text(part)) else None


def _text(text: str) -> Json:
    return {"block_type": "text", "text": text}


def _render_media(media: Media) -> Json:
    kind = "document" if media.kind == "file" else media.kind
    block: Json = {"block_type": kind, "url": media.url, _DATA_FIELDS[kind]: media.data}
    if kind == "audio":
        block["format"] = (media.mime or "").removeprefix("audio/") or None
    else:
        block[_MIME_FIELDS[kind]] = media.mime
    return drop_none(block | ({"title": media.name} if kind == "document" else {}))


codec = FrameworkCodec(name, dump, load, decode, encode, places, retext, opaque=OPAQUE)
