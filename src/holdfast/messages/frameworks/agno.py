"""Agno messages: `agno.models.message.Message`, with calls in OpenAI's form and media in lists of their own.

A dump leaves out what changes while the message stays the same: whether Agno read it from its session, and checkpoint
marks. Without that a second run would not be recognised as the continuation of the first.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from ..json_text import to_json
from ..parts import Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ..patch import Drop, Edit, Path, Replace
from ..payload import (
    ResultParts,
    as_dict,
    as_list,
    as_text,
    drop_none,
    placeholder_text,
    retext_content,
    text_block,
)
from . import FrameworkCodec, split_results

name = "agno"
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
}
_LISTS: dict[str, Literal["image", "audio", "video", "file"]] = {
    "images": "image",
    "audio": "audio",
    "videos": "video",
    "files": "file",
}
_OUTPUTS = ("audio_output", "image_output", "video_output", "file_output")
_STORED = ("provider_data", "content_blocks")
"""Claude's blocks of a reply, which Agno sends in place of the message's other fields."""
_PASSING = frozenset(("from_history", "checkpoint_status", "checkpoint_created_at", "metrics"))


def dump(item: Any) -> list[Json]:
    fields: Json = item.model_dump(exclude_none=True, exclude_defaults=True, exclude=set(_PASSING))
    fields |= {"id": item.id, "role": item.role, "created_at": item.created_at}
    if item.metrics and any(vars(item.metrics).values()) and (metrics := item.metrics.to_dict()):
        fields["metrics"] = metrics
    return [fields]


def load(dumped: Json) -> Any:
    from agno.metrics import MessageMetrics
    from agno.models.message import Message as AgnoMessage

    fields = dict(dumped)
    for media in (*_LISTS, *_OUTPUTS):
        if given := fields.get(media):
            fields[media] = [_with_bytes(one) for one in given] if media in _LISTS else _with_bytes(given)
    if "metrics" in fields:
        fields["metrics"] = MessageMetrics.from_dict(fields["metrics"])
    return AgnoMessage(**fields)


def _with_bytes(media: Json) -> Json:
    content = media.get("content")
    return media | {"content": base64.b64decode(content)} if isinstance(content, str) else dict(media)


def decode(dumped: Json) -> tuple[Role, Sequence[Part]]:
    role = _ROLES[dumped["role"]]
    parts = [*_content(dumped.get("content")), *_media(dumped)]
    if role == "tool":
        return role, [_result(dumped, parts)]
    return role, parts if role != "assistant" else [*_reasoning(dumped), *parts, *_calls(dumped)]


def _content(content: Any) -> list[Part]:
    blocks = [content] if isinstance(content, str) and content else as_list(content)
    return [_block(block) for block in blocks]


def _block(block: Any) -> Part:
    if isinstance(block, str):
        return Text(block)
    text = block.get("text") if isinstance(block, dict) and block.get("type", "text") == "text" else None
    return Text(text) if isinstance(text, str) else Opaque(as_text(as_dict(block).get("type")), as_dict(block), name)


def _media(dumped: Json) -> Iterator[Media | Opaque]:
    for field, kind in _LISTS.items():
        for media in as_list(dumped.get(field)):
            data, url = media.get("content"), media.get("url")
            named = media.get("filename") or media.get("name")
            if data or url:
                yield Media(kind, media.get("mime_type"), data, None if data else url, None, named)
            else:
                yield Opaque(field, media, name)


def _reasoning(dumped: Json) -> Iterator[Reasoning]:
    signature = as_dict(dumped.get("provider_data")).get("signature")
    if (thought := dumped.get("reasoning_content")) or signature:
        yield Reasoning(as_text(thought), signature, origin=name)
    if hidden := dumped.get("redacted_reasoning_content"):
        yield Reasoning("", None, hidden, origin=name)


def _calls(dumped: Json) -> Iterator[ToolCall]:
    for call in as_list(dumped.get("tool_calls")):
        function = as_dict(call.get("function"))
        arguments = function.get("arguments")
        written = arguments if isinstance(arguments, dict) else as_text(arguments)
        yield ToolCall(as_text(call.get("id")), as_text(function.get("name")), written)


def _result(dumped: Json, parts: Sequence[Part]) -> ToolResult:
    content: ResultParts = tuple(part for part in parts if isinstance(part, Text | Media | Opaque))
    failed = bool(dumped.get("tool_call_error"))
    return ToolResult(as_text(dumped.get("tool_call_id")), content, failed, dumped.get("tool_name"))


def places(dumped: Json) -> Iterator[tuple[Path, ...]]:
    """Yields where each part lies, also in what Agno sends in place of the part's own field."""
    role, content = _ROLES[dumped["role"]], dumped.get("content")
    if role == "tool":
        yield ((),)
        return
    replies = role == "assistant"
    stored = as_list(as_dict(dumped.get("provider_data")).get("content_blocks")) if replies else []
    if replies:
        yield from _reasoning_places(dumped, stored)
    copies: list[Path] = [_STORED] if stored else []
    if isinstance(content, str):
        yield from [(("content",), *copies)] if content else []
    else:
        yield from ((("content", index), *copies) for index in range(len(as_list(content))))
    yield from (((field, index),) for field in _LISTS for index in range(len(as_list(dumped.get(field)))))
    for index, call in enumerate(as_list(dumped.get("tool_calls")) if replies else []):
        yield (("tool_calls", index), *_blocks_of(stored, "tool_use", as_text(call.get("id"))))


