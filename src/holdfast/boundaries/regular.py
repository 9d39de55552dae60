"""Most histories are in order: telling that costs less than finding out what is not."""

from __future__ import annotations

from collections.abc import Sequence

from ..messages import Message, Profile, ToolCall, ToolResult, says_nothing


def is_regular(messages: Sequence[Message], profile: Profile, ready: bool) -> bool:
    """Is every call answered at once, one result a message? A format without rules of its own asks no more."""
    waiting: set[str] = set()
    for message in messages:
        parts = message.parts
        if message.role == "tool":
            if len(parts) != 1 or type(only := parts[0]) is not ToolResult or only.call_id not in waiting:
                return False
            waiting.remove(only.call_id)
            continue
        if waiting or (not parts and says_nothing(message, profile)):
            return False
        for part in parts:
            if type(part) is ToolCall and part.id not in waiting:
                waiting.add(part.id)
            elif type(part) is ToolCall or type(part) is ToolResult:
                return False
    return not (ready and waiting)
