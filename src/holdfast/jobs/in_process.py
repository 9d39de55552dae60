"""The queue inside this process: a task for each session, and nothing that would have to outlive it.

The need to compact is a property of the log. What a crash leaves undone, the next sweep finds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Protocol, Self

import anyio
from anyio.abc import TaskGroup

from .job import Job, JobFailed, QueueError
from .settings import QueueSettings


class DoesJobs(Protocol):
    """`Work`, or whatever else raises nothing but JobFailed."""

    def __call__(self, job: Job, *, tries_again: bool) -> Awaitable[object]: ...


class InProcessQueue:
    """Runs its jobs itself, inside its `async with` block."""

    def __init__(self, work: DoesJobs, settings: QueueSettings | None = None) -> None:
        self._work = work
        self._settings = settings or QueueSettings()
        self._waiting: set[str] = set()
        self._running: set[str] = set()
        self._follow_ups: set[str] = set()
        self._group: TaskGroup | None = None
        """None while it takes no jobs."""

    async def __aenter__(self) -> Self:
        self._slots, self._idle = anyio.Semaphore(self._settings.concurrency), anyio.Event()
        self._beside = anyio.CancelScope()
        self._group = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What runs may end within the grace time; what waits is dropped, and found again by a sweep."""
        group, self._group = self._group, None
        assert group is not None
        self._beside.cancel()
        try:
            if problem is None and self._running:
                with anyio.move_on_after(self._settings.grace):
                    await self._idle.wait()
        finally:
            group.cancel_scope.cancel()
            await group.__aexit__(None, None, None)

    async def enqueue(self, job: Job) -> None:
        if self._group is None:
            raise QueueError("This queue is closed: use it inside its `async with` block.")
        if job.key in self._running:
            self._follow_ups.add(job.key)
        elif job.key not in self._waiting:
            self._waiting.add(job.key)
            self._group.start_soon(self._run, job)

    def run_beside(self, task: Callable[[float], Awaitable[object]], every: float) -> None:
        """Something that lasts as long as jobs are taken, as a sweep does."""
        assert self._group is not None
        self._group.start_soon(self._run_beside, task, every)

    async def _run_beside(self, task: Callable[[float], Awaitable[object]], every: float) -> None:
        with self._beside:
            await task(every)

    async def _run(self, job: Job) -> None:
        attempt = 1
        while attempt:
            attempt = await self._attempt(job, attempt)
            if attempt > 1:
                await anyio.sleep(self._settings.pause(attempt - 1))

    async def _attempt(self, job: Job, attempt: int) -> int:
        """The number of the attempt that is to follow; 0 for none. A follow-up begins at 1 again."""
        key, again, follows = job.key, False, False
        async with self._slots:
            self._waiting.discard(key)
            if self._group is None:
                return 0
            self._running.add(key)
            try:
                again = await self._tried(job, attempt)
            finally:
                self._running.discard(key)
                follows = key in self._follow_ups
                self._follow_ups.discard(key)
                if not self._running and self._group is None:
                    self._idle.set()
        if not (again or follows):
            return 0
        self._waiting.add(key)
        return attempt + 1 if again else 1

    async def _tried(self, job: Job, attempt: int) -> bool:
        """Is there to be another attempt?"""
        more = attempt < self._settings.attempts
        try:
            await self._work(job, tries_again=more)
        except JobFailed as problem:
            return more and problem.again
        return False
