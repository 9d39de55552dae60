"""What rendering a message may need to know of the calls that were made before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .parts import Message, Part, ToolCall, ToolResult


class EarlierCalls:
    """The calls before a place, by the ids under which they go out; read only when asked for.

    Never those after it: what is rendered must not change when the conversation goes on (H6). A call that
    came in this format keeps its id, whatever that looks like: its own server made it, and knows it again.
    """

    def __init__(self, messages: Sequence[Message], format: str, legal: Callable[[str], str] | None) -> None:
        self._messages = messages
        self._format = format
        self._legal = legal
        self._read = 0
        self._calls: dict[str, ToolCall] = {}
        self._ids: dict[str, str] = {}
        self.until = 0

    def __call__(self, call_id: str) -> ToolCall | None:
        self._catch_up()
        return self._calls.get(call_id)

    def with_legal_ids(self, message: Message) -> Message:
        """The message with ids that the format takes, the same for a call and its result."""
        if self._legal is None or all(self._is_legal(part) for part in message.parts):
            return message
        self._catch_up()
        parts = tuple(self._renamed(part, message) for part in message.parts)
        return Message(message.role, parts, message.format)

    def _is_legal(self, part: Part) -> bool:
        call_id = part.id if isinstance(part, ToolCall) else part.call_id if isinstance(part, ToolResult) else None
        return call_id is None or self._legal is None or self._legal(call_id) == call_id

    def _renamed(self, part: Part, message: Message) -> Part:
        if isinstance(part, ToolCall):
            return ToolCall(self._id(part.id, message), part.name, part.arguments, part.kind, part.signature)
        if isinstance(part, ToolResult):
            call_id = self._ids.get(part.call_id) or self._id(part.call_id, message)
            return ToolResult(call_id, part.content, part.is_error, part.name, part.kind)
        return part

    def _id(self, call_id: str, message: Message) -> str:
        return call_id if self._legal is None or message.format == self._format else self._legal(call_id)

    def _catch_up(self) -> None:
        for message in self._messages[self._read : self.until]:
            for call in message.calls:
                shown = self._ids[call.id] = self._id(call.id, message)
                self._calls[shown] = call
        self._read = self.until
