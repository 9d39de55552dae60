"""Legal cut points: positions that do not separate tool calls from results, or reasoning from its reply.

Expects repaired messages, in which results directly follow the calls they answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from .parts import Message, Reasoning, ToolCall
from .validate import can_precede_system


def is_legal_cut(messages: Sequence[Message], cut: int) -> bool:
    """Whether the messages from this index on are valid without the earlier ones.

    Illegal: at a tool result; inside a run of assistant messages that holds a call or reasoning which the
    next one needs (parallel batches and reasoning stay whole); at a system message that follows a user
    message or a tool result, because it belongs to that message and may not come first.
    """
    if cut <= 0 or cut >= len(messages):
        return True
    role = messages[cut].role
    if role == "tool":
        return False
    if role == "system":
        return not can_precede_system(messages[cut - 1])
    if role != "assistant":
        return True
    if only_reasoning(messages[cut - 1]):
        return False
    for index in range(cut - 1, -1, -1):
        if messages[index].role != "assistant":
            return True
        if has_calls(messages[index]):
            return False
    return True


def cut_at_or_after(messages: Sequence[Message], cut: int) -> int:
    """Returns the first legal cut at or after this index."""
    while not is_legal_cut(messages, cut):
        cut += 1
    return cut


def cut_at_or_before(messages: Sequence[Message], cut: int) -> int:
    """Returns the last legal cut at or before this index."""
    while not is_legal_cut(messages, cut):
        cut -= 1
    return cut


def open_tool_loop_start(messages: Sequence[Message]) -> int:
    """Returns the start of the newest tool loop without a final reply; the end if there is none."""
    last = last_spoken(messages)
    if last < 0 or (messages[last].role != "tool" and not has_calls(messages[last])):
        return len(messages)
    return cut_at_or_before(messages, last)


def last_spoken(messages: Sequence[Message]) -> int:
    """Returns the index of the last message that is not a system message; -1 if there is none."""
    last = len(messages) - 1
    while last >= 0 and messages[last].role == "system":
        last -= 1
    return last


def has_calls(message: Message) -> bool:
    """Returns whether the message calls a tool."""
    return any(type(part) is ToolCall for part in message.parts)


def only_reasoning(message: Message) -> bool:
    """Returns whether the message has parts, all of them reasoning."""
    parts = message.parts
    return bool(parts) and all(type(part) is Reasoning for part in parts)
