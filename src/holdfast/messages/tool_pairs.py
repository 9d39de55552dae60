"""Pairing of tool calls and results as events are appended: renames, drops and closes them."""

from __future__ import annotations

from .parts import Message, Part, Reasoning, Text, ToolCall, ToolResult
from .validate import FormatRules, item_id

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
