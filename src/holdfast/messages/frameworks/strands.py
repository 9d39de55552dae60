"""Messages of Strands Agents: dicts in the form of the Converse API of Amazon Bedrock, with raw bytes as media.

A dump is the dict with its bytes as base64, in the form in which Strands stores sessions. Neither direction imports
Strands, so dicts for Bedrock itself are accepted without it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..json_text import to_json
from ..parts import Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ..patch import Edit, Path, Replace
from ..payload import (
    ResultParts,
    as_dict,
    as_list,
    as_text,
    drop_none,
    mime_of,
    placeholder_text,
    retext_content,
)
from . import FrameworkCodec

name = "strands"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_BYTES = "__bytes_encoded__"
_MIMES = {
    "image": {kind: f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp")},
    "audio": {kind: f"audio/{kind}" for kind in ("opus", "wav", "aac", "flac", "mp4", "ogg", "pcm", "webm", "m4a")}
    | {"mp3": "audio/mpeg", "mkv": "audio/x-matroska"},
    "video": {kind: f"video/{kind}" for kind in ("mpeg", "mp4", "webm")}
    | {"flv": "video/x-flv", "mkv": "video/x-matroska", "mov": "video/quicktime", "wmv": "video/x-ms-wmv"}
    | {"three_gp": "video/3gpp"},
    "document": {"pdf": "application/pdf", "csv": "text/csv", "html": "text/html", "txt": "text/plain"}
    | {"md": "text/markdown", "doc": "application/msword", "xls": "application/vnd.ms-excel"}
    | {"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document"}
    | {"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
}
"""Formats of media by kind of block, with their MIME types."""
_FORMATS = {kind: {mime: format for format, mime in mimes.items()} for kind, mimes in _MIMES.items()}
OPAQUE = frozenset((*_MIMES, "cachePoint", "citationsContent", "guardContent"))
"""Blocks that are kept and never interpreted: cache marks, guarded media, and media elsewhere."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9 \-()\[\]]+")


def dump(item: Any) -> list[Json]:
    if not isinstance(item, dict) or "role" not in item:
        raise TypeError("it has no role")
    dumped: Json = _without_bytes(item)
    return [dumped]


def load(dumped: Json) -> Any:
    return _with_bytes(dumped)


