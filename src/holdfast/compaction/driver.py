"""Runs strategies that call a model: limits, retries, metering and progress notices.

A strategy is a generator that yields batches of model calls. Its CPU-bound steps run in a worker thread, so that the
event loop stays responsive. Cancelling closes the generator and leaves nothing behind.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import repeat
from typing import Any, Generic, NamedTuple, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import current_token

from ..models import call_with_retry, context_window_of, overflowed_silently
from ..models.calls import Answer, Failure, Limits, Model, ModelCall, Notice, NoticeKind, Reply, Steps
from ..tokens import Usage

R = TypeVar("R")
NO_MODEL = Failure("no_model", "no model was given to ask")


def replay(work: Steps[R], answers: Iterable[Answer | str]) -> R:
    """Runs work on prepared answers, one per call: the test double for a strategy.

    Calls beyond the last answer fail with `no_model`.
    """
    given = iter(answers)
    try:
        calls = next(work)
        while True:
            calls = work.send(tuple(_next_answer(given) for _ in calls))
    except StopIteration as done:
        result: R = done.value
        return result


def without_model(work: Steps[R]) -> R:
    """Runs work without a model: every call fails with `no_model`."""
    return replay(work, repeat(NO_MODEL))


def _next_answer(given: Iterator[Answer | str]) -> Answer:
    answer = next(given, NO_MODEL)
    return Reply(answer) if isinstance(answer, str) else answer


log = logging.getLogger("holdfast")
Notify = Callable[[Notice], object]
"""Called with each progress notice."""


class Meter:
    """Counts the model calls of one operation and collects their token usage."""

    def __init__(self) -> None:
        self.calls = 0
        self.usage: list[Usage] = []
        self.model: str | None = None

    def record(self, reply: Reply, name: str) -> None:
        """Adds one reply and its usage; `name` is the model's name if the reply has none."""
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
    """Runs work to its end and passes each batch of calls to the model."""
    caller = _ModelCaller(model, limits, notify, meter or Meter())
    try:
        step: tuple[ModelCall, ...] | _Done[R] = await in_thread(partial(_advance, work, None))
        while not isinstance(step, _Done):
            answers = await caller.call_all(step)
            step = await in_thread(partial(_advance, work, answers))
        result: R = step.result
        return result
    finally:
        with suppress(ValueError):  # cancelled while a step runs in its thread: that step ends by itself
            work.close()


async def in_thread(work: Callable[[], R]) -> R:
    """Runs CPU-bound work off the event loop; on cancellation, does not wait for it."""
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


def _advance(work: Steps[R], answers: tuple[Answer, ...] | None) -> tuple[ModelCall, ...] | _Done[R]:
    """Returns the next calls or the result; `StopIteration` may not cross a thread boundary."""
    try:
        return next(work) if answers is None else work.send(answers)
    except StopIteration as end:
        return _Done(end.value)


class _ModelCaller:
    """Makes the model calls of one operation within its limits: number, deadline, concurrency."""

    def __init__(self, model: Model | None, limits: Limits, notify: Notify | None, meter: Meter) -> None:
        self.model, self.limits, self.notify, self.meter = model, limits, notify, meter
        self._deadline = anyio.current_time() + limits.deadline
        self._slots = anyio.CapacityLimiter(limits.concurrency)

    async def call_all(self, calls: tuple[ModelCall, ...]) -> tuple[Answer, ...]:
        """Returns the answers to one batch, in its order."""
        answers: list[Answer] = [NO_MODEL] * len(calls)

        async def run_one(place: int, call: ModelCall) -> None:
            async with self._slots:
                answers[place] = await self._call(call)

        async with anyio.create_task_group() as group:
            for place, call in enumerate(calls):
                group.start_soon(run_one, place, call)
        return tuple(answers)

    async def _call(self, call: ModelCall) -> Answer:
        if self.model is None:
            return NO_MODEL
        if self.meter.calls >= self.limits.max_calls:
            return Failure("call_budget", f"the limit of {self.limits.max_calls} model calls per compaction is reached")
        self.meter.calls += 1
        attempt, observe = partial(self._attempt, self.model, call), partial(self._notify, call, self.meter.calls)
        answer = await call_with_retry(attempt, self.model.name, self.limits, self._deadline, observe)
        if isinstance(answer, Reply):
            self.meter.record(answer, self.model.name)
        return answer

    async def _attempt(self, model: Model, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        answer = await model(call, on_delta)
        window = context_window_of(model) if isinstance(answer, Reply) else None
        if isinstance(answer, Reply) and window and overflowed_silently(answer, window):
            return Failure("overflow", "the prompt was larger than the model's window", window=window)
        return answer

    def _notify(
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
            log.exception("the progress listener failed")


class Abort:
    """Abort handle: pass it to a compaction and call it to stop; the outcome is `aborted` and nothing is changed."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._aborted = False
        self._listeners: set[Callable[[], object]] = set()

    @property
    def aborted(self) -> bool:
        """Whether it was called."""
        return self._aborted

    def __call__(self) -> None:
        """Aborts now. Thread-safe and idempotent."""
        with self._lock:
            self._aborted = True
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    @contextmanager
    def scope(self) -> Iterator[anyio.CancelScope]:
        """Cancels the code inside when the handle is called from any thread."""
        native: Any = current_token().native_token  # asyncio's loop, or trio's token
        call_soon = getattr(native, "call_soon_threadsafe", None) or native.run_sync_soon
        with anyio.CancelScope() as scope:

            def cancel() -> None:
                call_soon(scope.cancel)

            with self._lock:
                self._listeners.add(cancel)
                if self._aborted:
                    scope.cancel()
            try:
                yield scope
            finally:
                with self._lock:
                    self._listeners.discard(cancel)


class SummarizerRun:
    """The model calls of one operation: the model, the limits, and the meter."""

    def __init__(
        self,
        model: Model | None = None,
        limits: Limits | None = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
    ) -> None:
        self.model = model
        self.limits = limits or Limits()
        self.notify = notify
        self.abort = abort or Abort()
        self.meter = Meter()

    async def drive(self, work: Steps[R]) -> R:
        """Runs work to its end, calling the model for whatever it asks."""
        return await drive(work, self.model, self.limits, self.notify, self.meter)
