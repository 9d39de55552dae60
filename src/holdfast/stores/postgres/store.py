"""PostgresStore: sessions in a PostgreSQL database, separated by tenant."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

import anyio

from ...context.events import Event, LaneTip, SessionRecord
from ...errors import InvalidLimit, StoreClosed
from ..append import check_names, encode_events, require_unicode
from ..base import ANYWHERE, Appended, Hit, LeaseName, ProcessGuard, Rewrite, Slice, Unchanged, Where, removing
from ..search import SearchRequest
from . import deletion, lease, reads, schema, search, writes
from .connections import ConnectionPool, ConnectionWork, PostgresAddress
from .index import SearchIndexer
from .lease import LeaseNotifications
from .rows import escape_nul

VACUUM = "VACUUM holdfast.events, holdfast.search, holdfast.media, holdfast.records"
T = TypeVar("T")


class _LoopResources:
    """Connection pool, indexer and lease notifications of one event loop, to which connections belong."""

    def __init__(self, pool: ConnectionPool, indexer: SearchIndexer, notifications: LeaseNotifications) -> None:
        self.pool = pool
        self.indexer = indexer
        self.notifications = notifications

    async def close(self) -> None:
        await self.indexer.stop()
        self.notifications.close()
        await self.pool.close()

    def abandon(self) -> None:
        """Drops all connections without waiting; operations of this loop raise StoreClosed."""
        self.notifications.close()
        self.pool.terminate()


class PostgresStore:
    """Sessions of one tenant in a PostgreSQL database; any number of processes may use it at once.

    The tenant is `tenant`, or `?tenant=NAME` in the address. The tables must exist: run `holdfast migrate`, or pass
    `migrate=True`. Each event loop opens up to `max_connections` connections as needed. A statement may take `timeout`
    seconds; an unreachable server is retried for `retry_seconds`. An append that has returned is committed; the
    server's `synchronous_commit` determines how durable that is.
    """

    def __init__(
        self,
        url: str,
        *,
        tenant: str | None = None,
        migrate: bool = False,
        max_connections: int = 10,
        timeout: float = 60.0,
        retry_seconds: float = 15.0,
    ) -> None:
        if max_connections < 1:
            raise InvalidLimit(f"max_connections must be at least 1, not {max_connections}.")
        for name, seconds in (("timeout", timeout), ("retry_seconds", retry_seconds)):
            if not 0 < seconds < math.inf:
                raise InvalidLimit(f"{name} must be a number of seconds above 0, not {seconds}.")
        self._address = PostgresAddress(url)
        named = self._address.tenant if tenant is None else tenant
        self._tenant = escape_nul(require_unicode(named, named))
        self._migrate = migrate
        self._max_connections = max_connections
        self._timeout = timeout
        self._retry_seconds = retry_seconds
        self._resources: dict[asyncio.AbstractEventLoop, _LoopResources] = {}
        self._process = ProcessGuard()
        self._ready = False
        self._closed = False
        self._has_dead_rows = False
        """Whether this store has rewritten events since it was last asked to erase the old ones."""

    def __repr__(self) -> str:
        return f"PostgresStore({self._address.public!r}, tenant={self._tenant!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- the log ------------------------------------------------------------------------------------

    async def create(self, record: SessionRecord, *, mark: int | None = None) -> None:
        check_names(record)
        encoded = writes.encode_record(record)
        await self._run(lambda c, unsure: writes.create_session(c, self._tenant, record, encoded, mark, unsure))

    async def append(
        self,
        session_id: str,
        events: Sequence[Event],
        *,
        after: int | None = None,
        when: Unchanged | None = None,
        tip: LaneTip | None = None,
        media: Mapping[str, str] | None = None,
    ) -> Appended:
        entries = encode_events(events, tip)
        for digest, data in (media or {}).items():
            require_unicode(session_id, digest + data)
        request = writes.AppendRequest(session_id, entries, after, when, tip, dict(media or {}))
        done = await self._run(lambda c, unsure: writes.append_events(c, self._tenant, request, unsure))
        if done.fresh:
            self._loop_resources.indexer.wake()
        return done

    async def forks(self, session_id: str) -> list[SessionRecord]:
        return await self._run(lambda c, _: reads.list_forks(c, self._tenant, session_id))

    async def relatives(self, session_id: str) -> list[SessionRecord]:
        return await self._run(lambda c, _: reads.list_relatives(c, self._tenant, session_id))

    async def rewrite(self, changes: Sequence[Rewrite]) -> bool:
        while (done := await self._run(lambda c, _: writes.rewrite_sessions(c, self._tenant, changes))) is None:
            await self._remove_hidden()
        self._loop_resources.indexer.wake()
        self._has_dead_rows = self._has_dead_rows or (done and bool(changes))
        return done

    async def erase(self) -> list[str]:
        await self._remove_hidden()
        dead, self._has_dead_rows = self._has_dead_rows, False
        return [f"{self._address.public}, in dead rows until PostgreSQL removes them: run {VACUUM}."] if dead else []

    async def delete(self, session_id: str) -> None:
        await self._run(lambda c, unsure: deletion.delete_session(c, self._tenant, session_id, unsure))
        with removing(session_id):
            await self._remove_hidden()

    async def _remove_hidden(self) -> None:
        while await self._run(lambda c, _: deletion.remove_hidden(c, self._tenant)):
            pass

    async def expire(self, before: datetime | str) -> list[str]:
        """Deletes sessions without appends since `before`, returning their ids; forks keep the shared events."""
        if isinstance(before, datetime):
            limit = before.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        else:
            limit = require_unicode("", before)

        async def delete(name: str) -> bool:
            return await self._run(lambda c, _: deletion.hide_session(c, self._tenant, name, limit))

        old = await self._run(lambda c, _: writes.list_expired(c, self._tenant, limit))
        gone = [name for name in old if await delete(name)]
        await self._remove_hidden()
        return gone

    async def session(self, session_id: str) -> SessionRecord:
        return await self._run(lambda c, _: reads.read_session(c, self._tenant, session_id))

    async def sessions(self, owner: str | None = None, limit: int | None = None) -> list[SessionRecord]:
        return await self._run(lambda c, _: reads.list_sessions(c, self._tenant, owner, limit))

    async def read(self, session_id: str, which: Slice) -> list[Event]:
        return await self._run(lambda c, _: reads.read_events(c, self._tenant, session_id, which))

    async def media(self, session_id: str, digests: Sequence[str]) -> dict[str, str]:
        return await self._run(lambda c, _: reads.read_media(c, self._tenant, session_id, digests))

    async def problems(self, session_id: str) -> list[str]:
        return await self._run(lambda c, _: reads.check_session(c, self._tenant, session_id))

    # -- search -------------------------------------------------------------------------------------

    async def search(
        self,
        query: str,
        *,
        session_id: str | None = None,
        owner: str | None = None,
        where: Where = ANYWHERE,
        limit: int = 20,
        offset: int = 0,
    ) -> list[Hit]:
        request = SearchRequest(query, session_id, owner, where, limit, offset)
        hits, behind = await self._run(lambda c, _: search.search_events(c, self._tenant, request))
        if behind:
            self._loop_resources.indexer.wake()
        return hits

    async def ids(self, session_id: str, prefix: str, limit: int) -> list[str]:
        return await self._run(lambda c, _: reads.ids_with_prefix(c, self._tenant, session_id, prefix, limit))

    # -- leases --------------------------------------------------------------------------------------

    async def take(self, session_id: str, name: LeaseName, owner: str, seconds: float) -> bool:
        return await self._run(lambda c, _: lease.take_lease(c, self._tenant, session_id, name, owner, seconds))

    async def release(self, session_id: str, name: LeaseName, owner: str) -> None:
        await self._run(lambda c, _: lease.release_lease(c, self._tenant, session_id, name, owner))

    async def held(self, session_id: str, name: LeaseName) -> float | None:
        lease = await self._held(session_id, name)
        return None if lease is None else lease[1]

    async def changed(
        self,
        session_id: str,
        name: LeaseName,
        timeout: float,  # noqa: ASYNC109 - part of the protocol
    ) -> None:
        lease = await self._held(session_id, name)
        if lease is None:
            return
        notifications = self._loop_resources.notifications
        with notifications.subscribe(lease[0]) as released:
            interval = await notifications.ensure_listening()
            lease = await self._held(session_id, name)  # it may have been released before we listened
            if lease is not None:
                with anyio.move_on_after(min(timeout, lease[1], interval)):
                    await released.wait()

    async def _held(self, session_id: str, name: LeaseName) -> tuple[int, float] | None:
        return await self._run(lambda c, _: lease.active_lease(c, self._tenant, session_id, name))

    # -- connections --------------------------------------------------------------------------------

    async def close(self) -> None:
        if self._process.is_elsewhere:
            return
        self._closed = True
        here = asyncio.get_running_loop()
        for loop, resources in list(self._resources.items()):
            del self._resources[loop]
            if loop is here:
                await resources.close()
            elif loop.is_running():
                loop.call_soon_threadsafe(resources.abandon)

    async def _run(self, work: ConnectionWork[T]) -> T:
        if self._closed:
            raise StoreClosed
        self._process.enter()
        return await self._loop_resources.pool.run(work)

    @property
    def _loop_resources(self) -> _LoopResources:
        """The resources of the running event loop; drops those of closed loops."""
        here = asyncio.get_running_loop()
        if here not in self._resources:
            for ended in [loop for loop in self._resources if loop.is_closed()]:
                del self._resources[ended]
            pool = ConnectionPool(self._address, self._connect, self._max_connections, self._retry_seconds)
            indexer = SearchIndexer(pool, self._tenant)
            self._resources[here] = _LoopResources(pool, indexer, LeaseNotifications(self._connect))
        return self._resources[here]

    async def _connect(self) -> Any:
        """Opens a connection; the first one checks or migrates the schema."""
        connection = await self._address.connect(self._timeout)
        if not self._ready:
            try:
                look = schema.apply_migrations if self._migrate else schema.check_schema
                await look(connection, self._address.public)
            except BaseException:
                connection.terminate()
                raise
            self._ready = True
        return connection
