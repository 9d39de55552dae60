"""Messages as the provider sees them: consecutive messages of one role are merged, results come first, in any order.

Calls are numbered, since Gemini's have no ids, and placeholder results of open calls are left out. Two contexts with
the same view are the same to a model. pi has text, images, thinking, calls and results; anything else becomes text.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from holdfast.context import INTERRUPTED_TEXT
from holdfast.messages import Media, Message, Opaque, Part, Text, ToolCall, ToolResult, decode_one, is_filler

Seen = list[tuple[str, Any]]


def provider_view(payloads: list[dict[str, Any]]) -> Seen:
    """The parts of Anthropic messages, each with its side of the conversation."""
    messages = [decode_one(payload, "anthropic") for payload in payloads]
    parts = [
        (_side(message), _as_pi_part(part)) for message in messages if not is_filler(message) for part in message.parts
    ]
    spoken = [(side, part) for side, part in parts if not _is_blank(part) and INTERRUPTED_TEXT not in str(part)]
    calls: dict[str, str] = {}
    out: Seen = []
    for _, run in groupby(spoken, key=lambda one: one[0]):
        numbered = [(side, _numbered(part, calls)) for side, part in run]
        out += sorted(numbered, key=lambda one: (0, one[1].call_id) if isinstance(one[1], ToolResult) else (1, ""))
    return out


def _numbered(part: Part, calls: dict[str, str]) -> Part:
    if isinstance(part, ToolCall):
        calls[part.id] = f"{len(calls):04d}"
        return ToolCall(calls[part.id], part.name, part.arguments)
    if isinstance(part, ToolResult):
        return ToolResult(calls.get(part.call_id, part.call_id), part.content, part.is_error)
    return part


def _side(message: Message) -> str:
    return "assistant" if message.role == "assistant" else "user"


def _is_blank(part: Any) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def _as_pi_part(part: Part) -> Part:
    match part:
        case ToolResult():
            content = tuple(converted for item in part.content if not _is_blank(converted := _as_pi_part(item)))
            return ToolResult(part.call_id, content, part.is_error)  # type: ignore[arg-type]
        case Media() if part.kind != "image" or not part.data:
            return Text(part.url or part.name or ("[image]" if part.kind == "image" else "[document]"))
        case Opaque():
            source = part.data.get("source") or {}
            text = source.get("data") if source.get("type") == "text" else None
            words = source.get("url") or text or part.data.get("content") or part.data.get("title")
            return Text(words if isinstance(words, str) else f"[{part.kind}]")
    return part
