"""One thing after the other: prompts, moves to other sessions, and compactions that step in front of them."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

from ..errors import HoldfastError
from .state import Activity

log = logging.getLogger("holdfast")
Job = Callable[[], Awaitable[None]]
T = TypeVar("T")


class Promise(Generic[T]):
    """What a job will have come to, for somebody who waits for it: a value, or what went wrong."""

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._settled = anyio.Event()
        self._value: list[T | HoldfastError] = []

    async def __call__(self) -> None:
        """Do the work. What breaks is a problem of the one who waits, and of nobody else's."""
        try:
            self._value.append(await self._work())
        except HoldfastError as problem:
            self._value.append(problem)
        except Exception as problem:
            log.exception("a part of the conversation broke")
            self._value.append(HoldfastError(f"It broke ({type(problem).__name__}: {problem}): nothing has changed."))
        self._settled.set()

    async def wait(self) -> T:
        await self._settled.wait()
        if isinstance(value := self._value[0], HoldfastError):
            raise value
        return value


class Worklist:
    """Work that a conversation does one at a time, in the order in which it was asked for unless it is urgent."""

    def __init__(self) -> None:
        self.activity: Activity = "idle"
        """What the job that is done now counts as; moves to another session are done in no time, and count as none."""
        self._waiting: deque[tuple[Activity, Job]] = deque()
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()

    @property
    def idle(self) -> bool:
        return self._idle.is_set()

    def add(self, job: Job, activity: Activity = "idle", *, urgent: bool = False) -> None:
        (self._waiting.appendleft if urgent else self._waiting.append)((activity, job))
        self._idle = anyio.Event() if self._idle.is_set() else self._idle
        self._wake.set()

    async def result_of(
        self, work: Callable[[], Awaitable[T]], activity: Activity = "idle", *, urgent: bool = False
    ) -> T:
        """Add a job, and wait for what it comes to."""
        promise = Promise(work)
        self.add(promise, activity, urgent=urgent)
        return await promise.wait()

    async def wait_idle(self) -> None:
        await self._idle.wait()

    async def work(self) -> None:
        """Do what comes, until cancelled."""
        while True:
            while self._waiting:
                self.activity, job = self._waiting.popleft()
                try:
                    await job()
                finally:
                    self.activity = "idle"
            self._idle.set()
            self._wake = anyio.Event()
            await self._wake.wait()
