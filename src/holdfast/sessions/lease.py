"""Who works on a session now: a registry of compactions in this process, and leases in the store for all processes.

Leases save work: two summaries of the same messages, two replies to the same words. They do not make writes safe:
event ids and compare-and-set do, with or without a lease.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.to_thread

from ..context.events import new_id
from ..errors import StoreError
from ..io.processes import process_name
from ..stores import Lease, LeaseName, Log

log = logging.getLogger("holdfast")
Lane = tuple[str, str | None]
"""A session's id and a lane in it."""
LEASE_SECONDS = 10.0
"""How long a lease lasts unless it is renewed: others wait at most this long for a process that died."""
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


class SessionLease:
    """A lease on one session: acquired inside its `async with` block, renewed from a thread, released at the end."""

    def __init__(self, leases: SessionLeases, session_id: str, name: LeaseName, *, required: bool) -> None:
        self._leases = leases
        self._session_id = session_id
        self._name = name
        self._required = required
        self._owner = f"{new_id()}@{process_name()}"
        self._tried = False
        """A cancelled acquisition may have succeeded, so the lease is released anyway."""
        self._renewal: Future[None] | None = None
        self._renewing = threading.Lock()
        """Held by each renewal: the release waits for one that has begun."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.release()

    async def acquire(self) -> None:
        """Raises LeaseTaken if another process holds it and it is required; without it, the work proceeds."""
        lease = self._leases.store
        if lease is None:
            return
        self._tried = True
        try:
            taken = await lease.take(self._session_id, self._name, self._owner, self._leases.seconds)
        except StoreError as error:
            log.warning("the %s lease of session %s could not be acquired: %s", self._name, self._session_id, error)
            return
        if taken:
            self._renewal = self._leases.start(_renew(weakref.ref(self), self._leases.seconds / 3))
        elif self._required:
            raise LeaseTaken

    async def renew(self) -> bool:
        """Renews the lease; False once it was released or another process has taken it, as after a long pause."""
        lease = self._leases.store
        with self._renewing:
            if lease is None or not self._tried:
                return False
            try:
                return await lease.take(self._session_id, self._name, self._owner, self._leases.seconds)
            except StoreError as error:
                log.warning("the %s lease of session %s was not renewed: %s", self._name, self._session_id, error)
                return True

    async def release(self) -> None:
        lease = self._leases.store
        if lease is None or not self._tried:
            return
        self._tried = False
        try:
            with anyio.move_on_after(_RELEASE_TIMEOUT, shield=True):
                if self._renewing.locked():
                    await anyio.to_thread.run_sync(self._wait_renewed)
                await lease.release(self._session_id, self._name, self._owner)
        except StoreError as error:
            log.warning(
                "the %s lease of session %s was not released and will expire: %s", self._name, self._session_id, error
            )
        if self._renewal is not None:
            self._renewal.cancel()

    def _wait_renewed(self) -> None:
        if self._renewing.acquire(timeout=_RELEASE_TIMEOUT):
            self._renewing.release()


async def _renew(lease: weakref.ref[SessionLease], interval: float) -> None:
    """Renews a lease until it is released, lost, or forgotten by its holder."""
    held = True
    while held:
        await asyncio.sleep(interval)
        holder = lease()
        held = holder is not None and await holder.renew()
        del holder


class SessionLeases:
    """The leases of a store, renewed by one thread; without effect in a store that has none."""

    def __init__(self, store: Log, seconds: float) -> None:
        self.store = store if isinstance(store, Lease) else None
        self.seconds = seconds
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def lease(self, session_id: str, name: LeaseName, *, required: bool = True) -> SessionLease:
        return SessionLease(self, session_id, name, required=required)

    async def is_held(self, session_id: str, name: LeaseName) -> bool:
        return self.store is not None and await self.store.held(session_id, name) is not None

    async def wait_released(self, session_id: str, name: LeaseName) -> None:
        """Waits until no process holds the lease; that of a dead process expires."""
        if self.store is None:
            return
        while (left := await self.store.held(session_id, name)) is not None:
            await self.store.changed(session_id, name, max(left, 0.01))

    def start(self, renewal: Coroutine[Any, Any, None]) -> Future[None]:
        """Runs a renewal in the thread: the event loop of the work may be busy for longer than a lease lasts."""
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="holdfast-leases", daemon=True)
                self._thread.start()
                weakref.finalize(self, _stop, self._loop)
        return asyncio.run_coroutine_threadsafe(renewal, self._loop)

    async def close(self) -> None:
        """Ends the thread."""
        with self._starting:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None and thread.is_alive():  # a fork has no thread, and shares the pipe
            _stop(loop)
            await anyio.to_thread.run_sync(thread.join)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.run_until_complete(_end_renewals())
    loop.close()


async def _end_renewals() -> None:
    renewals = asyncio.all_tasks() - {asyncio.current_task()}
    for renewal in renewals:
        renewal.cancel()
    await asyncio.gather(*renewals, return_exceptions=True)
    await asyncio.sleep(0)  # connections that a store has dropped are closed in the loop's next round


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    with suppress(RuntimeError):  # it has ended already
        loop.call_soon_threadsafe(loop.stop)
