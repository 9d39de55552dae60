"""Plain message files: a list, a request body, or one message a line, in any provider's format."""

from __future__ import annotations

from typing import Any

from holdfast.errors import InvalidInput, UnknownFormat

from .notes import Notes
from .transcript import Entry, Record, Transcript, text

_LISTS = ("messages", "input", "contents")
_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")
_ITEMS = (
    "compaction",
    "item_reference",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_list_tools",
    "reasoning",
)


def is_request(value: Any) -> bool:
    """An object that holds its messages under one of the providers' names for them."""
    if not isinstance(value, dict) or fits(value):
        return False
    return any(isinstance(value.get(name), list) for name in _LISTS) or isinstance(value.get("input"), str)


def fits(record: Record) -> bool:
    """A message names its role or has parts (Gemini); an item of the Responses API has a type of its own."""
    kind = record.get("type")
    if isinstance(record.get("role"), str) or isinstance(record.get("parts"), list):
        return True
    return isinstance(kind, str) and (kind in _ITEMS or kind.endswith(("_call", "_output")))


def read_request(body: Record, name: str, notes: Notes) -> Transcript:
    given = next(body[key] for key in _LISTS if isinstance(body.get(key), list | str))
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
    return Transcript(
        "messages",
        None,
        _entries(messages, name),
        system=next((body[key] for key in _SYSTEM if body.get(key)), None),
        tools=body.get("tools"),
        model=text(body.get("model")),
        id=text(body.get("id")),
        notes=notes.lines(),
    )


def read_messages(values: list[Any], name: str, notes: Notes) -> Transcript:
    return Transcript("messages", None, _entries(values, name), notes=notes.lines())


def _entries(values: list[Any], name: str) -> tuple[Entry, ...]:
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise InvalidInput(f"Message {number} of {name} is not a JSON object: each must be one with a role.")
        if not fits(value):
            raise UnknownFormat(
                f"Message {number} of {name} has neither a role nor a type: "
                "write it as OpenAI, Anthropic or Gemini would take it."
            )
    return tuple(Entry(value, text(value.get("id"))) for value in values)
