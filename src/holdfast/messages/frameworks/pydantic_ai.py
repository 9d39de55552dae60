"""Pydantic AI messages: `ModelRequest` and `ModelResponse`, in the form of their own serializer.

A request may hold system prompts, tool returns and user prompts. System prompts are kept apart, because a compaction
keeps them and archives the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeGuard

from ..parts import Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ..patch import Drop, Edit, Path, Replace
from ..payload import as_list, as_text, drop_none, mime_of, placeholder_text
from . import FrameworkCodec

name = "pydantic_ai"
_SYSTEM, _FAILED = "system-prompt", frozenset(("failed", "denied", "interrupted", "retried"))
_RETURNS = frozenset(("tool-return", "builtin-tool-return"))
"""Parts whose content may be null, which a dump leaves out."""
_MEDIA_KINDS: dict[str, Literal["image", "audio", "video", "file"]] = {
    "image-url": "image",
    "audio-url": "audio",
    "video-url": "video",
    "document-url": "file",
}
_URL_KINDS = {kind: url for url, kind in _MEDIA_KINDS.items()}
_INVISIBLE = frozenset(
    (
        "instruction",
        "instruction-delta",
        "instruction-digest",
        "instruction-baseline",
        "tool-availability-delta",
        "capability-load-delta",
        "model-settings-delta",
    )
)
"""Parts by which a run records its configuration: they are not messages to the model."""
OPAQUE = _INVISIBLE | {
    "builtin-tool-call",
    "builtin-tool-return",
    "cache-point",
    "compaction",
    "file",
    "retry-feedback",
    "speech",
}
"""Parts that are kept and never interpreted: tools run by the provider, media of the model, and marks."""


def dump(item: Any) -> list[Json]:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    if item.kind not in ("request", "response"):
        raise TypeError("it is neither a request nor a response")
    (dumped,) = ModelMessagesTypeAdapter.dump_python([item], mode="json", exclude_none=True)
    system = [part["part_kind"] == _SYSTEM for part in dumped["parts"]]
    if not any(system) or all(system):
        return [dumped]
    kinds = zip(dumped["parts"], system, strict=True)
    split: tuple[list[Json], list[Json]] = ([], [])
    for part, is_system in kinds:
        split[not is_system].append(part)
    return [dumped | {"parts": parts} for parts in split]


def load(dumped: Json) -> Any:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    parts = [{"content": None} | part if part["part_kind"] in _RETURNS else part for part in dumped["parts"]]
    return ModelMessagesTypeAdapter.validate_python([dumped | {"parts": parts}])[0]


def decode(dumped: Json) -> tuple[Role, Sequence[Part]]:
    if dumped["kind"] == "response":
        return "assistant", [_spoken(part) for part in dumped["parts"]]
    parts = [one for part in dumped["parts"] for one in _received(part)]
    if any(isinstance(part, ToolResult) for part in parts):
        return "tool", parts
    kinds = {part["part_kind"] for part in dumped["parts"]}
    return ("system" if kinds == {_SYSTEM} else "user"), parts


def _spoken(part: Json) -> Part:
    match part["part_kind"]:
        case "text":
            return Text(part["content"])
        case "thinking":
            return Reasoning(part["content"], part.get("signature"), None, part.get("id"), name)
        case "tool-call":
            arguments = part.get("args")
            written = arguments if isinstance(arguments, dict) else as_text(arguments)
            return ToolCall(part["tool_call_id"], part["tool_name"], written)
        case kind:
            return Opaque(kind, part, name)


def _received(part: Json) -> Iterator[Part]:
    kind = part["part_kind"]
    content = part.get("content")
    if kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name")):
        failed = kind == "retry-prompt" or part.get("outcome") in _FAILED
        items = [content] if isinstance(content, str | dict) else as_list(content) if content is not None else []
        parts = tuple(one for item in items for one in _content(item) if isinstance(one, Text | Media | Opaque))
        yield ToolResult(part["tool_call_id"], parts, failed, part.get("tool_name"))
    elif kind in _INVISIBLE or content is None:
        yield Opaque(kind, part, name)
    elif _has_items(part):
        for item in content:
            yield from _content(item)
    else:
        yield Text(as_text(content))


def _has_items(part: Json) -> bool:
    """Whether each item of this part's content is a part of the message."""
    return part["part_kind"] == "user-prompt" and isinstance(part.get("content"), list)


