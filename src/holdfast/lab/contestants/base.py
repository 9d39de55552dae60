"""Contestant type, its input and result, and text fitting helpers."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from ...messages import Message, check, decode_all, user
from ...tokens import Estimator

ContestantFamily = Literal["simple", "peer", "holdfast", "real"]


class ContestantTask(msgspec.Struct, frozen=True):
    """Input for every contestant besides the messages."""

    format: str
    budget: int
    estimator: Estimator
    summary: str | None = None
    """The summary that the tool wrote at this place."""


class ContestantResult(msgspec.Struct, frozen=True):
    """A compacted context, and state for the next round."""

    messages: list[Message]
    seconds: float
    payloads: list[Any] = []
    """Messages in the contestant's wire format; empty for contestants that return plain text."""
    problems: int | None = None
    """Number of wire format violations; None for plain text."""
    checkpoint: Any = None


CompactFunction = Callable[[Sequence[Message], ContestantTask, ContestantResult | None], ContestantResult]
"""Takes new messages, the task, and the previous round's result."""


class Contestant(msgspec.Struct, frozen=True):
    """A compaction method with its display name."""

    name: str
    family: ContestantFamily
    compact: CompactFunction
    about: str
    needs_summary: bool = False
    """Only measured where the tool wrote a summary, at its size."""


class Stopwatch:
    """Measures seconds since its creation."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started


def result_from_payloads(
    payloads: Sequence[Any], format: str, seconds: float, checkpoint: Any = None
) -> ContestantResult:
    """Validates and decodes a result in a wire format. A trailing call is allowed: some cuts split a batch of calls."""
    messages, _ = decode_all(payloads, format)
    problems = check(payloads, format)
    return ContestantResult(messages, seconds, list(payloads), len(problems), checkpoint)


def count_message_tokens(messages: Sequence[Message], estimator: Estimator) -> int:
    return estimator.tokens(sum(map(estimator.measure, messages)))


def fits(text: str, budget: int, estimator: Estimator) -> bool:
    return estimator.tokens(estimator.measure(user(text))) <= budget


def fitting_tail(text: str, budget: int, estimator: Estimator) -> str:
    """The longest tail of a text within the budget."""
    length = largest_allowed(len(text), lambda n: fits(text[len(text) - n :], budget, estimator))
    return text[len(text) - length :]


def fitting_head(text: str, budget: int, estimator: Estimator) -> str:
    """The longest head of a text within the budget."""
    return text[: largest_allowed(len(text), lambda n: fits(text[:n], budget, estimator))]


def largest_allowed(limit: int, allowed: Callable[[int], bool]) -> int:
    """Largest allowed number up to the limit, for a monotonic condition; doubling, then bisection."""
    high = 1
    while high < limit and allowed(high):
        high *= 2
    high = min(high, limit)
    return max(0, bisect_right(range(high + 1), False, key=lambda n: n > 0 and not allowed(n)) - 1)
