"""Redaction, the only rewrite of a log: its owner removes the content of an event for privacy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ..context import Checkpoint
from ..context.events import Event, EventKind, message_in, new_id, now
from ..errors import InvalidInput
from ..messages import (
    Json,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    add_frame,
    encode_all,
    is_framed,
    strip_frame,
)
from ..stores import Slice
from ..strategies.truncation import user_topics
from ..tokens import part_text
from .live import LiveSession

REDACTED = "[redacted]"
_MIN_QUOTE = 12
"""Shorter text is too common to be searched in notes."""


async def redact_event(live: LiveSession, event_id: str) -> None:
    """Scrubs the event, its restored copies, and every head and note that quotes it."""
    event = await live.event(event_id)
    if event.kind != EventKind.MESSAGE:
        raise InvalidInput(f"Event {event_id!r} is a {event.kind}: only messages can be redacted.")
    if "redacted" in event.body:
        return
    message = message_in(event)
    quotes = _quotes(message)
    everything = await live.store.read(live.id, Slice(any_lane=True))
    changed = [_tombstone(event, message)]
    changed += [
        _tombstone(copy, message_in(copy))
        for copy in everything
        if copy.kind == EventKind.MESSAGE and copy.body.get("source") == event_id
    ]
    for other in everything:
        if other.kind == EventKind.COMPACTION:
            body = _scrubbed(other.body, event_id, quotes)
            if body != other.body:
                changed.append(msgspec.structs.replace(other, body=body))
    await live.store.rewrite(live.id, changed, _media_of(event, everything))
    note = Event(new_id(), EventKind.REDACTION, now(), {"event": event_id}, event.lane)
    await live.store.append(live.id, [note], tip=live.tip(event.lane))


def _tombstone(event: Event, message: Message) -> Event:
    """The event without its content: still a valid message, with its calls and results in place."""
    format = event.body.get("format") or "openai-chat"
    bare = message.with_parts(tuple(_bare(part) for part in message.parts if _bare(part) is not None))  # type: ignore[misc]
    payload: Json = encode_all([bare], format)[0] if bare.parts else {"role": message.role, "content": REDACTED}
    body: Json = {"message": payload, "redacted": event.digest}
    for key in ("format", "usage", "model", "foreign_usage", "synthetic", "aside", "source", "closes"):
        if key in event.body:
            body[key] = event.body[key]
    return msgspec.structs.replace(event, body=body)


def _bare(part: Part) -> Part | None:
    match part:
        case ToolCall():
            return ToolCall(part.id, part.name, {}, part.kind)
        case ToolResult():
            return ToolResult(part.call_id, (Text(REDACTED),), part.is_error, part.name, part.kind)
        case Text():
            return Text(REDACTED)
        case _:
            return None


def _quotes(message: Message) -> list[str]:
    """Texts of this message that notes may quote: its whole texts, and their first words."""
    texts = [part_text(part) for part in message.parts] + [message.text, *user_topics([message])]
    if is_framed(message):
        texts.append(strip_frame(message).partition("\n")[2])
    return sorted({text for text in texts if len(text) >= _MIN_QUOTE}, key=len, reverse=True)


def _scrubbed(body: Json, event_id: str, quotes: Iterable[str]) -> Json:
    """Returns the body of a checkpoint without anything of the event."""
    checkpoint = msgspec.convert(body, Checkpoint)
    head = []
    for item in checkpoint.head:
        if item.message is not None and item.ref == event_id:
            item = msgspec.structs.replace(item, message=None)
        elif item.message is not None:
            item = msgspec.structs.replace(item, message=_without(item.message, quotes))
        head.append(item)
    clean: Json = msgspec.to_builtins(msgspec.structs.replace(checkpoint, head=tuple(head)))
    known = set(Checkpoint.__struct_fields__)
    return {**{k: v for k, v in body.items() if k not in known}, **_replace(clean, quotes)}


def _without(message: Message, quotes: Iterable[str]) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Text) and (clean := _replace(part.text, quotes)) != part.text:
            part = Text(add_frame(clean.rpartition("\n[holdfast:")[0])) if is_framed(message) else Text(clean)
        parts.append(part)
    return message if tuple(parts) == message.parts else message.with_parts(tuple(parts))


def _replace(value: Any, quotes: Iterable[str]) -> Any:
    if isinstance(value, str):
        for quote in quotes:
            value = value.replace(quote, REDACTED)
        return value
    if isinstance(value, dict):
        return {key: _replace(item, quotes) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace(item, quotes) for item in value]
    return value


def _media_of(event: Event, everything: Iterable[Event]) -> list[str]:
    """Returns media of this event that no other event has."""
    own = set(event.body.get("media", ()))
    for other in everything:
        if other.id != event.id:
            own -= set(other.body.get("media", ()))
    return sorted(own)
