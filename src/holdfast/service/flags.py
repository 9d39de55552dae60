"""The leased flag of a session that is being compacted, in stores that have one: whoever asks can wait for it (W13).

It says that somebody is at work, so that nobody pays for two summaries of the same. That a compaction is committed
once is not its business: compare-and-set sees to that, with a flag or without.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from ..errors import StoreError
from ..events import new_id
from ..stores import Log
from ..stores.log import Lease

log = logging.getLogger("holdfast")
LEASE = 30.0
"""Seconds for which a flag stands unless it is renewed: so long does a dead worker keep others waiting."""
_LOWERING = 5.0
"""Seconds for lowering a flag, whatever was cancelled; after that it expires."""


class Busy(Exception):
    """Somebody else has the flag."""


class Flag:
    """One compaction's own: raised when there is something to do, renewed while it is done."""

    def __init__(
        self, lease: Lease | None, session_id: str, seconds: float, group: TaskGroup, *, insists: bool
    ) -> None:
        self._lease = lease
        self._session_id = session_id
        self._seconds = seconds
        self._insists = insists
        self._group = group
        self._owner = new_id()
        self._tried = False
        """Whoever is cancelled while it goes up does not know whether it did."""

    async def hoist(self) -> None:
        """Busy where somebody else has it and this one insists on it; else it goes on without."""
        if self._lease is None:
            return
        self._tried = True
        try:
            up = await self._lease.take(self._session_id, self._owner, self._seconds)
        except StoreError as problem:
            log.warning("the flag of session %s could not be raised: %s", self._session_id, problem)
            return
        if up:
            self._group.start_soon(self._renew, self._lease)
        elif self._insists:
            raise Busy

    async def _renew(self, lease: Lease) -> None:
        """Until it is lost to somebody else, as after a pause of the whole process."""
        up = True
        while up:
            await anyio.sleep(self._seconds / 3)
            try:
                up = await lease.take(self._session_id, self._owner, self._seconds)
            except StoreError as problem:
                log.warning("the flag of session %s was not renewed: %s", self._session_id, problem)

    async def lower(self) -> None:
        if self._lease is None or not self._tried:
            return
        try:
            with anyio.move_on_after(_LOWERING, shield=True):
                await self._lease.release(self._session_id, self._owner)
        except StoreError as problem:
            log.warning("the flag of session %s was not lowered, and will expire: %s", self._session_id, problem)


class Flags:
    """Those of a store; where it has none, nothing is ever flagged."""

    def __init__(self, store: Log, seconds: float) -> None:
        self._lease = store if isinstance(store, Lease) else None
        self._seconds = seconds

    @asynccontextmanager
    async def flag(self, session_id: str, *, insists: bool, wanted: bool = True) -> AsyncIterator[Flag]:
        """One for a compaction; lowered when the block ends, however it does."""
        failure: Exception | None = None
        flag: Flag | None = None
        try:
            async with anyio.create_task_group() as group:
                flag = Flag(self._lease if wanted else None, session_id, self._seconds, group, insists=insists)
                try:
                    yield flag
                except Exception as problem:
                    failure = problem  # raised again as itself: a group of tasks would wrap it
                finally:
                    group.cancel_scope.cancel()
        finally:
            if flag is not None:
                await flag.lower()  # when nobody is about to renew it any more
        if failure is not None:
            raise failure

    async def down(self, session_id: str) -> None:
        """Wait until it is: a dead worker's flag falls when its lease ends."""
        if self._lease is None:
            return
        while (left := await self._lease.held(session_id)) is not None:
            await self._lease.changed(session_id, max(left, 0.01))
