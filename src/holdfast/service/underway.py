"""Which compactions are running in this service, so that whoever wants to speak, or to compact, can wait (W13)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import anyio

Lane = tuple[str, str | None]
"""A session's id, and the lane in it."""

_within: ContextVar[frozenset[Lane]] = ContextVar("compactions that this task is a part of", default=frozenset())


class Underway:
    """It lasts as long as the work does, however that ends: nobody waits for one that died."""

    def __init__(self) -> None:
        self._running: dict[Lane, list[anyio.Event]] = {}

    def __contains__(self, lane: Lane) -> bool:
        return lane in self._running

    @contextmanager
    def compaction(self, lane: Lane) -> Iterator[None]:
        over, outside = anyio.Event(), _within.set(_within.get() | {lane})
        self._running.setdefault(lane, []).append(over)
        try:
            yield
        finally:
            self._running[lane].remove(over)
            if not self._running[lane]:
                del self._running[lane]
            over.set()
            _within.reset(outside)

    def within(self, lane: Lane) -> bool:
        """Does whoever asks belong to one, as its hooks and its model do?"""
        return lane in self._running and lane in _within.get()

    async def over(self, lane: Lane) -> bool:
        """Wait until none is running. False at once for who is a part of one: it would wait for itself."""
        while lane in self._running:
            if self.within(lane):
                return False
            await self._running[lane][0].wait()
        return True
