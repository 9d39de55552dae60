"""One thing after the other: prompts, and compactions that step in front of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import anyio

from ..errors import HoldfastError

Job = Callable[[], Awaitable[None]]
T = TypeVar("T")


class Promise(Generic[T]):
    """What a job will have come to, for somebody who waits for it: a value, or what went wrong."""

    def __init__(self) -> None:
        self._settled = anyio.Event()
        self._value: list[T | HoldfastError] = []

    def keep(self, value: T | HoldfastError) -> None:
        self._value.append(value)
        self._settled.set()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """A problem in here is the one who waits's."""
        try:
            yield
        except HoldfastError as problem:
            self.keep(problem)

    async def wait(self) -> T:
        await self._settled.wait()
        if isinstance(value := self._value[0], HoldfastError):
            raise value
        return value


class Jobs:
    """Work that a conversation does one at a time, in the order in which it was asked for unless it is urgent."""

    def __init__(self) -> None:
        self._waiting: deque[Job] = deque()
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()

    @property
    def idle(self) -> bool:
        return self._idle.is_set()

    def add(self, job: Job, *, urgent: bool = False) -> None:
        (self._waiting.appendleft if urgent else self._waiting.append)(job)
        self._idle = anyio.Event() if self._idle.is_set() else self._idle
        self._wake.set()

    async def wait_idle(self) -> None:
        await self._idle.wait()

    async def work(self) -> None:
        """Do what comes, until cancelled."""
        while True:
            while self._waiting:
                await self._waiting.popleft()()
            self._idle.set()
            self._wake = anyio.Event()
            await self._wake.wait()
