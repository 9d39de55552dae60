"""The connections of one event loop: opened when they are needed, kept, and replaced when they break."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ...errors import HoldfastError, StoreClosed
from .address import Address
from .trouble import remedy_for

log = logging.getLogger("holdfast.stores.postgres")

T = TypeVar("T")
Work = Callable[[Any, bool], Awaitable[T]]
"""What to do with a connection. True: an earlier try broke off, and nobody knows whether it was done."""

LONGEST_PAUSE = 1.0


class Connections:
    """At most so many at once; whoever comes later waits.

    asyncpg has a pool of its own, which starts a task for every connection that is given back: that takes as long
    as half an append.
    """

    def __init__(self, address: Address, connect: Callable[[], Awaitable[Any]], most: int, patience: float) -> None:
        self._address = address
        self._connect = connect
        self._patience = patience
        self._free = asyncio.Semaphore(most)
        self._resting: list[Any] = []
        self._busy: set[Any] = set()
        self._closed = False

    async def run(self, work: Work[T]) -> T:
        """Do it. What a broken connection or a lost race undid is tried again, for as long as patience lasts."""
        failed, unsure, pause = 0.0, False, 0.0
        while True:
            async with self._free:
                connection = None
                try:
                    connection = await self._take()
                    done = await work(connection, unsure)
                except Exception as error:
                    remedy = None if isinstance(error, HoldfastError) else remedy_for(error, connection)
                    self._let_go(connection, keep=remedy != "reconnect" and not isinstance(error, TimeoutError))
                    if remedy == "reconnect":
                        self._forget()
                    if self._closed:
                        raise StoreClosed from None
                    if remedy is None:
                        raise error if isinstance(error, HoldfastError) else self._address.clear(error) from error
                    unsure = unsure or (remedy == "reconnect" and connection is not None)
                    problem: Exception = error
                except BaseException:
                    self._let_go(connection, keep=False)
                    raise
                else:
                    self._let_go(connection, keep=True)
                    return done
            if not failed:
                failed = time.monotonic()
                log.warning("%s: trying again after %s", self._address, type(problem).__name__)
            elif time.monotonic() + pause > failed + self._patience:
                raise self._address.unreachable(problem, self._patience) from problem
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2 or 0.02)

    async def _take(self) -> Any:
        if self._closed:
            raise StoreClosed
        while self._resting:
            connection = self._resting.pop()
            if not connection.is_closed():
                break
        else:
            connection = await self._connect()
        self._busy.add(connection)
        return connection

    def _let_go(self, connection: Any, *, keep: bool) -> None:
        if connection is None:
            return
        self._busy.discard(connection)
        if keep and not self._closed and not connection.is_closed():
            self._resting.append(connection)
        else:
            connection.terminate()

    def _forget(self) -> None:
        """After a restart of the server none of those that rest is good."""
        while self._resting:
            self._resting.pop().terminate()

    async def close(self) -> None:
        self._closed = True
        while self._resting:
            try:
                await self._resting.pop().close(timeout=1.0)
            except Exception as error:
                log.debug("A connection did not close in good order: %s", type(error).__name__)
        self.terminate()

    def terminate(self) -> None:
        self._closed = True
        self._forget()
        for connection in list(self._busy):
            connection.terminate()