def _without_bytes(value: Any) -> Any:
    match value:
        case bytes() | bytearray():
            return {_BYTES: True, "data": base64.b64encode(value).decode()}
        case dict():
            return {key: _without_bytes(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_bytes(item) for item in value]
    return value


def _with_bytes(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get(_BYTES) is True:
            return base64.b64decode(value["data"])
        return {key: _with_bytes(item) for key, item in value.items()}
    return [_with_bytes(item) for item in value] if isinstance(value, list) else value


def decode(dumped: Json) -> tuple[Role, Sequence[Part]]:
    role, parts = _ROLES[dumped["role"]], [_part(block) for block in as_list(dumped.get("content"))]
    return ("tool" if any(isinstance(part, ToolResult) for part in parts) else role), parts


def _part(block: Json) -> Part:
    match block:
        case {"text": text}:
            return Text(as_text(text))
        case {"toolUse": {"toolUseId": call_id, "name": called, **more}}:
            signature: Any = more.get("reasoningSignature")
            given: Any = more.get("input")
            arguments = given if isinstance(given, dict) else as_text(given)
            return ToolCall(as_text(call_id), as_text(called), arguments, signature=signature)
        case {"toolResult": {"toolUseId": call_id, **more}}:
            content: ResultParts = tuple(map(_result_part, as_list(more.get("content"))))
            return ToolResult(as_text(call_id), content, more.get("status") == "error")
        case {"reasoningContent": {"reasoningText": dict(thought)}}:
            return Reasoning(as_text(thought.get("text")), thought.get("signature"), origin=name)
        case {"reasoningContent": {"redactedContent": {"data": hidden}}}:
            return Reasoning("", None, as_text(hidden), origin=name)
        case {"guardContent": {"text": {"text": text}}}:
            return Text(as_text(text))
        case {"citationsContent": {"content": [*cited]}}:
            return Text("".join(as_text(as_dict(one).get("text")) for one in cited))
    kind = next(iter(block), "block")
    return (kind in _MIMES and _media(kind, as_dict(block[kind]))) or Opaque(kind, block, name)


def _result_part(block: Json) -> Text | Media | Opaque:
    if "json" in block:
        return Text(to_json(block["json"]))
    part = _part(block)
    return part if isinstance(part, Text | Media | Opaque) else Opaque("block", block, name)


def _media(kind: str, given: Json) -> Media | None:
    source = as_dict(given.get("source"))
    data, uri = as_dict(source.get("bytes")).get("data"), as_dict(source.get("location")).get("uri")
    known: Any = "file" if kind == "document" else kind
    mime = _MIMES[kind].get(as_text(given.get("format")))
    return Media(known, mime, data, uri, None, given.get("name")) if data or uri else None


def places(dumped: Json) -> list[tuple[Path, ...]]:
    """Returns where each part lies."""
    return [(("content", index),) for index in range(len(as_list(dumped.get("content"))))]


def retext(block: Json, text: str) -> Iterable[Edit]:
    """Returns edits of a text or a result."""
    match block:
        case {"toolResult": result}:
            return retext_content(result.get("content"), text, ("toolResult", "content"), block={})
        case {"guardContent": _}:
            return [Replace(("guardContent", "text", "text"), text)]
        case {"citationsContent": cited}:
            return retext_content(cited["content"], text, ("citationsContent", "content"), block={})
    return [Replace(("text",), text)]


def encode(message: Message) -> Sequence[Json]:
    """Returns the dump of a message that has none: results first, as Bedrock requires."""
    role = "assistant" if message.role == "assistant" else "user"
    parts = sorted(message.parts, key=lambda part: not isinstance(part, ToolResult))
    blocks = [block for part in parts if (block := _render(part, role)) is not None]
    return [{"role": role, "content": blocks}] if blocks or not parts else []


def join(dumped: Json, more: Json) -> Json:
    """Joins the results of one batch into one message."""
    blocks = [*as_list(dumped.get("content")), *as_list(more.get("content"))]
    return dumped | {"content": sorted(blocks, key=lambda block: "toolResult" not in block)}


def _render(part: Part, role: str) -> Json | None:
    match part:
        case Text():
            return {"text": part.text}
        case ToolCall():
            call = {"toolUseId": part.id, "name": part.name, "input": part.arguments_dict}
            return {"toolUse": drop_none(call | {"reasoningSignature": part.signature})}
        case ToolResult():
            content = [block for one in part.content if (block := _render(one, "user")) is not None]
            status = "error" if part.is_error else "success"
            return {"toolResult": {"toolUseId": part.call_id, "status": status, "content": content}}
        case Reasoning(origin="strands", encrypted=str()):
            return {"reasoningContent": {"redactedContent": {_BYTES: True, "data": part.encrypted}}}
        case Reasoning(origin="strands"):
            thought = drop_none({"text": part.text, "signature": part.signature})
            return {"reasoningContent": {"reasoningText": thought}}
        case Media() if role == "user" and (block := _render_media(part)) is not None:
            return block
        case Opaque(origin="strands"):
            return part.data
    return {"text": text} if (text := placeholder_text(part)) else None


def _render_media(media: Media) -> Json | None:
    """Returns a block for media in a format that Bedrock accepts, inline or in S3; None for any other."""
    kind = "document" if media.kind == "file" else media.kind
    format = _FORMATS[kind].get(mime_of(media))
    if media.data:
        source: Json = {"bytes": {_BYTES: True, "data": media.data}}
    elif media.url and media.url.startswith("s3://"):
        source = {"location": {"type": "s3", "uri": media.url}}
    else:
        return None
    if format is None:
        return None
    title = {"name": _NOT_IN_NAMES.sub(" ", media.name or kind)} if kind == "document" else {}
    return {kind: {"format": format, **title, "source": source}}


def usage(dumped: Json) -> Any:
    reported = as_dict(as_dict(dumped.get("metadata")).get("usage"))
    if not (given := reported.get("inputTokens")):
        return None
    written = reported.get("outputTokens") or 0
    figures = {"input": given, "output": written}
    if given + written == reported.get("totalTokens"):  # what the cache had is in the input
        return figures
    cached, stored = reported.get("cacheReadInputTokens"), reported.get("cacheWriteInputTokens")
    return figures | {"cache_read": cached or 0, "cache_write": stored or 0}


codec = FrameworkCodec(name, dump, load, decode, encode, places, retext, usage=usage, join=join, opaque=OPAQUE)
