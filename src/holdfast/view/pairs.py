"""Tool pairs, as events come in: what may be shown, and what must be closed first."""

from __future__ import annotations

from ..messages import Message, Part, Profile, Reasoning, Text, ToolCall, ToolResult, item_id

INTERRUPTED = "(no result: the call was interrupted)"


def interrupted(call: ToolCall) -> ToolResult:
    """The answer to a call that nobody answered."""
    return ToolResult(call.id, (Text(INTERRUPTED),), True, call.name, call.kind)


class Pairs:
    """Follows one lane: the calls that wait for a result, and those that no longer do."""

    def __init__(self) -> None:
        self.waiting: dict[str, ToolCall] = {}
        """The calls that wait for a result, as they are shown."""
        self._shown_as: dict[str, list[str]] = {}
        self._used: set[str] = set()
        self._items: set[str] = set()
        self._in_batch = False

    def closing(self, message: Message, profile: Profile) -> Message | None:
        """Results for the calls that this message would leave behind unanswered."""
        if not self.waiting or message.role == "tool" or message.results:
            return None
        batches = profile.items or profile.merges_roles
        if batches and message.role == "assistant" and self._in_batch:
            return None
        return Message("tool", tuple(interrupted(call) for call in self.waiting.values()))

    def admit(self, message: Message, profile: Profile) -> Message | None:
        """The message as it may be shown; None for one that only repeats or comes too late."""
        if profile.items and (name := item_id(message)):
            if name in self._items:
                if any(type(part) is Reasoning for part in message.parts):
                    return None
                message = message.with_parts(message.parts)
            self._items.add(name)
        if message.role == "tool" or message.results:
            return self._results(message)
        self._in_batch = message.role == "assistant"
        parts: list[Part] = []
        for part in message.parts:
            if type(part) is ToolCall:
                shown = self._fresh(part) if profile.unique_calls or part.id in self.waiting else part
                self._used.add(shown.id)
                self.waiting[shown.id] = shown
                self._shown_as.setdefault(part.id, []).append(shown.id)
                parts.append(shown)
            else:
                parts.append(part)
        return (
            message
            if all(a is b for a, b in zip(parts, message.parts, strict=True))
            else message.with_parts(tuple(parts))
        )

    def _results(self, message: Message) -> Message | None:
        self._in_batch = False
        parts: list[Part] = []
        for part in message.parts:
            if type(part) is not ToolResult:
                parts.append(part)
            elif call := self._called(part.call_id):
                same = call.id == part.call_id
                parts.append(part if same else ToolResult(call.id, part.content, part.is_error, part.name, part.kind))
        if not parts:
            return None
        if all(a is b for a, b in zip(parts, message.parts, strict=False)) and len(parts) == len(message.parts):
            return message
        results = any(type(part) is ToolResult for part in parts)
        return Message("tool" if results else "user", tuple(parts))

    def _called(self, call_id: str) -> ToolCall | None:
        """The call that a result answers: the oldest that came with its id and still waits."""
        for shown_id in (*self._shown_as.get(call_id, ()), call_id):
            if call := self.waiting.pop(shown_id, None):
                return call
        return None

    def _fresh(self, call: ToolCall) -> ToolCall:
        fresh, number = call.id, 2
        while fresh in self._used:
            fresh, number = f"{call.id}-{number}", number + 1
        return call if fresh == call.id else ToolCall(fresh, call.name, call.arguments, call.kind, call.signature)
