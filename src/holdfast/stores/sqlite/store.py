"""SQLiteStore: one writer thread with group commit, concurrent readers, a search index filled when idle."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, Self, TypeVar

import anyio.to_thread

from ...context.events import Event, LaneTip, SessionRecord
from ...errors import InvalidInput, InvalidLimit, StoreClosed, StoreError
from ...io.processes import has_ended
from ..append import check_names, encode_events, require_unicode
from ..base import (
    ANYWHERE,
    POLL_SECONDS,
    Appended,
    Hit,
    LeaseName,
    LeaseWaiters,
    ProcessGuard,
    Rewrite,
    Slice,
    Unchanged,
    Where,
    removing,
)
from ..search import SearchRequest
from . import deletion, index, reads, search, writes
from .connection import begin, open_reader, open_writer, poll_for_locks, translate_sqlite_error
from .rows import read_session, session_chain
from .writer import WriterThread

_LIMIT_LEASE = "UPDATE leases SET until = ?3 + seconds WHERE session = ?1 AND name = ?2 AND until > ?3 + seconds"
"""A lease with longer to go than its length was taken before the clock was set back."""
_TAKE_LEASE = """
INSERT INTO leases (session, name, owner, until, seconds) VALUES (?1, ?2, ?3, ?4, ?6)
ON CONFLICT (session, name) DO UPDATE SET owner = excluded.owner, until = excluded.until, seconds = excluded.seconds
WHERE leases.owner = excluded.owner OR leases.until <= ?5
"""
_RELEASE_LEASE = """
DELETE FROM leases WHERE session = (SELECT key FROM sessions WHERE id = ?) AND name = ? AND owner = ?
"""
_LEASE_OWNER = "SELECT owner FROM leases WHERE session = ? AND name = ?"
_LEASE_UNTIL = """
SELECT min(until - ?3, seconds), owner FROM leases
WHERE session = (SELECT key FROM sessions WHERE id = ?1) AND name = ?2
"""
_HAS_LEASES = "SELECT 1 FROM pragma_table_info('leases') WHERE name = 'name'"


def take_lease(connection: sqlite3.Connection, session_id: str, name: LeaseName, owner: str, seconds: float) -> bool:
    key, now = session_chain(connection, session_id)[0][0], time.time()
    holder = connection.execute(_LEASE_OWNER, (key, name)).fetchone()
    if holder is not None and has_ended(holder[0]):
        connection.execute(_RELEASE_LEASE, (session_id, name, holder[0]))
    connection.execute(_LIMIT_LEASE, (key, name, now))
    return connection.execute(_TAKE_LEASE, (key, name, owner, now + seconds, now, seconds)).rowcount == 1


def release_lease(connection: sqlite3.Connection, session_id: str, name: LeaseName, owner: str) -> None:
    connection.execute(_RELEASE_LEASE, (session_id, name, owner))


def lease_seconds_left(connection: sqlite3.Connection, session_id: str, name: LeaseName) -> float | None:
    """Returns None if nobody holds the lease, or if a read-only file is too old to have leases."""
    if connection.execute(_HAS_LEASES).fetchone() is None:
        return None
    row = connection.execute(_LEASE_UNTIL, (session_id, name, time.time())).fetchone()
    left = 0.0 if row is None or has_ended(row[1]) else row[0]
    return left if left > 0 else None


def _work_when_idle(large: index.LargeEvent, connection: sqlite3.Connection) -> float | None:
    """Continues deletions, then the search index; returns the pause before the next piece, None if all is done."""
    begin(connection)
    deleting = deletion.has_hidden(connection)
    if deleting:
        deletion.remove_hidden(connection)
    connection.execute("COMMIT")
    return STEP_PAUSE if deleting or index.fill_index(connection, large=large) else None


T = TypeVar("T")
STEP_PAUSE = 0.006
"""Seconds between two pieces of a deletion or of the search index, in which writes of other processes go first."""
MAX_SCANNED_ROWS = 2_000
"""Rows outside the index that a search scans before it wakes the indexer."""


class SQLiteStore:
    """Sessions in one SQLite file (or in ":memory:").

    `synchronous="FULL"`: an append that has returned survives a power failure. "NORMAL": it survives a crash of the
    process, but a power failure may lose the last appends.
    """

    def __init__(self, path: str | os.PathLike[str], synchronous: Literal["FULL", "NORMAL"] = "FULL") -> None:
        if synchronous not in ("FULL", "NORMAL"):
            raise InvalidLimit(f"synchronous must be FULL or NORMAL, not {synchronous!r}.")
        self._path = os.fspath(path)
        self._synchronous = synchronous
        self._in_memory = self._path == ":memory:"
        self._process = ProcessGuard()
        self._writer = WriterThread(
            self._path, self._connect, partial(_work_when_idle, index.LargeEvent()), self._process
        )
        self._ready = False
        self._closed = False
        self._lock = threading.Lock()
        self._idle_readers: list[sqlite3.Connection] = []
        self._prompt_readers: list[sqlite3.Connection] = []
        """One connection that never waits for a lock, while nobody uses it."""
        self._waiters = LeaseWaiters()

    def _connect(self) -> sqlite3.Connection:
        connection = open_writer(self._path, self._synchronous)
        try:
            index.create_index(connection)
            poll_for_locks(connection)
        except sqlite3.Error as error:
            connection.close()
            raise translate_sqlite_error(error, self._path) from error
        return connection

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def create(self, record: SessionRecord, *, mark: int | None = None) -> None:
        check_names(record)
        fields = writes.encode_session_fields(record)
        await self._writer.run(lambda c: writes.create_session(c, record, fields, mark))

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
        kept = dict(media) if media else {}

        def work(connection: sqlite3.Connection) -> Appended:
            return writes.append_events(connection, session_id, entries, after, when, tip, kept)

        return await self._writer.run(work)

    async def forks(self, session_id: str) -> list[SessionRecord]:
        return await self._read(lambda c: reads.list_forks(c, session_id))

    async def relatives(self, session_id: str) -> list[SessionRecord]:
        return await self._read(lambda c: reads.list_relatives(c, session_id))

    async def rewrite(self, changes: Sequence[Rewrite]) -> bool:
        while (done := await self._writer.run(lambda c: writes.rewrite_sessions(c, changes))) is None:
            await self._remove_hidden()
        return done

    async def erase(self) -> list[str]:
        why = "another process reads it."
        try:
            await self._remove_hidden()
            while await self._writer.run_alone(index.erase_removed_text):
                pass
        except StoreError as problem:
            why = str(problem)
        if not await self._read(index.erasure_is_due):
            return []
        return [f"{self._path}, in pages to erase: {why} The next process that writes to it erases them."]

    async def delete(self, session_id: str) -> None:
        await self._writer.run(lambda c: deletion.hide_session(c, session_id))
        with removing(session_id):
            await self._remove_hidden()

    async def _remove_hidden(self) -> None:
        """Removes deleted sessions in steps; other writers have their turn between two."""
        while await self._writer.run(deletion.remove_hidden):  # noqa: ASYNC110 - a pause for other processes
            await anyio.sleep(STEP_PAUSE)

    async def session(self, session_id: str) -> SessionRecord:
        if (record := self._read_at_once(session_id)) is not None:
            return record
        return await self._read(lambda c: read_session(c, session_id))

    def _read_at_once(self, session_id: str) -> SessionRecord | None:
        """Reads a record without a thread, which would take several times as long; None if it would have to wait."""
        self._process.enter()
        with self._lock:
            connection = self._prompt_readers.pop() if self._prompt_readers else None
        if connection is None:
            return None
        try:
            connection.execute("BEGIN")
            try:
                return read_session(connection, session_id)
            finally:
                connection.execute("ROLLBACK")
        except (sqlite3.Error, UnicodeEncodeError):
            return None
        finally:
            self._put_back(connection, self._prompt_readers)

    async def sessions(self, owner: str | None = None, limit: int | None = None) -> list[SessionRecord]:
        return await self._read(lambda c: reads.list_sessions(c, owner, limit))

    async def read(self, session_id: str, which: Slice) -> list[Event]:
        return await self._read(lambda c: reads.read_events(c, session_id, which))

    async def media(self, session_id: str, digests: Sequence[str]) -> dict[str, str]:
        return await self._read(lambda c: reads.read_media(c, session_id, digests))

    async def problems(self, session_id: str) -> list[str]:
        return await self._read(lambda c: reads.check_session(c, session_id))

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
        hits, unindexed = await self._read(lambda c: search.search_events(c, request))
        if unindexed > MAX_SCANNED_ROWS:
            self._writer.start_indexing()
        return hits

    async def ids(self, session_id: str, prefix: str, limit: int) -> list[str]:
        return await self._read(lambda c: reads.ids_with_prefix(c, session_id, prefix, limit))

    async def take(self, session_id: str, name: LeaseName, owner: str, seconds: float) -> bool:
        return await self._writer.run(lambda c: take_lease(c, session_id, name, owner, seconds))

    async def release(self, session_id: str, name: LeaseName, owner: str) -> None:
        await self._writer.run(lambda c: release_lease(c, session_id, name, owner))
        self._waiters.notify(session_id)

    async def held(self, session_id: str, name: LeaseName) -> float | None:
        return await self._read(lambda c: lease_seconds_left(c, session_id, name))

    async def changed(
        self,
        session_id: str,
        name: LeaseName,
        timeout: float,  # noqa: ASYNC109 - part of the protocol
    ) -> None:
        await self._waiters.wait(session_id, min(timeout, POLL_SECONDS))

    async def close(self) -> None:
        if self._process.is_elsewhere:
            return
        with self._lock:
            self._closed = True
            idle = [*self._idle_readers, *self._prompt_readers]
            self._idle_readers, self._prompt_readers = [], []
        for connection in idle:
            connection.close()
        await anyio.to_thread.run_sync(self._writer.stop)

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Runs a read in a worker thread, on a snapshot; an in-memory database uses the writer's connection.

        A caller that gives up leaves a read behind that waits for a lock: it returns its connection at its end.
        """
        if self._closed:
            raise StoreClosed
        self._process.enter()
        if self._in_memory:
            return await self._writer.run(work)
        if not self._ready:
            await anyio.to_thread.run_sync(self._ensure_schema, abandon_on_cancel=True)
        return await anyio.to_thread.run_sync(self._read_in_thread, work, abandon_on_cancel=True)

    def _ensure_schema(self) -> None:
        """Opens the file once for writing, so that it exists with its tables."""
        self._connect().close()
        connection = open_reader(self._path)
        connection.execute("PRAGMA busy_timeout = 0").fetchone()
        self._put_back(connection, self._prompt_readers)
        self._ready = True

    def _read_in_thread(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            connection = self._idle_readers.pop() if self._idle_readers else None
        try:
            if connection is None:
                connection = open_reader(self._path)
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                connection.execute("ROLLBACK")
        except UnicodeEncodeError as error:
            raise InvalidInput(f"The text is not valid Unicode and cannot be stored: {error}.") from error
        except sqlite3.Error as error:
            raise translate_sqlite_error(error, self._path) from error
        finally:
            if connection is not None:
                self._put_back(connection, self._idle_readers)

    def _put_back(self, connection: sqlite3.Connection, place: list[sqlite3.Connection]) -> None:
        with self._lock:
            if not self._closed:
                place.append(connection)
                return
        connection.close()
