"""Which sessions are being compacted now: a registry in this process, and a lease in the store for other processes.

The lease saves the cost of two summaries of the same messages. It does not make commits safe: compare-and-set does,
with or without a lease.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

import anyio
from anyio.abc import TaskGroup

from ..context.events import new_id
from ..errors import StoreError
from ..io.processes import process_name
from ..stores import Log
from ..stores.base import Lease

log = logging.getLogger("holdfast")
Lane = tuple[str, str | None]
"""A session's id and a lane in it."""
LEASE_SECONDS = 30.0
"""How long a lease lasts unless it is renewed: others wait at most this long for a worker that died."""
_RELEASE_TIMEOUT = 5.0
"""Seconds to release a lease after a cancellation; then it expires by itself."""
_running_in: ContextVar[frozenset[Lane]] = ContextVar("compactions that this task is part of", default=frozenset())


class RunningCompactions:
    """Compactions running in this process; an entry ends with its work, however that ends."""

    def __init__(self) -> None:
        self._running: dict[Lane, list[anyio.Event]] = {}

    def __contains__(self, lane: Lane) -> bool:
        return lane in self._running

    @contextmanager
    def running(self, lane: Lane) -> Iterator[None]:
        over, outside = anyio.Event(), _running_in.set(_running_in.get() | {lane})
        self._running.setdefault(lane, []).append(over)
        try:
            yield
        finally:
            self._running[lane].remove(over)
            if not self._running[lane]:
                del self._running[lane]
            over.set()
            _running_in.reset(outside)

    def is_nested(self, lane: Lane) -> bool:
        """Whether the calling task is part of a compaction of this lane, as its hooks and its model are."""
        return lane in self._running and lane in _running_in.get()

    async def wait_idle(self, lane: Lane) -> bool:
        """Waits until none is running. Returns False at once inside one: it would wait for itself."""
        while lane in self._running:
            if self.is_nested(lane):
                return False
            await self._running[lane][0].wait()
        return True


class LeaseTaken(Exception):
    """Another process holds the lease."""


class CompactionLease:
    """The lease of one compaction: acquired when there is something to do, renewed while it is done."""

    def __init__(
        self, lease: Lease | None, session_id: str, seconds: float, group: TaskGroup, *, required: bool
    ) -> None:
        self._lease = lease
        self._session_id = session_id
        self._seconds = seconds
        self._required = required
        self._group = group
        self._owner = f"{new_id()}@{process_name()}"
        self._tried = False
        """A cancelled acquisition may have succeeded, so the lease is released anyway."""

    async def acquire(self) -> None:
        """Raises LeaseTaken if another process holds it and it is required; without it, the compaction proceeds."""
        if self._lease is None:
            return
        self._tried = True
        try:
            taken = await self._lease.take(self._session_id, self._owner, self._seconds)
        except StoreError as error:
            log.warning("the lease of session %s could not be acquired: %s", self._session_id, error)
            return
        if taken:
            self._group.start_soon(self._renew, self._lease)
        elif self._required:
            raise LeaseTaken

    async def _renew(self, lease: Lease) -> None:
        """Renews the lease until another process has taken it, as after a pause of the whole process."""
        held = True
        while held:
            await anyio.sleep(self._seconds / 3)
            try:
                held = await lease.take(self._session_id, self._owner, self._seconds)
            except StoreError as error:
                log.warning("the lease of session %s was not renewed: %s", self._session_id, error)

    async def release(self) -> None:
        if self._lease is None or not self._tried:
            return
        try:
            with anyio.move_on_after(_RELEASE_TIMEOUT, shield=True):
                await self._lease.release(self._session_id, self._owner)
        except StoreError as error:
            log.warning("the lease of session %s was not released and will expire: %s", self._session_id, error)


class CompactionLeases:
    """The leases of a store; without effect in a store that has none."""

    def __init__(self, store: Log, seconds: float) -> None:
        self._lease = store if isinstance(store, Lease) else None
        self._seconds = seconds

    @asynccontextmanager
    async def lease(self, session_id: str, *, required: bool, wanted: bool = True) -> AsyncIterator[CompactionLease]:
        """A lease for one compaction, released at the end of the block however it ends."""
        failure: Exception | None = None
        lease: CompactionLease | None = None
        try:
            async with anyio.create_task_group() as group:
                store_lease = self._lease if wanted else None
                lease = CompactionLease(store_lease, session_id, self._seconds, group, required=required)
                try:
                    yield lease
                except Exception as error:
                    failure = error  # raised again below: the task group would wrap it in an ExceptionGroup
                finally:
                    group.cancel_scope.cancel()
        finally:
            if lease is not None:
                await lease.release()  # after the renewal task has ended
        if failure is not None:
            raise failure

    async def wait_released(self, session_id: str) -> None:
        """Waits until no process holds the lease; a dead worker's lease expires."""
        if self._lease is None:
            return
        while (left := await self._lease.held(session_id)) is not None:
            await self._lease.changed(session_id, max(left, 0.01))
