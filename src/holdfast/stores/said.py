"""What an event says to a reader: its words without ids and field names, who speaks, which tools it is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ..errors import HoldfastError
from ..events import Event, Kind
from ..messages import Json, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, decode_one

_MUTE = frozenset((Kind.UNDO, Kind.PIN, Kind.REDACTION))
"""Kinds of event that hold nothing but ids."""
_NOISE = frozenset(("type", "id", "call_id", "status", "signature", "encrypted_content"))
"""Fields of a provider's own parts that nobody would look for."""
_UNREADABLE = (HoldfastError, KeyError, TypeError, AttributeError, ValueError, RecursionError)


class Said(msgspec.Struct, frozen=True):
    """One event, as search sees it."""

    text: str = ""
    role: str | None = None
    tools: tuple[str, ...] = ()
    """The tools that it calls, and those it answers for by name."""
    answers: tuple[str, ...] = ()
    """The calls that it answers without naming the tool: some formats leave that to the call."""


def said_in(event: Event) -> Said:
    """Everything in it that can be found. A restored copy says nothing of its own: its source does."""
    body = event.body
    if event.kind in _MUTE or "source" in body:
        return Said()
    if event.kind == Kind.COMPACTION:
        return Said(_joined(_notes(body)))
    message = message_of(event)
    if message is None:
        return Said(_joined(_pieces(body)))
    results = message.results
    tools = [call.name for call in message.calls] + [result.name for result in results if result.name]
    return Said(
        _joined(piece for part in message.parts for piece in _part(part)),
        message.role,
        tuple(dict.fromkeys(tools)),
        tuple(result.call_id for result in results if not result.name),
    )


def message_of(event: Event) -> Message | None:
    """The message of an event; None if it holds none that can be read."""
    try:
        return decode_one(event.body["message"], event.body.get("format"))
    except _UNREADABLE:
        return None


def tool_called(event: Event, call_id: str) -> str | None:
    """The tool that this event calls under this id."""
    message = message_of(event)
    return next((call.name for call in message.calls if call.id == call_id), None) if message else None


def _joined(pieces: Iterable[str]) -> str:
    return "\n".join(pieces)


def _part(part: Part | Text | Media | Opaque) -> Iterator[str]:
    match part:
        case Text() | Reasoning():
            yield from _pieces(part.text)
        case ToolCall():
            yield part.name
            yield from _arguments(part.arguments)
        case ToolResult():
            for item in part.content:
                yield from _part(item)
        case Media():
            where = part.url if part.url and not part.url.startswith(("data:", "holdfast-media:")) else None
            yield from filter(None, (part.name, where, part.file_id))
        case Opaque():
            yield from _pieces({name: value for name, value in part.data.items() if name not in _NOISE})


def _arguments(arguments: Json | str) -> Iterator[str]:
    """Their names and values, which are the model's own words; text that is no JSON as it is."""
    try:
        yield from _pieces(msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments, keys=True)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        yield str(arguments)


def _notes(body: Json) -> Iterator[str]:
    """What a compaction says itself: its summary, and notes that quote no single event."""
    yield from _pieces(body.get("summary"))
    for item in body.get("head") or ():
        if isinstance(item, dict) and not item.get("ref") and isinstance(message := item.get("message"), dict):
            for part in message.get("parts") or ():
                yield from _pieces(part.get("text") if isinstance(part, dict) else None)


def _pieces(value: Any, *, keys: bool = False) -> Iterator[str]:
    """All text inside plain data, with or without its keys."""
    if isinstance(value, str):
        yield value
        if "\\" in value and value[:1] in ("{", "["):
            yield from _escaped(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if keys:
                yield str(key)
            yield from _pieces(inner, keys=keys)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _pieces(inner, keys=keys)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _escaped(value: str) -> Iterator[str]:
    """JSON in a string, where `ü` may be written as an escape."""
    try:
        inner = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return
    yield from _pieces(inner)
