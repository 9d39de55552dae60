"""Anthropic Messages: blocks inside user and assistant messages, with a separate system prompt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from .parts import End, FindCall, Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from .patch import Edit, Path, Replace
from .payload import (
    ERROR_MARK,
    INTERRUPTED_TEXT,
    ResultParts,
    as_dict,
    as_list,
    as_text,
    make_legal_id,
    placeholder_text,
    result_texts,
    retext_content,
    text_block,
)

name = "anthropic"
OPAQUE = frozenset(
    (
        "advisor_tool_result",
        "bash_code_execution_tool_result",
        "browser_state",
        "code_execution_tool_result",
        "compaction",
        "container_upload",
        "document",
        "fallback",
        "mcp_tool_listing",
        "mcp_tool_result",
        "mcp_tool_use",
        "search_result",
        "server_tool_use",
        "text_editor_code_execution_tool_result",
        "tool_addition",
        "tool_reference",
        "tool_removal",
        "tool_search_tool_result",
        "web_fetch_tool_result",
        "web_search_tool_result",
    )
)
"""Blocks that are kept and never interpreted; documents only if they are text."""
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_IMAGE_TYPES = (None, "image/jpeg", "image/png", "image/gif", "image/webp")
_EMPTY_ERROR = ERROR_MARK.rstrip()
"""Text of a failed result without content, since an error must not be empty."""


def decode(raw: Json) -> Message:
    if "stop_reason" in raw:  # a reply as it came from the API: only these two fields may be sent back
        raw = {"role": raw["role"], "content": raw.get("content")}
    role = _ROLES[raw["role"]]
    content = raw.get("content")
    if type(content) is str:
        return Message(role, (Text(content),) if content else (), name, raw)
    parts = tuple([_block(block) for block in as_list(content)])
    if role == "user" and any(type(part) is ToolResult for part in parts):
        role = "tool"
    return Message(role, parts, name, raw)


def _block(block: Any) -> Part:
    match block.get("type"):
        case "text":
            return Text(as_text(block.get("text")))
        case "tool_use":
            return ToolCall(as_text(block.get("id")), as_text(block.get("name")), block.get("input") or {})
        case "tool_result":
            return _result(block)
        case "thinking":
            return Reasoning(as_text(block.get("thinking")), block.get("signature"), origin=name)
        case "redacted_thinking":
            return Reasoning("", None, as_text(block.get("data")), origin=name)
        case "image":
            return _media("image", block)
        case "document":
            return _media("file", block)
        case other:
            return Opaque(as_text(other) or "block", block, name)


def _media(kind: Literal["image", "file"], block: Json) -> Media | Opaque:
    source = as_dict(block.get("source"))
    where = source.get("data"), source.get("url"), source.get("file_id")
    if source.get("type") in ("text", "content") or not any(where):
        return Opaque(block["type"], block, name)
    return Media(kind, source.get("media_type"), *where, block.get("title"))


def _result(block: Json) -> ToolResult:
    failed = bool(block.get("is_error"))
    content = block.get("content")
    if isinstance(content, str):
        blank = not content or (failed and content == _EMPTY_ERROR)
        parts: ResultParts = () if blank else (Text(content),)
    else:
        blocks = [_block(item) for item in as_list(content)]
        parts = tuple([part for part in blocks if isinstance(part, Text | Media | Opaque)])
    return ToolResult(as_text(block.get("tool_use_id")), parts, failed)


def places(raw: Json) -> list[tuple[Path, ...]]:
    """Returns where each part lies: a block of the content, or the text that is all of it."""
    content = raw.get("content")
    if isinstance(content, str):
        return [(("content",),)] if content else []
    return [(("content", index),) for index in range(len(as_list(content)))]


def retext(block: Any, text: str) -> Iterable[Edit]:
    """Returns edits of a text or a result."""
    if isinstance(block, str):
        return [Replace((), text)]
    if block.get("type") == "tool_result":
        return retext_content(block.get("content"), text, ("content",))
    return [Replace(("text",), text)]


SERVER_TOOL = "server tool"
"""Kind of the edges between tools that the API runs, their results, and the calls that their code makes."""
_SERVER_TOOL_USES = ("server_tool_use", "mcp_tool_use")
_WITHOUT_ENDS = ("text", "tool_use", "tool_result", "thinking")
"""Most blocks: they have none unless they name a caller."""
_STOPPED = "unavailable"
"""The one error code that the results of all server tools share."""


def ends(raw: Json) -> list[End]:
    """Returns the ends of edges between server tools, their results, and the calls that their code makes."""
    found: list[End] = []
    for part, block in enumerate(as_list(raw.get("content"))):
        kind = block.get("type")
        if kind in _WITHOUT_ENDS and "caller" not in block:
            continue
        own = block.get("id") or block.get("tool_use_id")
        if isinstance(key := as_dict(block.get("caller")).get("tool_id"), str):
            found.append(End(part, SERVER_TOOL, key, "joins", f"{kind} {own!r}"))
        if not isinstance(own, str) or not isinstance(kind, str):
            continue
        if kind in _SERVER_TOOL_USES:
            found.append(End(part, SERVER_TOOL, own, "opens", f"{kind} {own!r}"))
        elif kind.endswith("_tool_result"):
            found.append(End(part, SERVER_TOOL, own, "closes", kind))
    return found


def closing(raw: Json, end: End) -> Json | None:
    """Returns an assistant message with an error as the result of a server tool that never finished."""
    tool = raw["content"][end.part]
    if tool["type"] == "mcp_tool_use":
        text = [text_block("text", INTERRUPTED_TEXT)]
        result: Json = {"type": "mcp_tool_result", "tool_use_id": end.key, "is_error": True, "content": text}
    else:
        called = as_text(tool.get("name"))
        kind = "tool_search_tool_result" if called.startswith("tool_search_tool") else f"{called}_tool_result"
        error = {"type": f"{kind}_error", "error_code": _STOPPED}
        result = {"type": kind, "tool_use_id": end.key, "content": error}
    return {"role": "assistant", "content": [result]}


def encode(message: Message, call_of: FindCall) -> list[Json]:
    """Encodes a message that has no payload of this format."""
    del call_of
    blocks = [block for part in message.parts if (block := _render(part, message.role)) is not None]
    if not blocks and message.parts:
        return []
    tool = message.role == "tool"
    lone = len(blocks) == 1 and not tool and blocks[0].get("type") == "text"
    return [{"role": "user" if tool else message.role, "content": (lone and blocks[0]["text"]) or blocks}]


def join(payload: Json, more: Json) -> Json:
    """Joins the results of one batch into one message, results first."""
    blocks = as_list(payload.get("content")) + as_list(more.get("content"))
    return payload | {"content": sorted(blocks, key=lambda block: as_dict(block).get("type") != "tool_result")}


def _render(part: Part, role: Role) -> Json | None:
    """Encodes a part as a content block; only user messages may hold media."""
    match part:
        case Text():
            return text_block("text", part.text)
        case ToolCall():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments_dict}
        case ToolResult():
            return _encode_result(part)
        case Reasoning(origin="anthropic", encrypted=str()):
            return {"type": "redacted_thinking", "data": part.encrypted}
        case Reasoning(origin="anthropic"):
            block: Json = {"type": "thinking", "thinking": part.text}
            return block if part.signature is None else block | {"signature": part.signature}
        case Opaque(origin="anthropic"):
            return part.data
        case Media() if role in ("user", "tool") and (shown := _render_media(part)) is not None:
            return shown
    return text_block("text", text) if (text := placeholder_text(part)) else None


def _encode_result(result: ToolResult) -> Json:
    block: Json = {"type": "tool_result", "tool_use_id": result.call_id}
    if result.is_error:
        texts = result_texts(result)
        content: Any = (
            [text_block("text", text) for text in texts] if len(texts) > 1 else "".join(texts) or _EMPTY_ERROR
        )
        return block | {"content": content, "is_error": True}
    blocks = [shown for part in result.content if (shown := _render(part, "tool")) is not None]
    if len(blocks) == 1 and blocks[0].get("type") == "text" and blocks[0]["text"]:
        return block | {"content": blocks[0]["text"]}
    return block | {"content": blocks} if blocks else block


def _render_media(media: Media) -> Json | None:
    picture = media.kind == "image"
    if media.kind not in ("image", "file") or (media.data and picture and media.mime not in _IMAGE_TYPES):
        return None
    if media.data:
        mime = media.mime or ("image/png" if picture else "application/pdf")
        if not picture and mime != "application/pdf":
            return None
        source: Json = {"type": "base64", "media_type": mime, "data": media.data}
    elif media.url or media.file_id:
        source = {"type": "url", "url": media.url} if media.url else {"type": "file", "file_id": media.file_id}
    else:
        return None
    block: Json = {"type": "image" if picture else "document", "source": source}
    return block | {"title": media.name} if media.name and not picture else block


def legal_id(call_id: str) -> str:
    return make_legal_id(call_id, 64, strict=True)
