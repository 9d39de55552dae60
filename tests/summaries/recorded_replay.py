"""Replays work with given answers, and records its calls."""

from __future__ import annotations

from typing import Any, TypeVar

from holdfast.compaction import replay
from holdfast.models import ModelCall
from holdfast.models.calls import Answer, Steps

R = TypeVar("R")


def replay_recorded(work: Steps[R], *answers: Answer | str) -> tuple[R, list[ModelCall]]:
    """Returns the result of the work and the calls that it made."""
    calls: list[ModelCall] = []

    def recording() -> Steps[R]:
        given: Any = None
        while True:
            try:
                batch = work.send(given)
            except StopIteration as end:
                result: R = end.value
                return result
            calls.extend(batch)
            given = yield batch

    return replay(recording(), answers), calls
