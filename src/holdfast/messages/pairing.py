"""Pairing of tool calls and results as events are appended: what is open, what comes late, what comes twice."""

from __future__ import annotations

from .edit import as_user, drop_parts, fold_edits, rename_calls
from .parts import Message, Reasoning, Text, ToolCall, ToolResult
from .tool_calls import item_id, without_item_id
from .validate import FormatRules

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
                message = without_item_id(message)
            self._items.add(name)
        if message.role == "tool" or message.results:
            return self._accept_results(message)
        self._in_batch = message.role == "assistant"
        fresh: dict[int, str] = {}
        for index, part in enumerate(message.parts):
            if type(part) is ToolCall:
                name = self._unused_id(part.id) if rules.unique_call_ids or part.id in self.pending else part.id
                if name != part.id:
                    fresh[index] = name
                self._used.add(name)
                self._shown_ids.setdefault(part.id, []).append(name)
                self.pending[name] = part
        if fresh:
            message = rename_calls(message, fresh)
            self.pending.update((part.id, part) for part in message.calls)
        return message

    def _accept_results(self, message: Message) -> Message | None:
        self._in_batch = False
        fresh: dict[int, str] = {}
        late: list[int] = []
        for index, part in enumerate(message.parts):
            if type(part) is not ToolResult:
                continue
            if (name := self._pop_call(part.call_id)) is None:
                late.append(index)
            elif name != part.call_id:
                fresh[index] = name
        if fresh:
            message = rename_calls(message, fresh)
        if not late:
            return message
        if len(late) == len(message.parts):
            return None
        left = fold_edits(drop_parts(message, late))
        return left if left.results else as_user(left)

    def _pop_call(self, call_id: str) -> str | None:
        """Removes the oldest pending call that came with this id; returns the id that it is shown with."""
        names = (*self._shown_ids.get(call_id, ()), call_id)
        return next((name for name in names if self.pending.pop(name, None)), None)

    def _unused_id(self, call_id: str) -> str:
        fresh, number = call_id, 2
        while fresh in self._used:
            fresh, number = f"{call_id}-{number}", number + 1
        return fresh
