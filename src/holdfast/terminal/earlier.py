"""What a session shows its model now, in a few lines: for a person who comes back to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..chat import Chat
from ..messages import Message, ToolCall, ToolResult, decode_all, is_framed, unframed
from .entries import Earlier, Entry, Note, Reply, Summary

_SHOWN = 40
"""Messages that are shown; the last reply is shown whole."""


async def earlier(chat: Chat) -> tuple[list[Entry], list[str]]:
    """The visible context as entries, and what the person said in it, oldest first."""
    context = await chat.sessions.context(chat.record.id)
    messages, _ = decode_all(context.messages, context.format)
    entries = [entry for message in messages for entry in _entries(message)]
    left = len(entries) - _SHOWN
    if left > 0:
        summaries = [entry for entry in entries[:left] if isinstance(entry, Summary)]
        entries = [*summaries, Note(f"{left} earlier ones are in the context, too: /context, /search"), *entries[left:]]
    said = [message.text for message in messages if message.role == "user" and not is_framed(message)]
    return _with_last_reply(entries, messages), said


def _entries(message: Message) -> Iterator[Entry]:
    if is_framed(message):
        yield Summary(unframed(message))
        return
    if message.text.strip():
        yield Earlier(message.role, message.text)
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield Earlier("tool", f"{part.name} {' '.join(map(str, part.object.values()))}")
        elif isinstance(part, ToolResult) and part.is_error:
            yield Earlier("tool", f"failed: {part.text}")


def _with_last_reply(entries: list[Entry], messages: Sequence[Message]) -> list[Entry]:
    last = messages[-1] if messages else None
    if last is None or last.role != "assistant" or last.calls or not last.text.strip() or is_framed(last):
        return entries
    return [*entries[:-1], Reply(last.text)]
