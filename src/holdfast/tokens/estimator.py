"""What counts tokens: units that add up, and the tokens those units stand for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import msgspec

from ..errors import InvalidInput
from ..messages import Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, to_json

_encode = msgspec.json.Encoder().encode


@runtime_checkable
class Estimator(Protocol):
    """Units of messages add up, so that a running sum is all a long session needs.

    Rounding happens once, in `tokens`: a rule over a whole conversation and constant work per
    message are then the same thing.
    """

    name: str

    def measure(self, message: Message) -> int: ...

    def measure_text(self, text: str) -> int: ...

    def tokens(self, units: int) -> int: ...


class PerPart:
    """Any callable from text to a number of tokens, given the text of each part."""

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
            raise InvalidInput(f"The estimator answered {count!r}: it must return a number of tokens, 0 or more.")
        return math.ceil(count)

    def tokens(self, units: int) -> int:
        return units


def tokens_in(estimator: Estimator, text: str) -> int:
    """Tokens of a text by itself."""
    return estimator.tokens(estimator.measure_text(text))


def part_text(part: Part) -> str:
    """All the text of a part that a model would read."""
    match part:
        case Text() | Reasoning():
            return part.text
        case ToolCall():
            return part.name + part.json
        case ToolResult():
            return part.text if all(type(item) is Text for item in part.content) else result_json(part)
        case Opaque():
            return to_json(part.data)
        case _:
            return ""


def result_json(result: ToolResult) -> str:
    """A result as compact JSON: its text as a JSON string, or the list of its parts without media."""
    if not result.content:
        return '""'
    if len(result.content) == 1 and isinstance(only := result.content[0], Text):
        return to_json(only.text)
    return to_json([part_text(part) for part in result.content])


def result_length(result: ToolResult) -> int:
    """How many characters `result_json` has; plain text is the most common, and need not become a string again."""
    if len(result.content) == 1 and type(only := result.content[0]) is Text and only.text.isascii():
        return len(_encode(only.text))
    return len(result_json(result))
