"""The character rules of the documents, to the letter. Characters are code points."""

from __future__ import annotations

from ..messages import Message, Text, ToolCall, ToolResult, length_compacted
from .estimator import part_text, result_length


class CharsPerPiece:
    """L1: ceil(chars / 4) of each piece by itself, 2 more for a message's role, nothing for non-text."""

    name = "chars/4"

    def measure(self, message: Message) -> int:
        parts = message.parts
        if len(parts) == 1 and type(only := parts[0]) is Text:
            return 2 - (-len(only.text) // 4)
        total = 2
        for part in parts:
            if type(part) is ToolResult:
                total -= -result_length(part) // 4
            elif type(part) is ToolCall:
                given = part.arguments
                size = length_compacted(given) if type(given) is str else len(part.json)
                total -= -len(part.name) // 4 + -size // 4
            elif type(part) is Text:
                total -= -len(part.text) // 4
        return total

    def measure_text(self, text: str) -> int:
        return -(-len(text) // 4)

    def tokens(self, units: int) -> int:
        return units


def _length(message: Message) -> int:
    parts = message.parts
    if len(parts) == 1 and type(only := parts[0]) is Text:
        return len(only.text)
    return sum([len(part_text(part)) for part in parts])


class CharsPerMessage:
    """G1: floor(length / 4) of a message's content, and 4 more for each message."""

    name = "chars/4+4"

    def measure(self, message: Message) -> int:
        return _length(message) // 4 + 4

    def measure_text(self, text: str) -> int:
        return len(text) // 4

    def tokens(self, units: int) -> int:
        return units


class CharsPerConversation:
    """W2: characters / 3 over the whole conversation, rounded up once."""

    name = "chars/3"

    def measure(self, message: Message) -> int:
        return _length(message)

    def measure_text(self, text: str) -> int:
        return len(text)

    def tokens(self, units: int) -> int:
        return -(-units // 3)
