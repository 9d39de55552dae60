"""pi's messages as Anthropic messages: it has one shape of its own for all providers."""

from __future__ import annotations

from typing import Any

from .notes import Notes
from .thread import Blocks, Thread, legal_id
from .transcript import Record, Usage, text, whole

_FAILED = ("aborted", "error")


def add_message(thread: Thread, message: Record, record: Record, notes: Notes) -> int | None:
    """Add one message, and say at which place among the entries it went in."""
    id, time = text(record.get("id")), text(record.get("timestamp"))
    match message.get("role"):
        case "user":
            return thread.add_user(user_blocks(message.get("content"), notes), id=id, time=time)
        case "toolResult":
            return thread.add_user([_tool_result(message, notes)], id=id, time=time)
        case "assistant":
            failed = message.get("stopReason") in _FAILED
            notes.count("assistant message", "aborted or failed, usage not counted", int(failed))
            usage = None if failed else _usage(message.get("usage"))
            return thread.add_reply(_reply_blocks(message, notes), key=None, id=id, time=time, usage=usage)
        case role:
            notes.count("message", f"of role {role!r} left out")
            return None


def user_blocks(content: Any, notes: Notes) -> str | Blocks:
    """Text stays a plain string where pi has one."""
    if isinstance(content, str):
        return content
    blocks: Blocks = []
    for part in content if isinstance(content, list) else ():
        match part:
            case {"type": "text", "text": str(said)}:
                blocks.append({"type": "text", "text": said})
            case {"type": "image", "data": str(data), "mimeType": str(mime)}:
                source = {"type": "base64", "media_type": mime, "data": data}
                blocks.append({"type": "image", "source": source})
            case _:
                notes.count("content part", "of an unknown shape left out")
    return blocks


def _reply_blocks(message: Record, notes: Notes) -> Blocks:
    content = message.get("content")
    blocks: Blocks = []
    for part in content if isinstance(content, list) else ():
        match part:
            case {"type": "text", "text": str(said)}:
                blocks.append({"type": "text", "text": said})
            case {"type": "thinking", "thinking": str(said)}:
                blocks.append(_thinking(part, said, message))
            case {"type": "toolCall", "id": str(id), "name": str(name)}:
                arguments = part.get("arguments")
                arguments = arguments if isinstance(arguments, dict) else {}
                blocks.append({"type": "tool_use", "id": legal_id(id, notes), "name": name, "input": arguments})
            case _:
                notes.count("content part", "of an unknown shape left out")
    return blocks


def _thinking(part: Record, said: str, message: Record) -> Record:
    """Another provider's signature means nothing to this one."""
    signature = text(part.get("thinkingSignature")) if str(message.get("api")).startswith("anthropic") else None
    if signature and part.get("redacted"):
        return {"type": "redacted_thinking", "data": signature}
    block = {"type": "thinking", "thinking": said}
    return {**block, "signature": signature} if signature else block


def _tool_result(message: Record, notes: Notes) -> Record:
    content = user_blocks(message.get("content"), notes)
    if isinstance(content, list):
        content = [block for block in content if block.get("text") != ""] or ""
    call = legal_id(str(message.get("toolCallId") or ""))
    block = {"type": "tool_result", "tool_use_id": call, "content": content}
    return {**block, "is_error": True} if message.get("isError") else block


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    counts = [whole(usage.get(name)) or 0 for name in ("input", "output", "cacheRead", "cacheWrite")]
    return Usage(*counts) if any(counts) else None
