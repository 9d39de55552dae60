"""Token estimators: the protocol, and the character rules of known systems."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import msgspec

from ..errors import InvalidInput
from ..messages import Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, compact_json_length, to_json

_encode = msgspec.json.Encoder().encode


@runtime_checkable
class Estimator(Protocol):
    """Measures messages in units that add up, so that a running sum is enough.

    Rounding happens once, in `tokens`: a rule over a whole conversation then needs only constant work per
    message.
    """

    name: str

    def measure(self, message: Message) -> int:
        """Returns the units of a message, its role and tool calls included."""
        ...

    def measure_text(self, text: str) -> int:
        """Returns the units of a text alone."""
        ...

    def tokens(self, units: int) -> int:
        """Converts a sum of units to tokens."""
        ...


class CallableEstimator:
    """Estimator from a callable from text to tokens, called with the text of each part."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self.name = f"callable:{getattr(count, '__qualname__', type(count).__name__)}"
        self._count = count

    def measure(self, message: Message) -> int:
        return sum(self.measure_text(part_text(part)) for part in message.parts)

    def measure_text(self, text: str) -> int:
        if not text:
            return 0
        count = self._count(text)
        if not isinstance(count, int | float) or not 0 <= count < math.inf:
            raise InvalidInput(f"The estimator returned {count!r}: it must return a number of tokens, 0 or more.")
        return math.ceil(count)

    def tokens(self, units: int) -> int:
        return units


def count_tokens(estimator: Estimator, text: str | None) -> int:
    """Returns the tokens of one text; none is 0."""
    return estimator.tokens(estimator.measure_text(text)) if text else 0


def part_text(part: Part) -> str:
    """Returns all text of a part that a model reads."""
    match part:
        case Text() | Reasoning():
            return part.text
        case ToolCall():
            return part.name + part.arguments_json
        case ToolResult():
            return part.text if all(type(item) is Text for item in part.content) else result_json(part)
        case Opaque():
            return to_json(part.data)
        case _:
            return ""


def result_json(result: ToolResult) -> str:
    """Encodes a result as compact JSON: its text as a string, or the list of its parts without media."""
    if not result.content:
        return '""'
    if len(result.content) == 1 and isinstance(only := result.content[0], Text):
        return to_json(only.text)
    return to_json([part_text(part) for part in result.content])


def result_length(result: ToolResult) -> int:
    """Returns the length of `result_json`; plain ASCII text is measured without building the string."""
    if len(result.content) == 1 and type(only := result.content[0]) is Text and only.text.isascii():
        return len(_encode(only.text))
    return len(result_json(result))


class CharsPerPiece:
    """ceil(characters / 4) of each piece separately, plus 2 per message for its role; nothing for non-text."""

    name = "chars/4"

    def measure(self, message: Message) -> int:
        parts = message.parts
        if len(parts) == 1:
            if type(only := parts[0]) is Text:
                return 2 - (-len(only.text) // 4)
            if type(only) is ToolResult:
                return 2 - (-result_length(only) // 4)
        total = 2
        for part in parts:
            if type(part) is ToolResult:
                total -= -result_length(part) // 4
            elif type(part) is ToolCall:
                given = part.arguments
                size = compact_json_length(given) if type(given) is str else len(part.arguments_json)
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
    """floor(characters / 4) of a message's content, plus 4 per message."""

    name = "chars/4+4"

    def measure(self, message: Message) -> int:
        return _length(message) // 4 + 4

    def measure_text(self, text: str) -> int:
        return len(text) // 4

    def tokens(self, units: int) -> int:
        return units


class CharsPerConversation:
    """characters / 3 over the whole conversation, rounded up once."""

    name = "chars/3"

    def measure(self, message: Message) -> int:
        return _length(message)

    def measure_text(self, text: str) -> int:
        return len(text)

    def tokens(self, units: int) -> int:
        return -(-units // 3)
