"""Ids for calls that came without one (Gemini, and OpenAI's first function calls)."""

from __future__ import annotations

from collections.abc import Hashable

from .parts import Message, Part, ToolCall, ToolResult

NAMELESS = "nameless-"
"""Marks an id that is ours alone and never goes out on the wire."""


class Numbering:
    """Gives a nameless call an id made from its message's key, and its result the same, in order."""

    def __init__(self) -> None:
        self._open: list[tuple[str, str]] = []

    def __call__(self, message: Message, key: Hashable) -> Message:
        parts = message.parts
        for part in parts:
            kind = type(part)
            if (kind is ToolCall and not part.id) or (kind is ToolResult and not part.call_id):  # type: ignore[union-attr]
                break
        else:
            return message
        named = tuple(self._name(part, f"{NAMELESS}{key}-{index}") for index, part in enumerate(parts))
        return Message(message.role, named, message.format, message.raw)

    def _name(self, part: Part, fresh: str) -> Part:
        if isinstance(part, ToolCall) and not part.id:
            self._open.append((fresh, part.name))
            return ToolCall(fresh, part.name, part.arguments, part.kind, part.signature)
        if isinstance(part, ToolResult) and not part.call_id:
            return ToolResult(self._close(part.name) or fresh, part.content, part.is_error, part.name, part.kind)
        return part

    def _close(self, name: str | None) -> str | None:
        for index, (call_id, called) in enumerate(self._open):
            if name is None or name == called:
                del self._open[index]
                return call_id
        return None
