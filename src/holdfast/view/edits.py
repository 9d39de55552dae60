"""Edits: what a checkpoint changes inside messages that stay."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..messages import Message, Part, Text, ToolResult


class Edit(msgspec.Struct, frozen=True, array_like=True):
    """Replace the content of the result at this place in a message, or drop the part (text is None)."""

    part: int
    text: str | None = None


def edited(message: Message, edits: Sequence[Edit]) -> Message:
    """The message with these edits; it may be left without parts, and is then not shown."""
    if not edits:
        return message
    changes = {edit.part: edit.text for edit in edits}
    parts: list[Part] = []
    for index, part in enumerate(message.parts):
        if index not in changes:
            parts.append(part)
        elif (text := changes[index]) is not None and isinstance(part, ToolResult):
            parts.append(ToolResult(part.call_id, (Text(text),), part.is_error, part.name, part.kind))
    return message.with_parts(tuple(parts))


def combined(earlier: Sequence[Edit], later: Sequence[Edit]) -> tuple[Edit, ...]:
    """Edits to the original message that come to the same as these, one after the other."""
    gone = {edit.part for edit in earlier if edit.text is None}
    changes = {edit.part: edit for edit in earlier}
    for edit in later:
        place = _original_place(edit.part, gone)
        changes[place] = Edit(place, edit.text)
    return tuple(changes[place] for place in sorted(changes))


def _original_place(place: int, gone: set[int]) -> int:
    """The place in the original of what stands here once parts are gone."""
    original = -1
    for _ in range(place + 1):
        original += 1
        while original in gone:
            original += 1
    return original
