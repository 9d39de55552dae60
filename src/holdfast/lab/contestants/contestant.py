"""What takes part in the lab: anything that makes a history smaller."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from ...boundaries import check
from ...messages import Message, decode_all
from ...tokens import Estimator

Family = Literal["simple", "peer", "holdfast", "real"]


class Job(msgspec.Struct, frozen=True):
    """What all contestants are given beside the messages: one wire format, one limit, one ruler."""

    format: str
    budget: int
    estimator: Estimator


class Compacted(msgspec.Struct, frozen=True):
    """What a contestant leaves, and what it wants to have back next time."""

    messages: list[Message]
    seconds: float
    payloads: list[Any] = []
    """In the wire format of the contestant; empty for those that give one block of text."""
    problems: int | None = None
    """What the wire format would refuse; None where there is only text."""
    checkpoint: Any = None


Compacting = Callable[[Sequence[Message], Job, Compacted | None], Compacted]
"""New messages, the job, and what the last compaction left of all that was before them."""


class Contestant(msgspec.Struct, frozen=True):
    """A way to compact, by the name that people know it by."""

    name: str
    family: Family
    compact: Compacting
    about: str


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started


def from_payloads(payloads: Sequence[Any], format: str, seconds: float, checkpoint: Any = None) -> Compacted:
    """A result in a wire format, checked by its rules. A call may stand last: some cuts go through a batch of calls."""
    messages, _ = decode_all(payloads, format)
    problems = check(payloads, format)
    return Compacted(messages, seconds, list(payloads), len(problems), checkpoint)


def tokens_of(messages: Sequence[Message], estimator: Estimator) -> int:
    return estimator.tokens(sum(map(estimator.measure, messages)))
