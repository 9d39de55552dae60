"""Serial job queue of a chat, and the buffer for input typed during a compaction."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

from ..errors import HoldfastError, plain_reason
from .state import Activity

log = logging.getLogger("holdfast")
QueueJob = Callable[[], Awaitable[None]]
T = TypeVar("T")


class PendingResult(Generic[T]):
    """A job whose result or error can be awaited."""

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._finished = anyio.Event()
        self._value: list[T | HoldfastError] = []

    async def __call__(self) -> None:
        """Runs the job. Errors are raised in `wait`, not here."""
        try:
            self._value.append(await self._work())
        except HoldfastError as problem:
            self._value.append(problem)
        except Exception as problem:
            log.exception("queued job failed")
            self._value.append(HoldfastError(f"It failed, and nothing was changed: {plain_reason(problem)}."))
        self._finished.set()

    async def wait(self) -> T:
        await self._finished.wait()
        if isinstance(value := self._value[0], HoldfastError):
            raise value
        return value


class WorkQueue:
    """Runs jobs one at a time in the order they were added; urgent jobs go to the front."""

    def __init__(self) -> None:
        self.activity: Activity = "idle"
        """Activity of the current job; session changes are short and count as idle."""
        self._jobs: deque[tuple[Activity, QueueJob]] = deque()
        self._job_added = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()

    @property
    def idle(self) -> bool:
        return self._idle.is_set()

    def add(self, job: QueueJob, activity: Activity = "idle", *, urgent: bool = False) -> None:
        (self._jobs.appendleft if urgent else self._jobs.append)((activity, job))
        self._idle = anyio.Event() if self._idle.is_set() else self._idle
        self._job_added.set()

    async def submit(self, work: Callable[[], Awaitable[T]], activity: Activity = "idle", *, urgent: bool = False) -> T:
        """Adds a job and waits for its result."""
        promise = PendingResult(work)
        self.add(promise, activity, urgent=urgent)
        return await promise.wait()

    async def wait_idle(self) -> None:
        await self._idle.wait()

    async def run(self) -> None:
        """Runs jobs until cancelled."""
        while True:
            while self._jobs:
                self.activity, job = self._jobs.popleft()
                try:
                    await job()
                finally:
                    self.activity = "idle"
            self._idle.set()
            self._job_added = anyio.Event()
            await self._job_added.wait()


class InputBuffer:
    """Holds texts in order while closed; `drain` reopens it."""

    def __init__(self) -> None:
        self.is_open = True
        self._held: list[str] = []

    def __len__(self) -> int:
        return len(self._held)

    def push(self, text: str) -> int:
        """Appends a text; returns how many are buffered."""
        self._held.append(text)
        return len(self._held)

    def drain(self) -> list[str]:
        """Reopens the buffer and returns its texts in order."""
        self.is_open = True
        held, self._held = self._held, []
        return held
