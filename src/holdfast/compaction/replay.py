"""Work that asks a model, run without one: from given answers, or from none at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import TypeVar

from ..calls import Answer, Failure, Reply, Steps

R = TypeVar("R")

NOBODY = Failure("no_model", "no model was given to ask")


def replay(work: Steps[R], answers: Iterable[Answer | str]) -> R:
    """Run work to its end on these answers, one a call: all that a test of a strategy needs.

    Where they run out, nobody answers.
    """
    given = iter(answers)
    try:
        calls = next(work)
        while True:
            calls = work.send(tuple(_next(given) for _ in calls))
    except StopIteration as done:
        result: R = done.value
        return result


def without_model(work: Steps[R]) -> R:
    """Run work that may not need a model; where it asks one, nobody answers."""
    return replay(work, repeat(NOBODY))


def _next(given: Iterator[Answer | str]) -> Answer:
    answer = next(given, NOBODY)
    return Reply(answer) if isinstance(answer, str) else answer
