"""Tool calls and their results: ids where a provider sends none, lookup by id, and pairing as events are appended."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from .parts import Message, Part, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from .validate import FormatRules

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
        if message.role == "user":
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
    """Returns the id of an OpenAI Responses item."""
    name = None if message.raw is None else message.raw.get("id")
    return name if isinstance(name, str) else None


INTERRUPTED_TEXT = "(no result: the call was interrupted)"


def interrupted_result(call: ToolCall) -> ToolResult:
    """Returns an error result for a call that was never answered."""
    return ToolResult(call.id, (Text(INTERRUPTED_TEXT),), True, call.name, call.kind)


class ToolCallPairing:
    """Tracks the pending and the answered tool calls of one lane."""

    def __init__(self) -> None:
        self.pending: dict[str, ToolCall] = {}
        """Calls without a result, by the id they are shown with."""
        self._shown_ids: dict[str, list[str]] = {}
        self._used: set[str] = set()
        self._items: set[str] = set()
        self._in_batch = False

    def closing_results(self, message: Message, rules: FormatRules) -> Message | None:
        """Returns results for the pending calls that this message would leave unanswered."""
        if not self.pending or message.role == "tool" or message.results:
            return None
        batches = rules.items or rules.merges_roles
        if batches and message.role == "assistant" and self._in_batch:
            return None
        return Message("tool", tuple(interrupted_result(call) for call in self.pending.values()))

    def accept(self, message: Message, rules: FormatRules) -> Message | None:
        """Returns the message as shown; None if it is a repeated item or only holds late results."""
        if rules.items and (name := item_id(message)):
            if name in self._items:
                if any(type(part) is Reasoning for part in message.parts):
                    return None
                message = message.with_parts(message.parts)
            self._items.add(name)
        if message.role == "tool" or message.results:
            return self._accept_results(message)
        self._in_batch = message.role == "assistant"
        parts: list[Part] = []
        for part in message.parts:
            if type(part) is ToolCall:
                shown = self._with_unused_id(part) if rules.unique_call_ids or part.id in self.pending else part
                self._used.add(shown.id)
                self.pending[shown.id] = shown
                self._shown_ids.setdefault(part.id, []).append(shown.id)
                parts.append(shown)
            else:
                parts.append(part)
        return (
            message
            if all(a is b for a, b in zip(parts, message.parts, strict=True))
            else message.with_parts(tuple(parts))
        )

    def _accept_results(self, message: Message) -> Message | None:
        self._in_batch = False
        parts: list[Part] = []
        for part in message.parts:
            if type(part) is not ToolResult:
                parts.append(part)
            elif call := self._pop_call(part.call_id):
                same = call.id == part.call_id
                parts.append(part if same else ToolResult(call.id, part.content, part.is_error, part.name, part.kind))
        if not parts:
            return None
        if all(a is b for a, b in zip(parts, message.parts, strict=False)) and len(parts) == len(message.parts):
            return message
        results = any(type(part) is ToolResult for part in parts)
        return Message("tool" if results else "user", tuple(parts))

    def _pop_call(self, call_id: str) -> ToolCall | None:
        """Removes and returns the oldest pending call that came with this id."""
        for shown_id in (*self._shown_ids.get(call_id, ()), call_id):
            if call := self.pending.pop(shown_id, None):
                return call
        return None

    def _with_unused_id(self, call: ToolCall) -> ToolCall:
        fresh, number = call.id, 2
        while fresh in self._used:
            fresh, number = f"{call.id}-{number}", number + 1
        return call if fresh == call.id else ToolCall(fresh, call.name, call.arguments, call.kind, call.signature)
