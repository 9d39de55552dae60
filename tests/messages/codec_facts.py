"""What must be the same of a conversation, whatever format it is told in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from holdfast.messages import Message, Opaque, Part, Text, ToolCall, ToolResult, decode_all, encode_all, unnumbered
from holdfast.messages.numbering import NAMELESS
from holdfast.messages.standins import readable

Wire = list[dict[str, Any]]


class Facts(NamedTuple):
    texts: list[tuple[bool, str]]
    """What was said, and whether the model said it."""
    calls: list[tuple[str, str, dict[str, Any]]]
    """Id, name, and arguments as an object."""
    results: list[tuple[str, str, bool]]
    """Id, text, and whether it failed."""


def facts(messages: Sequence[Message], *, ids: bool = True) -> Facts:
    """A call without an id of its own, and any without `ids`, is known by its place."""
    texts: list[tuple[bool, str]] = []
    calls: list[tuple[str, str, dict[str, Any]]] = []
    results: list[tuple[str, str, bool]] = []
    places: dict[str, str] = {}
    for message in messages:
        for part in message.parts:
            match part:
                case Text() | Opaque():
                    if said := part.text if isinstance(part, Text) else readable(part):
                        texts.append((message.role == "assistant", said))
                case ToolCall():
                    if not ids or part.id.startswith(NAMELESS):
                        places[part.id] = f"call {len(calls)}"
                    calls.append((places.get(part.id, part.id), part.name, part.object))
                case ToolResult():
                    call_id = places.get(part.call_id, part.call_id)
                    results.append(("?" if call_id.startswith(NAMELESS) else call_id, part.text, part.is_error))
    return Facts(texts, calls, results)


def bare(messages: Iterable[Message]) -> list[Message]:
    """The same messages without the payloads they came as, so that all must be rendered."""
    return [Message(message.role, message.parts) for message in messages]


def all_parts(messages: Iterable[Message]) -> list[tuple[str, Part]]:
    """Every part with who said it: how parts are grouped into messages is a matter of the format.

    Ids that we gave are left out: they are made from a message's place.
    """
    return [(message.role, unnumbered(part)) for message in messages for part in message.parts]


def read(payloads: Wire, format: str) -> list[Message]:
    return decode_all(payloads, format)[0]


def moved(messages: Sequence[Message], format: str) -> list[Message]:
    """The messages as another format would have them."""
    return read(encode_all(messages, format), format)
