"""Messages as pi writes them: one record for what the user says, for each reply, and for each tool result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from ..messages import Json, Message, encode_all
from ..tokens import Usage
from .notes import Notes
from .transcript import Record

_NO_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}


class PiWriter:
    """Goes by the Anthropic form of a message, which is the one that pi's own comes from."""

    def __init__(self, model: str | None, notes: Notes) -> None:
        self._model = model or ""
        self._notes = notes
        self._tools: dict[str, str] = {}

    def write(self, message: Message, time: str, usage: Usage | None) -> Iterator[Record]:
        """pi's messages for one of ours; none where pi has nothing to say it with."""
        if message.role == "system":
            self._notes.count("system message", "written as the user's: pi keeps its own apart")
        for payload in encode_all([message], "anthropic"):
            content = payload.get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            if payload["role"] == "assistant":
                if parts := [part for block in blocks for part in self._reply(block)]:
                    yield self._assistant(parts, time, usage)
                continue
            for block in blocks:
                if block.get("type") == "tool_result":
                    yield self._result(block, time)
            rest = [block for block in blocks if block.get("type") != "tool_result"]
            if parts := self._said(rest):
                yield {"role": "user", "content": parts, "timestamp": _milliseconds(time)}

    def _assistant(self, parts: list[Record], time: str, usage: Usage | None) -> Record:
        calls = any(part["type"] == "toolCall" for part in parts)
        return {
            "role": "assistant",
            "content": parts,
            "api": "anthropic-messages",
            "provider": "anthropic",
            "model": self._model,
            "usage": _usage(usage or Usage()),
            "stopReason": "toolUse" if calls else "stop",
            "timestamp": _milliseconds(time),
        }

    def _reply(self, block: Json) -> Iterator[Record]:
        match block:
            case {"type": "thinking", "thinking": str(said)}:
                yield {"type": "thinking", "thinking": said, "thinkingSignature": block.get("signature") or ""}
            case {"type": "redacted_thinking", "data": str(data)}:
                yield {"type": "thinking", "thinking": "", "thinkingSignature": data, "redacted": True}
            case {"type": "tool_use", "id": str(id), "name": str(name)}:
                self._tools[id] = name
                yield {"type": "toolCall", "id": id, "name": name, "arguments": block.get("input") or {}}
            case _:
                yield from self._said([block])

    def _result(self, block: Json, time: str) -> Record:
        content, call = block.get("content"), str(block.get("tool_use_id"))
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        return {
            "role": "toolResult",
            "toolCallId": call,
            "toolName": self._tools.get(call, ""),
            "content": self._said(blocks),
            "isError": bool(block.get("is_error")),
            "timestamp": _milliseconds(time),
        }

    def _said(self, blocks: Sequence[Json]) -> list[Record]:
        """Text and pictures; of anything else what it says in words."""
        parts: list[Record] = []
        for block in blocks:
            match block:
                case {"type": "text", "text": str(said)}:
                    parts.append({"type": "text", "text": said})
                case {"type": "image", "source": {"type": "base64", "data": str(data), "media_type": str(mime)}}:
                    parts.append({"type": "image", "data": data, "mimeType": mime})
                case _:
                    self._notes.count("content block", f"of type {block.get('type')!r} written as text")
                    parts.append({"type": "text", "text": _words(block)})
        return parts


def _words(block: Json) -> str:
    source = block.get("source")
    told: Any = block.get("content") or block.get("title")
    if isinstance(source, dict):
        told = source.get("url") or (source.get("data") if source.get("type") == "text" else None) or told
    return told if isinstance(told, str) else f"[{block.get('type')}]"


def _usage(usage: Usage) -> Record:
    counts = {"input": usage.input, "output": usage.output}
    cached = {"cacheRead": usage.cache_read, "cacheWrite": usage.cache_write}
    return {**counts, **cached, "totalTokens": usage.total, "cost": _NO_COST}


def _milliseconds(time: str) -> int:
    try:
        return int(datetime.fromisoformat(time).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0
