"""Pairing as events are appended: completes or drops what would be left without its other end."""

from __future__ import annotations

from collections.abc import Sequence

from .edit import as_user, drop_parts, fold_edits, rename_calls
from .links import Edges
from .parts import Message, Reasoning, Text, ToolCall, ToolResult
from .payload import INTERRUPTED_TEXT
from .tool_calls import item_id, without_item_id
from .turns import is_from_user
from .validate import FormatRules


def interrupted_result(call: ToolCall) -> ToolResult:
    """Returns an error result for a call that was never answered."""
    return ToolResult(call.id, (Text(INTERRUPTED_TEXT),), True, call.name, call.kind)


def without_results(message: Message, late: Sequence[int]) -> Message | None:
    """Returns a message of results without these; None if nothing is left. What is no result is the user's."""
    left = fold_edits(drop_parts(message, late))
    if not left.parts:
        return None
    user = as_user(left)
    return user if not left.results and is_from_user(user) else left


class Pairing:
    """Tracks what is open in one lane: pending tool calls, and programs and tools that the provider runs."""

    def __init__(self) -> None:
        self.pending: dict[str, ToolCall] = {}
        """Calls without a result, by the id they are shown with."""
        self._shown_ids: dict[str, list[str]] = {}
        self._used: set[str] = set()
        self._items: set[str] = set()
        self._in_batch = False
        self._edges = Edges()
        self._count = 0

    def closings(self, message: Message, rules: FormatRules) -> list[Message]:
        """Returns what closes the pending calls, and what the provider runs, that this message would leave open."""
        found = []
        if self.pending and not self._continues_batch(message, rules):
            found.append(Message("tool", tuple(interrupted_result(call) for call in self.pending.values())))
        if self._edges.open and is_from_user(message):
            found += [closing for opened in self._edges.open.values() if (closing := opened.closing()) is not None]
        return found

    def _continues_batch(self, message: Message, rules: FormatRules) -> bool:
        """Whether the pending calls may still be answered after this message."""
        if message.role == "tool" or message.results:
            return True
        if message.role == "assistant":
            return self._in_batch and (rules.items or rules.merges_roles)
        return message.role == "user" and not is_from_user(message)

    def accept(self, message: Message, rules: FormatRules) -> Message | None:
        """Returns the message as shown; None if it is a repeated item, or only holds parts without their other end."""
        if rules.items and (name := item_id(message)):
            if name in self._items:
                if any(type(part) is Reasoning for part in message.parts):
                    return None
                message = without_item_id(message)
            self._items.add(name)
        dangling = [end.part for end in self._edges.read(message, self._count)]
        self._count += 1
        if len(dangling) == len(message.parts):
            return None if dangling else message
        message = fold_edits(drop_parts(message, dangling))
        if message.role == "tool" or message.results:
            return self._accept_results(message)
        if message.role == "assistant" or is_from_user(message):
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
                if self._edges.claim_reference() is None:
                    late.append(index)
            elif name != part.call_id:
                fresh[index] = name
        if fresh:
            message = rename_calls(message, fresh)
        if not late:
            return message
        return without_results(message, late)

    def _pop_call(self, call_id: str) -> str | None:
        """Removes the oldest pending call that came with this id; returns the id that it is shown with."""
        names = (*self._shown_ids.get(call_id, ()), call_id)
        return next((name for name in names if self.pending.pop(name, None)), None)

    def _unused_id(self, call_id: str) -> str:
        fresh, number = call_id, 2
        while fresh in self._used:
            fresh, number = f"{call_id}-{number}", number + 1
        return fresh
