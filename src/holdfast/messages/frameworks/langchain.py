"""LangChain and LangGraph messages: `HumanMessage`, `AIMessage`, `ToolMessage` and the others of `langchain_core`.

Content is text or a list of blocks, in the forms of several providers and in LangChain's own. Calls are a field of
their own and may be blocks as well; a call is decoded once, at the place of its block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from ..parts import Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ..patch import Edit, Path, Replace
from ..payload import (
    ResultParts,
    as_dict,
    as_list,
    as_text,
    drop_none,
    placeholder_text,
    read_data_url,
    result_texts,
    retext_content,
    text_block,
)
from . import FrameworkCodec, split_results

name = "langchain"
_ROLES: dict[str, Role] = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "user": "user",
    "assistant": "assistant",
    "developer": "system",
}
_TYPES: dict[Role, str] = {"user": "human", "assistant": "ai", "system": "system", "tool": "tool"}
_CALL_BLOCKS = frozenset(("tool_use", "tool_call", "function_call", "custom_tool_call"))
_LEGACY = "function_call"
OPAQUE = frozenset(
    (
        "audio",
        "file",
        "image",
        "invalid_tool_call",
        "non_standard",
        "server_tool_call",
        "server_tool_call_chunk",
        "server_tool_result",
        "text-plain",
        "tool_call",
        "tool_call_chunk",
        "video",
    )
)
"""Blocks that are kept and never interpreted: tools run by the provider, media held elsewhere, pieces of calls."""


def dump(item: Any) -> list[Json]:
    if not isinstance(item.type, str) or item.type == "remove":
        raise TypeError("it is not sent to a model")
    fields: Json = item.model_dump(exclude_defaults=True)
    return [{"type": item.type} | fields]


def load(dumped: Json) -> Any:
    from langchain_core.messages import messages_from_dict

    data = {key: value for key, value in dumped.items() if key != "type"}
    return messages_from_dict([{"type": dumped["type"], "data": data}])[0]


def decode(dumped: Json) -> tuple[Role, Sequence[Part]]:
    role = _role(dumped)
    content = dumped.get("content")
    if role == "tool":
        return role, [_result(dumped, content)]
    return role, _parts(content) if role != "assistant" else [*_reply_parts(dumped, content)]


def _role(dumped: Json) -> Role:
    kind = dumped["type"].removesuffix("MessageChunk").lower()
    return _ROLES.get(str(dumped.get("role")), "user") if kind == "chat" else _ROLES[kind]


def _reply_parts(dumped: Json, content: Any) -> Iterator[Part]:
    more = as_dict(dumped.get("additional_kwargs"))
    if isinstance(thought := more.get("reasoning_content"), str) and thought:
        yield Reasoning(thought, origin=name)
    calls = {str(call.get("id")): call for call in as_list(dumped.get("tool_calls"))}
    calls |= {str(call.get("id")): call for call in as_list(dumped.get("invalid_tool_calls"))}
    for part in _blocks(content):
        if (call_id := _block_call_id(part)) is not None:
            if (call := calls.pop(call_id, None)) is not None:
                yield _call(call)
        else:
            yield _part(part)
    yield from map(_call, calls.values())
    legacy = more.get(_LEGACY)
    if isinstance(legacy, dict):
        yield ToolCall("", as_text(legacy.get("name")), as_text(legacy.get("arguments")), _LEGACY)


def _block_call_id(block: Any) -> str | None:
    """Returns the id of the call that this block repeats; None if it is no call."""
    is_call = isinstance(block, dict) and block.get("type") in _CALL_BLOCKS
    return str(block.get("call_id") or block.get("id")) if is_call else None


def _call(call: Json) -> ToolCall:
    arguments = call.get("args")
    written = arguments if isinstance(arguments, dict) else as_text(arguments)
    return ToolCall(as_text(call.get("id")), as_text(call.get("name")), written)


def _result(dumped: Json, content: Any) -> ToolResult:
    parts: ResultParts = tuple(part for part in _parts(content) if isinstance(part, Text | Media | Opaque))
    if dumped["type"].startswith("function") or dumped["type"].startswith("Function"):
        return ToolResult("", parts, False, as_text(dumped.get("name")), _LEGACY)
    failed = dumped.get("status") == "error"
    return ToolResult(as_text(dumped.get("tool_call_id")), parts, failed, dumped.get("name"))


def _blocks(content: Any) -> list[Any]:
    return [content] if isinstance(content, str) and content else as_list(content)


def _parts(content: Any) -> list[Part]:
    return [_part(block) for block in _blocks(content)]


def _part(block: Any) -> Part:
    if isinstance(block, str):
        return Text(block)
    match block.get("type"):
        case "text" | "text-plain" if isinstance(block.get("text"), str):
            return Text(block["text"])
        case "thinking":
            return Reasoning(as_text(block.get("thinking")), block.get("signature"), origin=name)
        case "redacted_thinking":
            return Reasoning("", None, as_text(block.get("data")), origin=name)
        case "reasoning":
            return _reasoning(block)
        case "image" | "audio" | "video" | "file" as kind:
            return _media(kind, block) or Opaque(kind, block, name)
        case "image_url":
            url = block.get("image_url")
            return _located("image", as_text(url.get("url") if isinstance(url, dict) else url), None)
        case "input_audio":
            audio = as_dict(block.get("input_audio"))
            return Media("audio", f"audio/{audio.get('format', 'wav')}", as_text(audio.get("data")))
        case other:
            return Opaque(as_text(other) or "block", block, name)


def _reasoning(block: Json) -> Reasoning:
    summary = "\n".join(as_text(as_dict(part).get("text")) for part in as_list(block.get("summary")))
    signature = as_dict(block.get("extras")).get("signature") or block.get("signature")
    return Reasoning(
        as_text(block.get("reasoning")) or summary, signature, block.get("encrypted_content"), block.get("id"), name
    )


def _media(kind: Literal["image", "audio", "video", "file"], block: Json) -> Media | None:
    """Reads media in LangChain's own forms and in Anthropic's."""
    source = as_dict(block.get("source")) or block
    mime = source.get("mime_type") or source.get("media_type")
    data = source.get("base64") or (source.get("data") if source.get("source_type", "base64") == "base64" else None)
    named = block.get("name") or as_dict(block.get("extras")).get("filename")
    if data or (file := source.get("file_id")):
        return Media(kind, mime, data, None, None if data else file, named)
    return _located(kind, url, mime) if (url := as_text(source.get("url"))) else None


def _located(kind: Literal["image", "audio", "video", "file"], url: str, mime: str | None) -> Media:
    found, data = read_data_url(url)
    return Media(kind, found or mime, data, None if data else url)


def places(dumped: Json) -> Iterator[tuple[Path, ...]]:
    """Yields where each part lies; a call in its block, in its field and in what the field is read from."""
    role, content, more = _role(dumped), dumped.get("content"), as_dict(dumped.get("additional_kwargs"))
    replies = role == "assistant"
    if role == "tool":
        yield ((),)
        return
    if replies and isinstance(thought := more.get("reasoning_content"), str) and thought:
        yield (("additional_kwargs", "reasoning_content"),)
    calls = _call_places(dumped, more) if replies else {}
    if isinstance(content, str):
        yield from [(("content",),)] if content else []
    for index, block in enumerate(as_list(content)):
        call_id = _block_call_id(block) if replies else None
        if call_id is None:
            yield (("content", index),)
        elif found := calls.pop(call_id, None):
            yield (("content", index), *found)
    yield from map(tuple, calls.values())
    if replies and isinstance(more.get(_LEGACY), dict):
        yield (("additional_kwargs", _LEGACY),)


def _call_places(dumped: Json, more: Json) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for field in ("tool_calls", "invalid_tool_calls"):
        for index, call in enumerate(as_list(dumped.get(field))):
            found.setdefault(str(call.get("id")), []).append((field, index))
    # without these fields LangChain reads the calls from the chunks of a stream, or as OpenAI wrote them
    for path, origin in ((("tool_call_chunks",), dumped), (("additional_kwargs", "tool_calls"), more)):
        for index, call in enumerate(as_list(origin.get(path[-1]))):
            if (known := found.get(str(as_dict(call).get("id")))) is not None:
                known.append((*path, index))
    return found


def retext(value: Any, text: str) -> Iterable[Edit]:
    """Returns edits of a text or of a result, which is the whole message."""
    if isinstance(value, str):
        return [Replace((), text)]
    if "content" in value:
        return retext_content(value["content"], text, ("content",))
    return [Replace(("text",), text)]


def encode(message: Message) -> Sequence[Json]:
    """Returns dumps for a message that has none: one for each result, one for the rest."""
    results, role, rest = split_results(message)
    dumps = [_encode_result(result) for result in results]
    return dumps if role is None else dumps + _encode_message(role, rest)


def _encode_message(role: Role, parts: Sequence[Part]) -> list[Json]:
    blocks = [block for part in parts if (block := _render(part)) is not None]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if parts and not blocks and not calls:
        return []
    dumped: Json = {"type": _TYPES[role], "content": _flatten(blocks)}
    valid = [call for call in calls if isinstance(call.arguments, dict) or "__arguments__" not in call.arguments_dict]
    if valid:
        dumped["tool_calls"] = [
            {"name": call.name, "args": call.arguments_dict, "id": call.id, "type": "tool_call"} for call in valid
        ]
    if invalid := [call for call in calls if call not in valid]:
        dumped["invalid_tool_calls"] = [
            {"name": call.name, "args": call.arguments_text, "id": call.id, "error": None, "type": "invalid_tool_call"}
            for call in invalid
        ]
    return [dumped]


def _encode_result(result: ToolResult) -> Json:
    blocks = [block for part in result.content if (block := _render(part)) is not None]
    if result.kind == _LEGACY:
        return {"type": "function", "name": result.name or "tool", "content": "\n".join(result_texts(result))}
    dumped: Json = {"type": "tool", "content": _flatten(blocks), "tool_call_id": result.call_id}
    if result.name:
        dumped["name"] = result.name
    return dumped | ({"status": "error"} if result.is_error else {})


def _flatten(blocks: list[Json]) -> str | list[Json]:
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0].get("type") == "text" else blocks or ""


def _render(part: Part) -> Json | None:
    match part:
        case Text():
            return text_block("text", part.text)
        case Reasoning(origin="langchain"):
            return _encode_reasoning(part)
        case Media() if part.data or part.url or part.file_id:
            extras = {"filename": part.name} if part.name else None
            where = {"base64": part.data, "url": part.url, "file_id": part.file_id, "mime_type": part.mime}
            return drop_none({"type": part.kind, **where, "extras": extras})
        case Opaque(origin="langchain"):
            return part.data
        case ToolCall() | ToolResult():
            return None
    return text_block("text", text) if (text := placeholder_text(part)) else None


def _encode_reasoning(part: Reasoning) -> Json:
    if part.id is not None:
        summary = [text_block("summary_text", part.text)] if part.text else []
        return drop_none({"type": "reasoning", "id": part.id, "summary": summary, "encrypted_content": part.encrypted})
    if part.signature is not None:
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    if part.encrypted is not None:
        return {"type": "redacted_thinking", "data": part.encrypted}
    return {"type": "reasoning", "reasoning": part.text}


def usage(dumped: Json) -> Any:
    return dumped.get("usage_metadata")


codec = FrameworkCodec(name, dump, load, decode, encode, places, retext, {"content": ""}, usage, opaque=OPAQUE)
