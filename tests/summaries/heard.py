"""Work that asks a model, run on given answers, with all that it asked."""

from __future__ import annotations

from typing import Any, TypeVar

from holdfast import ModelCall, replay
from holdfast.calls import Answer, Steps

R = TypeVar("R")


def heard(work: Steps[R], *answers: Answer | str) -> tuple[R, list[ModelCall]]:
    """What it comes to, and the calls that it made."""
    calls: list[ModelCall] = []

    def listening() -> Steps[R]:
        given: Any = None
        while True:
            try:
                batch = work.send(given)
            except StopIteration as end:
                result: R = end.value
                return result
            calls.extend(batch)
            given = yield batch

    return replay(listening(), answers), calls
