"""Plain message files: a list, a request body, or one message a line, in any provider's format."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidInput, UnknownFormat
from .transcript import Record, Transcript, TranscriptEntry, TranscriptWarnings, text_or_none

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


def is_request_body(value: Any) -> bool:
    """Is this a request body, with its messages under `messages`, `input` or `contents`?"""
    if not isinstance(value, dict) or matches(value):
        return False
    return any(isinstance(value.get(name), list) for name in _LISTS) or isinstance(value.get("input"), str)


def matches(record: Record) -> bool:
    """Is this a message, with a role or parts (Gemini), or an item of the Responses API?"""
    kind = record.get("type")
    if isinstance(record.get("role"), str) or isinstance(record.get("parts"), list):
        return True
    return isinstance(kind, str) and (kind in _ITEMS or kind.endswith(("_call", "_output")))


def read_request(body: Record, name: str, warnings: TranscriptWarnings) -> Transcript:
    given = next(body[key] for key in _LISTS if isinstance(body.get(key), list | str))
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
    return Transcript(
        "messages",
        None,
        _read_entries(messages, name),
        system=next((body[key] for key in _SYSTEM if body.get(key)), None),
        tools=body.get("tools"),
        model=text_or_none(body.get("model")),
        id=text_or_none(body.get("id")),
        warnings=warnings.lines(),
    )


def read_messages(values: list[Any], name: str, warnings: TranscriptWarnings) -> Transcript:
    return Transcript("messages", None, _read_entries(values, name), warnings=warnings.lines())


def _read_entries(values: list[Any], name: str) -> tuple[TranscriptEntry, ...]:
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise InvalidInput(f"Message {number} of {name} is not a JSON object: each must be one with a role.")
        if not matches(value):
            raise UnknownFormat(
                f"Message {number} of {name} has neither a role nor a type: "
                "write it in the format of OpenAI, Anthropic or Gemini."
            )
    return tuple(TranscriptEntry(value, text_or_none(value.get("id"))) for value in values)
