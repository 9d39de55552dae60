"""Facts of a conversation that must be equal in every format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from holdfast.messages import (
    Message,
    Opaque,
    Part,
    Text,
    ToolCall,
    ToolResult,
    decode_all,
    encode_all,
    without_generated_id,
)
from holdfast.messages.payload import opaque_text
from holdfast.messages.tool_calls import GENERATED_ID_PREFIX

Wire = list[dict[str, Any]]


class Facts(NamedTuple):
    texts: list[tuple[bool, str]]
    """Whether the model wrote it, and the text."""
    calls: list[tuple[str, str, dict[str, Any]]]
    """Id, name, and arguments as an object."""
    results: list[tuple[str, str, bool]]
    """Id, text, and whether it failed."""


def facts(messages: Sequence[Message], *, ids: bool = True) -> Facts:
    """Extracts the facts; calls without an id, or all without `ids`, are identified by position."""
    texts: list[tuple[bool, str]] = []
    calls: list[tuple[str, str, dict[str, Any]]] = []
    results: list[tuple[str, str, bool]] = []
    places: dict[str, str] = {}
    for message in messages:
        for part in message.parts:
            match part:
                case Text() | Opaque():
                    if text := part.text if isinstance(part, Text) else opaque_text(part):
                        texts.append((message.role == "assistant", text))
                case ToolCall():
                    if not ids or part.id.startswith(GENERATED_ID_PREFIX):
                        places[part.id] = f"call {len(calls)}"
                    calls.append((places.get(part.id, part.id), part.name, part.arguments_dict))
                case ToolResult():
                    call_id = places.get(part.call_id, part.call_id)
                    results.append(
                        ("?" if call_id.startswith(GENERATED_ID_PREFIX) else call_id, part.text, part.is_error)
                    )
    return Facts(texts, calls, results)


def bare(messages: Iterable[Message]) -> list[Message]:
    """Returns the messages without their payloads, so that all must be rendered."""
    return [Message(message.role, message.parts) for message in messages]


def all_parts(messages: Iterable[Message]) -> list[tuple[str, Part]]:
    """Returns every part with its role: how parts are grouped into messages depends on the format.

    Generated ids are omitted: they depend on the message's position.
    """
    return [(message.role, without_generated_id(part)) for message in messages for part in message.parts]


def read(payloads: Wire, format: str) -> list[Message]:
    return decode_all(payloads, format)[0]


def moved(messages: Sequence[Message], format: str) -> list[Message]:
    """Returns the messages re-encoded in another format."""
    return read(encode_all(messages, format), format)
