"""A running sum of units over a view's messages: each message is measured once, ever (L13)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from ..messages import Message
from ..tokens import Estimator


class Gauge:
    """What one estimator says of one view; `sums[i]` is what the first i live messages come to."""

    def __init__(self, estimator: Estimator, beside: Sequence[str] = ()) -> None:
        self.estimator = estimator
        self.fixed = sum(map(estimator.measure_text, beside))
        """What stands beside the messages: the system prompt and the tools."""
        self.head: list[int] = []
        self.sums = [0]

    def snapshot(self) -> Gauge:
        """These sums as they are now."""
        still = copy(self)
        still.head, still.sums = list(self.head), list(self.sums)
        return still

    def begin(self, head: Sequence[Message]) -> None:
        self.head = list(map(self.estimator.measure, head))

    def load(self, messages: Sequence[Message]) -> None:
        measure, total = self.estimator.measure, 0
        self.sums = [0, *[total := total + measure(message) for message in messages]]

    def add(self, message: Message, units: int | None = None) -> None:
        self.sums.append(self.sums[-1] + (self.estimator.measure(message) if units is None else units))

    def catch_up(self, messages: Sequence[Message]) -> None:
        for index in range(len(self.sums) - 1, len(messages)):
            self.add(messages[index])

    @property
    def units(self) -> int:
        return self.fixed + sum(self.head) + self.sums[-1]
