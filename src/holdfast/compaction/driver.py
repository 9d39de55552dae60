"""The one place where work that asks a model is run: retries, time limits, metering and progress live here.

Steps of the work that burn CPU run in a worker thread, so that the event loop stays free. Cancelling closes the
work and leaves nothing behind.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import anyio
import anyio.to_thread

from ..calls import Answer, Failure, Limits, Model, ModelCall, Notice, NoticeKind, Reply, Steps
from ..models import overflowed_silently, reads, scrub
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
        number, wait = self.meter.calls, self.limits.backoff
        for attempt in range(1, self.limits.attempts + 1):
            started = time.perf_counter()
            answer = await self._attempt(self.model, call, number, attempt)
            seconds = time.perf_counter() - started
            if isinstance(answer, Reply):
                self.meter.take(answer, self.model.name)
                self._tell("answered", call, number, attempt, characters=len(answer.text), seconds=seconds)
                return answer
            self._tell("failed", call, number, attempt, text=f"{answer.kind}: {answer.why}", seconds=seconds)
            usual = min(wait * random.uniform(0.75, 1.25), self.limits.longest_wait)  # noqa: S311
            pause = usual if answer.retry_after is None else answer.retry_after
            too_late = anyio.current_time() + pause >= self._deadline
            if not answer.may_pass or attempt == self.limits.attempts or pause > self.limits.longest_wait or too_late:
                return answer
            self._tell("waiting", call, number, attempt, text=answer.why, seconds=pause)
            await anyio.sleep(pause)
            wait *= 2
        raise AssertionError("the last attempt returns")

    async def _attempt(self, model: Model, call: ModelCall, number: int, attempt: int) -> Answer:
        """One try; every sign of life from the model renews its time."""
        limits, so_far = self.limits, 0
        self._tell("calling", call, number, attempt)

        def until() -> float:
            return min(anyio.current_time() + limits.timeout, self._deadline)

        with anyio.CancelScope(deadline=until()) as scope:

            def on_delta(text: str) -> None:
                nonlocal so_far
                so_far += len(text)
                scope.deadline = until()
                self._tell("delta", call, number, attempt, text=text, characters=so_far)

            try:
                answer = await model(call, on_delta)
                if isinstance(answer, Reply) and self._window and overflowed_silently(answer, self._window):
                    return Failure("overflow", "it read more than its window holds", window=self._window)
                return answer
            except Exception as problem:
                log.warning("the model %s raised %s", model.name, type(problem).__name__)
                return Failure("request", scrub(f"{type(problem).__name__}: {problem}"))
        late = anyio.current_time() >= self._deadline
        limit = f"all of it took over {limits.deadline:g} s" if late else f"no sign of life for {limits.timeout:g} s"
        return Failure("timeout", limit)

    def _tell(
        self,
        kind: NoticeKind,
        call: ModelCall,
        number: int,
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
