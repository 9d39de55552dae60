"""Where a context may be cut without parting what belongs together.

All of this is about repaired messages: there, results stand right behind the calls they answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..messages import Message, Reasoning, ToolCall, follows_user


def legal(messages: Sequence[Message], cut: int) -> bool:
    """May the messages from here on stand without those before?

    Not at a tool's result, not inside a run of the assistant's messages that holds a call or a thought
    which the next one needs (parallel batches and reasoning stay whole), and not at a system message
    behind the user's words or a tool's result: it belongs to them, and alone it could not stand first.
    """
    if cut <= 0 or cut >= len(messages):
        return True
    role = messages[cut].role
    if role == "tool":
        return False
    if role == "system":
        return not follows_user(messages[cut - 1])
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
    while not legal(messages, cut):
        cut += 1
    return cut


def cut_at_or_before(messages: Sequence[Message], cut: int) -> int:
    while not legal(messages, cut):
        cut -= 1
    return cut


def unfinished(messages: Sequence[Message]) -> int:
    """Where the newest tool loop starts that the model has not answered yet; the end if there is none."""
    last = len(messages) - 1
    while last >= 0 and messages[last].role == "system":
        last -= 1
    if last < 0 or (messages[last].role != "tool" and not has_calls(messages[last])):
        return len(messages)
    return cut_at_or_before(messages, last)


def has_calls(message: Message) -> bool:
    return any(type(part) is ToolCall for part in message.parts)


def only_reasoning(message: Message) -> bool:
    parts = message.parts
    return bool(parts) and all(type(part) is Reasoning for part in parts)
