"""Size of a context: running sums over its messages, each measured once, and the prompt that is sent with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from itertools import accumulate
from typing import Any

from ..messages import Message, decode_all, to_json
from ..tokens import Estimator


class TokenSums:
    """Units of one view by one estimator; `cumulative[i]` is the sum over the first i live messages."""

    def __init__(self, estimator: Estimator, prompt_overhead: Sequence[str | Message] = ()) -> None:
        self.estimator = estimator
        self.overhead = measure_prompt(estimator, prompt_overhead)
        """Units of the system prompt and the tool definitions."""
        self.head: list[int] = []
        self.cumulative = [0]

    def snapshot(self) -> TokenSums:
        """Returns an independent copy."""
        duplicate = copy(self)
        duplicate.head, duplicate.cumulative = list(self.head), list(self.cumulative)
        return duplicate

    def sliced(self, start: int, units: Mapping[int, int]) -> TokenSums:
        """Returns the sums of the live messages from `start` on, of which some have new sizes."""
        part, ends = copy(self), self.cumulative
        offset, part.cumulative = ends[start], []
        for index in sorted(units):
            part.cumulative += [end - offset for end in ends[start + len(part.cumulative) : index + 1]]
            offset += ends[index + 1] - ends[index] - units[index]
        part.cumulative += [end - offset for end in ends[start + len(part.cumulative) :]]
        return part

    def measure_head(self, head: Sequence[Message], known: Mapping[int, int] = {}) -> None:
        """Measures the head; `known` has sizes by the identity of their message."""
        measure = self.estimator.measure
        self.head = [known[id(message)] if id(message) in known else measure(message) for message in head]

    def load(self, messages: Sequence[Message]) -> None:
        self.cumulative = list(accumulate(map(self.estimator.measure, messages), initial=0))

    def add(self, message: Message, units: int | None = None) -> None:
        self.cumulative.append(self.cumulative[-1] + (self.estimator.measure(message) if units is None else units))

    def catch_up(self, messages: Sequence[Message]) -> None:
        """Measures the messages that were appended since the last call."""
        for index in range(len(self.cumulative) - 1, len(messages)):
            self.add(messages[index])

    @property
    def units(self) -> int:
        return self.overhead + sum(self.head) + self.cumulative[-1]


def measure_prompt(estimator: Estimator, parts: Sequence[str | Message]) -> int:
    """Returns the units of the parts of a prompt."""
    return sum(estimator.measure_text(part) if isinstance(part, str) else estimator.measure(part) for part in parts)


def prompt_overhead(system: Any, tools: Any) -> tuple[str | Message, ...]:
    """Returns the system prompt and the text of the tools, which take room in the window next to the messages.

    A prompt that is a list of messages has the same size as those messages in a conversation.
    """
    parts: list[str | Message] = []
    if isinstance(system, list) and all(isinstance(item, Mapping) and "role" in item for item in system):
        parts += decode_all(system)[0]
    elif system:
        parts.append(system if isinstance(system, str) else to_json(_plain(system)))
    if tools:
        parts.append(to_json(_plain(tools)))
    return tuple(parts)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.model_dump(mode="json", exclude_none=True) if hasattr(value, "model_dump") else value
