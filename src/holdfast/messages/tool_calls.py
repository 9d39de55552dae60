"""Ids of tool calls: generated where a provider sends none, and found again for a result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from .frame import is_from_user
from .parts import Message, Opaque, Part, ToolCall, ToolResult

GENERATED_ID_PREFIX = "nameless-"
"""Prefix of generated ids: they are sent only in formats that require ids."""
_LEGACY_KIND = "function_call"
"""Legacy OpenAI function calls: one at a time, without an id."""


class CallIdAssigner:
    """Generates ids for calls without one, from their message's key, and the same ids for their results, in order."""

    def __init__(self) -> None:
        self._pending: dict[str, str] = {}
        self._batch_ended = False

    def __call__(self, message: Message, key: Hashable) -> Message:
        """Returns the message with an id on every call and result; calls stay pending until answered."""
        lacks_id = False
        for part in message.parts:
            if isinstance(part, ToolCall):
                if self._batch_ended:
                    self._pending.clear()  # abandoned: later results belong to later calls
                    self._batch_ended = False
                if part.id:
                    self._pending[part.id] = part.name
                lacks_id = lacks_id or not part.id
            elif isinstance(part, ToolResult):
                self._batch_ended = True
                self._pending.pop(part.call_id, None)
                lacks_id = lacks_id or not part.call_id
        if is_from_user(message):
            self._batch_ended = True
        if not lacks_id:
            return message
        if any(call.kind == _LEGACY_KIND for call in message.calls):
            self._pending.clear()
        named = tuple(
            self._with_id(part, f"{GENERATED_ID_PREFIX}{key}-{index}") for index, part in enumerate(message.parts)
        )
        return Message(message.role, named, message.format, message.raw)

    def _with_id(self, part: Part, fresh: str) -> Part:
        if isinstance(part, ToolCall) and not part.id:
            self._pending[fresh] = part.name
            return ToolCall(fresh, part.name, part.arguments, part.kind, part.signature)
        if isinstance(part, ToolResult) and not part.call_id:
            call_id = self._pending_call(part.name) or fresh
            self._pending.pop(call_id, None)
            return ToolResult(call_id, part.content, part.is_error, part.name, part.kind)
        return part

    def _pending_call(self, name: str | None) -> str | None:
        """Returns the id of the oldest pending call of this name."""
        return next((call_id for call_id, called in self._pending.items() if name in (None, called)), None)


def lacks_call_id(message: Message) -> bool:
    """Whether a call or a result in this message has no id."""
    for part in message.parts:
        kind = type(part)
        if kind is ToolCall and not part.id:  # type: ignore[union-attr]
            return True
        if kind is ToolResult and not part.call_id:  # type: ignore[union-attr]
            return True
    return False


def without_generated_id(part: Part) -> Part:
    """Returns the part without a generated id, which depends on the message's position."""
    if isinstance(part, ToolCall) and part.id.startswith(GENERATED_ID_PREFIX):
        return ToolCall("", part.name, part.arguments, part.kind, part.signature)
    if isinstance(part, ToolResult) and part.call_id.startswith(GENERATED_ID_PREFIX):
        return ToolResult("", part.content, part.is_error, part.name, part.kind)
    return part


class CallLookup:
    """Finds earlier calls by the id they are sent with; reads the messages lazily.

    Only messages before `until` are read, so that encoded messages do not change when the conversation
    grows. A call that came in this format keeps its id, because its own server issued it.
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
        """Returns the message with ids that the format accepts, the same for a call and its result."""
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
                sent = self._ids[call.id] = self._id(call.id, message)
                self._calls[sent] = call
        self._read = self.until


def item_id(message: Message) -> str | None:
    """Returns the id of an OpenAI Responses item; that of a local shell's output is its call's."""
    if message.raw is None or message.raw.get("type") == "local_shell_call_output":
        return None
    name = message.raw.get("id")
    return name if isinstance(name, str) else None


def without_item_id(message: Message) -> Message:
    """Returns an item without its id, which no other item may have.

    A reply is an item of the API only with its id: without, it is sent as words.
    """
    if message.raw is not None and message.raw.get("role") == "assistant":
        return message.with_parts(message.parts)
    raw = {name: value for name, value in (message.raw or {}).items() if name != "id"}
    parts = (Opaque(part.kind, raw, part.origin) if isinstance(part, Opaque) else part for part in message.parts)
    return Message(message.role, tuple(parts), message.format, raw)
