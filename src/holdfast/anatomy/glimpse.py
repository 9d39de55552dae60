"""One line of a message, safe to print: sessions hold any character, escape codes for terminals too."""

from __future__ import annotations

import re
import unicodedata

from ..messages import Media, Message, Reasoning, ToolCall, ToolResult

LONGEST = 200
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), " ")


def printable(text: str) -> str:
    """Without colours, control characters and marks that turn the writing round."""
    text = _ESCAPES.sub("", text).translate(_CONTROLS)
    return text if text.isascii() else "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cs"))


def first_line(text: str) -> str:
    """The first line that says something."""
    start = text.lstrip()
    return " ".join(printable(start.partition("\n")[0][: 2 * LONGEST])[:LONGEST].split())


def glimpse(message: Message) -> str:
    """What a message says, or does, in one line."""
    if message.text.strip():
        return first_line(message.text)
    for part in message.parts:
        match part:
            case ToolCall():
                return f"→ {first_line(part.name)} {first_line(part.json)}"
            case ToolResult():
                return f"← {first_line(part.text)}"
    kinds = {Reasoning: "(reasoning)", Media: "(image or file)"}
    return next((kinds.get(type(part), "(other content)") for part in message.parts), "(empty)")