def _content(item: Any) -> Iterator[Part]:
    kind = item.get("kind") if isinstance(item, dict) else None
    if isinstance(item, str):
        yield Text(item)
    elif kind in ("text-content", "structured-content"):
        yield Text(as_text(item.get("content")))
    elif kind in _MEDIA_KINDS:
        yield Media(_MEDIA_KINDS[kind], item.get("media_type"), None, item["url"])
    elif kind == "binary":
        top = item["media_type"].partition("/")[0]
        yield Media(top if top in ("image", "audio", "video") else "file", item["media_type"], item["data"])
    elif kind == "uploaded-file":
        yield Media("file", item.get("media_type"), None, None, item["file_id"])
    elif kind is not None:
        yield Opaque(kind, item, name)
    else:
        yield Text(as_text(item))


def places(dumped: Json) -> Iterator[tuple[Path, ...]]:
    """Yields where each part lies."""
    for index, part in enumerate(dumped["parts"]):
        if _has_items(part):
            yield from ((("parts", index, "content", at),) for at in range(len(part["content"])))
        else:
            yield (("parts", index),)


def retext(value: Any, text: str) -> Iterator[Edit]:
    """Yields edits of a text or a result, without what Pydantic AI would send or expect in place of the text."""
    if not isinstance(value, dict) or value.keys().isdisjoint(("part_kind", "kind")):
        yield Replace((), text)
        return
    yield Replace(("content",), text)
    if value.get("kind") == "structured-content":
        yield Replace(("kind",), "text-content")
        yield from (Drop((field,)) for field in ("value", "tag", "description") if field in value)
    if "." not in (value.get("tool_kind") or "."):  # of Pydantic AI itself: it loads no other content than its own
        yield Drop(("tool_kind",))


def encode(message: Message) -> Sequence[Json]:
    if message.role == "assistant":
        parts = [part for one in message.parts if (part := _say(one)) is not None]
        return [{"kind": "response", "parts": parts}] if parts else []
    parts = [_return(part) for part in message.parts if isinstance(part, ToolResult)]
    others = [part for part in message.parts if not isinstance(part, ToolResult)]
    parts += [part.data for part in others if _is_record(part)]
    shown = [item for part in others if not _is_record(part) and (item := _item(part)) is not None]
    if message.role == "system":
        parts += [{"part_kind": _SYSTEM, "content": as_text(item)} for item in shown]
    elif shown:
        alone = len(shown) == 1 and isinstance(shown[0], str)
        parts.append({"part_kind": "user-prompt", "content": shown[0] if alone else shown})
    return [{"kind": "request", "parts": parts}] if parts else []


def _is_record(part: Part) -> TypeGuard[Opaque]:
    return isinstance(part, Opaque) and part.origin == name and "part_kind" in part.data


def _say(part: Part) -> Json | None:
    match part:
        case Text():
            return {"part_kind": "text", "content": part.text}
        case Reasoning(origin="pydantic_ai"):
            fields = {"content": part.text, "signature": part.signature, "id": part.id}
            return drop_none({"part_kind": "thinking", **fields})
        case ToolCall():
            call = {"tool_name": part.name, "args": part.arguments, "tool_call_id": part.id}
            return {"part_kind": "tool-call", **call}
        case Opaque(origin="pydantic_ai"):
            return part.data
    return {"part_kind": "text", "content": text} if (text := placeholder_text(part)) else None


def _return(result: ToolResult) -> Json:
    items = [item for part in result.content if (item := _item(part)) is not None]
    content: Any = items[0] if len(items) == 1 and isinstance(items[0], str) else items or ""
    own = {"tool_name": result.name or "tool", "content": content, "tool_call_id": result.call_id}
    return {"part_kind": "tool-return", **own, "outcome": "failed" if result.is_error else "success"}


def _item(part: Part) -> Any:
    match part:
        case Text():
            return part.text
        case Media(data=str()):
            return {"kind": "binary", "data": part.data, "media_type": mime_of(part)}
        case Media(url=str()):
            return drop_none({"kind": _URL_KINDS[part.kind], "url": part.url, "media_type": part.mime})
        case Opaque(origin="pydantic_ai"):
            return part.data
    return placeholder_text(part) or None


def usage(dumped: Json) -> Any:
    reported = dumped.get("usage") or {}
    return reported if reported.get("input_tokens") else None


codec = FrameworkCodec(name, dump, load, decode, encode, places, retext, usage=usage, opaque=OPAQUE)
