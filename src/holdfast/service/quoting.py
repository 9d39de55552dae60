"""A message in words, for a reader: what was said, thought, called and answered, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..events import Event
from ..messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, media_in_words, to_json
from ..references import reference


def quoted(message: Message, tools: Sequence[str] = ()) -> str:
    """The parts of a message, one below the other. `tools` names those of its results that do not say it."""
    names = iter(tools if len(tools) == len(message.results) else ())
    return "\n".join(_part(part, names) for part in message.parts)


def _part(part: Part | Text | Media | Opaque, tools: Iterator[str]) -> str:
    match part:
        case Text():
            return part.text
        case Reasoning():
            return f"(thinking) {part.text}" if part.text else "(thinking, not readable)"
        case ToolCall():
            return f"→ {part.name} {part.json}"
        case ToolResult():
            said = "\n".join(_part(item, tools) for item in part.content) or "(empty)"
            name = part.name or next(tools, "")
            return f"← {name + ' ' if name else ''}{'failed: ' if part.is_error else ''}{said}"
        case Media():
            return f"[{media_in_words(part)}]"
        case Opaque():
            return f"({part.kind}) {to_json(part.data)}"


def said_when(event: Event, role: str) -> str:
    """Which event it is, who spoke, and when, on one line."""
    lane = f" in lane {event.lane}" if event.lane else ""
    time = f", {event.time[:19].replace('T', ' ')}" if event.time else ""
    return f"{reference(event)}, {role}{lane}{time}"
