"""The one place where work that asks a model is run: limits, metering and progress live here.

Steps of the work that burn CPU run in a worker thread, so that the event loop stays free. Cancelling closes the
work and leaves nothing behind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import anyio
import anyio.to_thread

from ..calls import Answer, Failure, Limits, Model, ModelCall, Notice, NoticeKind, Reply, Steps
from ..models import keep_trying, overflowed_silently, reads
from ..tokens import Usage
from .replay import NOBODY

log = logging.getLogger("holdfast")
R = TypeVar("R")
Notify = Callable[[Notice], object]


class Meter:
    """What the calls of one compaction came to."""

    def __init__(self) -> None:
        self.calls = 0
        self.usage: list[Usage] = []
        self.model: str | None = None

    def take(self, reply: Reply, name: str) -> None:
        self.model = reply.model or name
        if reply.usage is not None:
            self.usage.append(reply.usage)


class _Done(NamedTuple, Generic[R]):
    result: R


async def drive(
    work: Steps[R],
    model: Model | None,
    limits: Limits,
    notify: Notify | None = None,
    meter: Meter | None = None,
) -> R:
    """Run work to its end, asking the model whatever it asks."""
    questions = _Questions(model, limits, notify, meter or Meter())
    try:
        step: tuple[ModelCall, ...] | _Done[R] = await in_thread(partial(_advance, work, None))
        while not isinstance(step, _Done):
            answers = await questions.ask(step)
            step = await in_thread(partial(_advance, work, answers))
        result: R = step.result
        return result
    finally:
        with suppress(ValueError):  # cancelled while it was running: it ends by itself, and nobody listens
            work.close()


async def in_thread(work: Callable[[], R]) -> R:
    """Work that burns CPU, off the event loop; who is cancelled does not wait for it."""
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


def _advance(work: Steps[R], answers: tuple[Answer, ...] | None) -> tuple[ModelCall, ...] | _Done[R]:
    """The next questions, or the result. `StopIteration` must not leave a thread."""
    try:
        return next(work) if answers is None else work.send(answers)
    except StopIteration as end:
        return _Done(end.value)


class _Questions:
    """All the calls of one compaction: how many there were, and until when there may be more."""

    def __init__(self, model: Model | None, limits: Limits, notify: Notify | None, meter: Meter) -> None:
        self.model, self.limits, self.notify, self.meter = model, limits, notify, meter
        self._deadline = anyio.current_time() + limits.deadline
        self._window = reads(model)
        self._slots = anyio.CapacityLimiter(limits.concurrency)

    async def ask(self, calls: tuple[ModelCall, ...]) -> tuple[Answer, ...]:
        """The answers to one batch, in its order."""
        answers: list[Answer] = [NOBODY] * len(calls)

        async def one(place: int, call: ModelCall) -> None:
            async with self._slots:
                answers[place] = await self._answer(call)

        async with anyio.create_task_group() as group:
            for place, call in enumerate(calls):
                group.start_soon(one, place, call)
        return tuple(answers)

    async def _answer(self, call: ModelCall) -> Answer:
        if self.model is None:
            return NOBODY
        if self.meter.calls >= self.limits.max_calls:
            return Failure("call_budget", f"one compaction makes at most {self.limits.max_calls} calls")
        self.meter.calls += 1
        ask, tell = partial(self._ask_model, self.model, call), partial(self._tell, call, self.meter.calls)
        answer = await keep_trying(ask, self.model.name, self.limits, self._deadline, tell)
        if isinstance(answer, Reply):
            self.meter.take(answer, self.model.name)
        return answer

    async def _ask_model(self, model: Model, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        answer = await model(call, on_delta)
        if isinstance(answer, Reply) and self._window and overflowed_silently(answer, self._window):
            return Failure("overflow", "it read more than its window holds", window=self._window)
        return answer

    def _tell(
        self,
        call: ModelCall,
        number: int,
        kind: NoticeKind,
        attempt: int,
        *,
        text: str = "",
        characters: int = 0,
        seconds: float = 0.0,
    ) -> None:
        if self.notify is None:
            return
        try:
            self.notify(Notice(kind, call.purpose, number, text, characters, attempt, seconds))
        except Exception:
            log.exception("what was to hear of the progress broke")
