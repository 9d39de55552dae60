"""Ids for calls that came without one (Gemini, and OpenAI's first function calls)."""

from __future__ import annotations

from collections.abc import Hashable

from .parts import Message, Part, ToolCall, ToolResult

NAMELESS = "nameless-"
"""Marks an id that is ours: it goes out on the wire only where a format cannot do without ids."""
_ALONE = "function_call"
"""The kind of call of which there was only ever one at a time."""


class Numbering:
    """Gives a nameless call an id made from its message's key, and its result the same, in order."""

    def __init__(self) -> None:
        self._open: dict[str, str] = {}
        self._over = False

    def __call__(self, message: Message, key: Hashable) -> Message:
        """The message with an id on every call and result; calls are remembered until they are answered."""
        nameless = False
        for part in message.parts:
            if isinstance(part, ToolCall):
                if self._over:
                    self._open.clear()  # left behind: what comes now answers the calls that come now
                    self._over = False
                if part.id:
                    self._open[part.id] = part.name
                nameless = nameless or not part.id
            elif isinstance(part, ToolResult):
                self._over = True
                self._open.pop(part.call_id, None)
                nameless = nameless or not part.call_id
        if message.role == "user":
            self._over = True
        if not nameless:
            return message
        if any(call.kind == _ALONE for call in message.calls):
            self._open.clear()
        named = tuple(self._name(part, f"{NAMELESS}{key}-{index}") for index, part in enumerate(message.parts))
        return Message(message.role, named, message.format, message.raw)

    def _name(self, part: Part, fresh: str) -> Part:
        if isinstance(part, ToolCall) and not part.id:
            self._open[fresh] = part.name
            return ToolCall(fresh, part.name, part.arguments, part.kind, part.signature)
        if isinstance(part, ToolResult) and not part.call_id:
            call_id = self._called(part.name) or fresh
            self._open.pop(call_id, None)
            return ToolResult(call_id, part.content, part.is_error, part.name, part.kind)
        return part

    def _called(self, name: str | None) -> str | None:
        """The oldest call of this name that waits."""
        return next((call_id for call_id, called in self._open.items() if name in (None, called)), None)


def is_unnamed(message: Message) -> bool:
    """Does a call or a result in it lack an id?"""
    for part in message.parts:
        kind = type(part)
        if kind is ToolCall and not part.id:  # type: ignore[union-attr]
            return True
        if kind is ToolResult and not part.call_id:  # type: ignore[union-attr]
            return True
    return False


def unnumbered(part: Part) -> Part:
    """The part without an id of ours: that one is made from a message's place, which says nothing of the part."""
    if isinstance(part, ToolCall) and part.id.startswith(NAMELESS):
        return ToolCall("", part.name, part.arguments, part.kind, part.signature)
    if isinstance(part, ToolResult) and part.call_id.startswith(NAMELESS):
        return ToolResult("", part.content, part.is_error, part.name, part.kind)
    return part