def _reasoning_places(dumped: Json, stored: list[Any]) -> Iterator[tuple[Path, ...]]:
    about = as_dict(dumped.get("provider_data"))
    fields: list[Path] = [("reasoning_content",)] if dumped.get("reasoning_content") else []
    fields += [("provider_data", "signature")] if about.get("signature") else []
    if fields:
        item: list[Path] = [("provider_data", "reasoning_output")] if about.get("reasoning_output") else []
        yield (*fields, *item, *_blocks_of(stored, "thinking"))
    if dumped.get("redacted_reasoning_content"):
        yield (("redacted_reasoning_content",), *_blocks_of(stored, "redacted_thinking"))


def _blocks_of(stored: list[Any], kind: str, call_id: str | None = None) -> Iterator[Path]:
    for index, block in enumerate(map(as_dict, stored)):
        if block.get("type") == kind and call_id in (None, block.get("id")):
            yield (*_STORED, index)


def retext(value: Any, text: str) -> Iterator[Edit]:
    """Yields edits of a text or of a result, which is the whole message, and of the fields that repeat it."""
    if isinstance(value, str):
        yield Replace((), text)
    elif isinstance(value, list):  # Agno builds the blocks that it does not find from the other fields
        yield Drop(())
    elif "role" not in value:
        yield Replace(("text",), text)
    else:
        yield from retext_content(value.get("content"), text, ("content",))
        yield from (Drop((field,)) for field in _LISTS if field in value)
        if "compressed_content" in value:
            yield Replace(("compressed_content",), text)
        yield from (Replace(("tool_calls", at, "content"), text) for at in range(len(as_list(value.get("tool_calls")))))


def encode(message: Message) -> Sequence[Json]:
    """Returns dumps for a message that has none: one for each result, one for the rest."""
    results, role, rest = split_results(message)
    dumps = [_encode_result(result) for result in results]
    if role is not None and ((fields := _fields(rest)) or not rest):
        dumps.append(_with_id({"role": role, **fields}))
    return dumps


def _encode_result(result: ToolResult) -> Json:
    about = {"tool_call_id": result.call_id, "tool_name": result.name}
    failed = {"tool_call_error": True} if result.is_error else {}
    return _with_id({"role": "tool", "content": "", **drop_none(about), **failed, **_fields(result.content)})


def _with_id(fields: Json) -> Json:
    """Adds the id and time that Agno would otherwise make anew whenever the dump is loaded."""
    return {"id": _id_of(fields), "created_at": 0, **fields}


def _id_of(value: Json) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, to_json(value)))


def _fields(parts: Sequence[Part]) -> Json:
    """Returns the fields of a message with these parts; none if nothing of them can be shown."""
    blocks: list[Json] = []
    fields: Json = {}
    for part in parts:
        match part:
            case ToolCall():
                function = {"name": part.name, "arguments": part.arguments_text}
                fields.setdefault("tool_calls", []).append({"id": part.id, "type": "function", "function": function})
            case Reasoning(origin="agno"):
                fields |= _encode_reasoning(part)
            case Media() if part.data or part.url:
                _add_media(fields, part)
            case Opaque(origin="agno") if part.kind in _LISTS:
                fields.setdefault(part.kind, []).append(part.data)
            case Opaque(origin="agno"):
                blocks.append(part.data)
            case Text():
                blocks.append(text_block("text", part.text))
            case _ if text := placeholder_text(part):
                blocks.append(text_block("text", text))
    if blocks:
        plain_text = len(blocks) == 1 and blocks[0].keys() == {"type", "text"}
        fields["content"] = blocks[0]["text"] if plain_text else blocks
    return fields


def _encode_reasoning(part: Reasoning) -> Json:
    if part.encrypted is not None:
        return {"redacted_reasoning_content": part.encrypted}
    signature = {} if part.signature is None else {"provider_data": {"signature": part.signature}}
    return {"reasoning_content": part.text, **signature}


def _add_media(fields: Json, media: Media) -> None:
    source = {"url": media.url, "content": media.data, "mime_type": media.mime}
    named = {"filename": media.name} if media.kind == "file" else {}
    entry = drop_none(source | named)
    field = next(field for field, kind in _LISTS.items() if kind == media.kind)
    fields.setdefault(field, []).append({"id": _id_of(entry), **entry})


def usage(dumped: Json) -> Any:
    metrics = as_dict(dumped.get("metrics"))
    if not metrics.get("input_tokens"):
        return None
    return {"input_tokens": metrics["input_tokens"], "output_tokens": metrics.get("output_tokens", 0)}


codec = FrameworkCodec(name, dump, load, decode, encode, places, retext, usage=usage, opaque=frozenset(_LISTS))
