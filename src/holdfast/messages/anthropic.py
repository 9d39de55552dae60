"""Anthropic Messages: blocks inside user and assistant messages, the system prompt beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .parts import Json, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from .payload import as_list, string

name = "anthropic"
system_field = "system"

OPAQUE_BLOCKS = frozenset(
    (
        "server_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "mcp_tool_use",
        "mcp_tool_result",
        "container_upload",
        "search_result",
        "tool_reference",
        "compaction",
        "document",
    )
)
"""Blocks that belong to one message alone (a server tool's call and result stand in the same one)."""
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def decode(raw: Json) -> Message:
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
            return Text(string(block.get("text")))
        case "tool_use":
            return ToolCall(string(block.get("id")), string(block.get("name")), block.get("input") or {})
        case "tool_result":
            return _result(block)
        case "thinking":
            return Reasoning(string(block.get("thinking")), block.get("signature"), origin=name)
        case "redacted_thinking":
            return Reasoning("", None, block.get("data"), origin=name)
        case "image":
            return _media("image", block)
        case "document" if (block.get("source") or {}).get("type") in ("base64", "url", "file"):
            return _media("file", block)
        case other:
            return Opaque(string(other) or "block", block, name)


def _media(kind: Any, block: Json) -> Part:
    source = block.get("source") or {}
    return Media(
        kind,
        source.get("media_type"),
        source.get("data"),
        source.get("url"),
        source.get("file_id"),
        block.get("title"),
    )


def _result(block: Json) -> ToolResult:
    content = block.get("content")
    if isinstance(content, str):
        parts: tuple[Text | Media | Opaque, ...] = (Text(content),) if content else ()
    else:
        blocks = (_block(item) for item in as_list(content))
        parts = tuple(part for part in blocks if isinstance(part, Text | Media | Opaque))
    return ToolResult(string(block.get("tool_use_id")), parts, bool(block.get("is_error")))


def encode(messages: Sequence[Message]) -> list[Json]:
    """Render messages that have no payload of this format; results of one batch share one message."""
    out: list[Json] = []
    batch = False
    for message in messages:
        blocks = _blocks(message.parts)
        if not blocks and message.parts:
            continue
        tool = message.role == "tool"
        if tool and batch:
            out[-1]["content"] = out[-1]["content"] + blocks
            continue
        batch = tool
        role = "user" if tool else message.role
        only_text = len(blocks) == 1 and message.role != "tool" and blocks[0].get("type") == "text"
        text = blocks[0]["text"] if only_text and len(blocks[0]) == 2 else ""
        out.append({"role": role, "content": text or blocks})
    return out


def join(payload: Json, rendered: Json) -> Json:
    """Put a rendered result into the message that already holds results of the same batch."""
    return payload | {"content": as_list(payload.get("content")) + rendered["content"]}


def _blocks(parts: Sequence[Part]) -> list[Json]:
    return [block for part in parts if (block := _render(part)) is not None]


def _render(part: Part) -> Json | None:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case ToolCall():
            return {"type": "tool_use", "id": legal_id(part.id), "name": part.name, "input": part.object}
        case ToolResult():
            return _encode_result(part)
        case Reasoning(origin="anthropic", encrypted=str()):
            return {"type": "redacted_thinking", "data": part.encrypted}
        case Reasoning(origin="anthropic"):
            block: Json = {"type": "thinking", "thinking": part.text}
            return block if part.signature is None else block | {"signature": part.signature}
        case Media(kind="image" | "file"):
            return _encode_media(part)
        case Opaque(origin="anthropic"):
            return part.data
        case _:
            return None


def _encode_result(result: ToolResult) -> Json:
    block: Json = {"type": "tool_result", "tool_use_id": legal_id(result.call_id)}
    blocks = [shown for part in result.content if (shown := _render(part)) is not None]
    if len(blocks) == 1 and blocks[0].get("type") == "text" and blocks[0]["text"]:
        block["content"] = blocks[0]["text"]
    elif blocks:
        block["content"] = blocks
    return block | {"is_error": True} if result.is_error else block


def _encode_media(part: Media) -> Json | None:
    if part.data is not None:
        mime = part.mime or ("image/png" if part.kind == "image" else "application/pdf")
        source: Json = {"type": "base64", "media_type": mime, "data": part.data}
    elif part.url is not None:
        source = {"type": "url", "url": part.url}
    elif part.file_id is not None:
        source = {"type": "file", "file_id": part.file_id}
    else:
        return None
    block: Json = {"type": "image" if part.kind == "image" else "document", "source": source}
    return block | {"title": part.name} if part.name and part.kind == "file" else block


def legal_id(call_id: str) -> str:
    """Anthropic takes letters, digits, `_` and `-` in ids; other formats take anything."""
    return call_id if _LEGAL.fullmatch(call_id) else re.sub(r"[^a-zA-Z0-9_-]", "_", call_id) or "_"


_LEGAL = re.compile(r"[a-zA-Z0-9_-]+")
