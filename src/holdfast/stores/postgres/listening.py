"""One connection that hears of flags which were lowered, for all who wait in one event loop (W13)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio

log = logging.getLogger("holdfast.stores.postgres")

CHANNEL = "holdfast_lease"
A_WHILE = 5.0
"""How long somebody waits for word before looking again: a connection can die without anybody noticing."""
A_MOMENT = 0.2
"""The same, where nothing can be heard at all."""


class Listening:
    """Opened by the first who waits; where it breaks, all who wait look for themselves, and the next opens it anew."""

    def __init__(self, connect: Callable[[], Awaitable[Any]]) -> None:
        self._connect = connect
        self._connection: Any = None
        self._opening = asyncio.Lock()
        self._waiting: dict[str, list[anyio.Event]] = {}

    async def hears(self) -> float:
        """See that word is heard from now on; says how long it is wise to wait for it."""
        async with self._opening:
            if self._connection is not None and not self._connection.is_closed():
                return A_WHILE
            try:
                connection = await self._connect()
                connection.add_termination_listener(self._tell_all)
                await connection.add_listener(CHANNEL, self._told)
            except Exception as error:
                log.warning("Nothing is heard of flags, so they are looked at now and then: %s", type(error).__name__)
                return A_MOMENT
            self._connection = connection
            return A_WHILE

    @contextmanager
    def word_of(self, key: int) -> Iterator[anyio.Event]:
        """Set as soon as the flag of this session was lowered."""
        word = anyio.Event()
        waiting = self._waiting.setdefault(str(key), [])
        waiting.append(word)
        try:
            yield word
        finally:
            waiting.remove(word)
            if not waiting:
                self._waiting.pop(str(key), None)

    def _told(self, connection: Any, process: int, channel: str, payload: str) -> None:
        for word in self._waiting.get(payload, ()):
            word.set()

    def _tell_all(self, connection: Any) -> None:
        for waiting in self._waiting.values():
            for word in waiting:
                word.set()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()
