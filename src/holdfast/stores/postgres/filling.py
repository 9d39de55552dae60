"""Who fills the search index: a task of each event loop that appends, as soon as it is quiet."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from ...errors import StoreClosed
from . import index
from .connections import Connections

log = logging.getLogger("holdfast.stores.postgres")

QUIET_SECONDS = 0.05
"""How long nothing must have been appended before the index is filled."""
MOST_BEHIND = 2_000
"""Appends after which it is filled even if it is never quiet."""
BUSY_SECONDS = 0.2
"""How long to wait for somebody who must be alone."""


class Filling:
    """Woken by appends; asleep while there is nothing to do."""

    def __init__(self, connections: Connections, tenant: str) -> None:
        self._connections = connections
        self._tenant = tenant
        self._task: asyncio.Task[None] | None = None
        self._appended = 0

    def wake(self) -> None:
        """Something was appended, or found waiting."""
        self._appended += 1
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._fill(), name="holdfast-index")

    async def _fill(self) -> None:
        try:
            while self._appended:
                await self._quiet()
                while (left := await self._connections.run(lambda c, _: index.fill(c, self._tenant))) != "done":
                    if left == "busy":
                        await asyncio.sleep(BUSY_SECONDS)
        except StoreClosed:
            pass
        except Exception as error:
            log.warning("The search index could not be brought up to date, will try again: %s", error)

    async def _quiet(self) -> None:
        seen = 0
        while seen < self._appended < MOST_BEHIND:
            seen = self._appended
            await asyncio.sleep(QUIET_SECONDS)
        self._appended = 0

    async def stop(self) -> None:
        """What is left, the next who appends or searches will do."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
