"""SQLiteStore: one writer thread with group commit, readers beside it, search filled when it is quiet."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, Self, TypeVar

import anyio.to_thread

from ...errors import InvalidInput, InvalidLimit, StoreClosed
from ...events import Event, LaneTip, SessionRecord
from ..admission import check_names, prepare, stored_text
from ..log import ANYWHERE, Appended, Hit, Slice, Unchanged, Where
from ..query import Asked
from ..waiting import A_MOMENT, Waiting
from . import index, lease, reads, search, writes
from .connection import open_reader, open_writer, translate
from .rows import record_of
from .writer import Writer

T = TypeVar("T")

FAR_BEHIND = 2_000
"""Rows that a search may look at one by one before the index is asked to catch up."""


class SQLiteStore:
    """Sessions in one SQLite file (or in ":memory:").

    `synchronous="FULL"`: an acknowledged append survives a power cut. "NORMAL": it survives a crash of the
    process, and a power cut may take the last moments.
    """

    def __init__(self, path: str | os.PathLike[str], synchronous: Literal["FULL", "NORMAL"] = "FULL") -> None:
        if synchronous not in ("FULL", "NORMAL"):
            raise InvalidLimit(f"synchronous must be FULL or NORMAL, not {synchronous!r}.")
        self._path = os.fspath(path)
        self._synchronous = synchronous
        self._in_memory = self._path == ":memory:"
        self._writer = Writer(self._path, self._connect, index.fill)
        self._ready = False
        self._closed = False
        self._lock = threading.Lock()
        self._resting: list[sqlite3.Connection] = []
        self._waiting = Waiting()

    def _connect(self) -> sqlite3.Connection:
        connection = open_writer(self._path, self._synchronous)
        try:
            index.make(connection)
        except sqlite3.Error as error:
            connection.close()
            raise translate(error, self._path) from error
        return connection

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def create(self, record: SessionRecord) -> None:
        check_names(record)
        await self._writer.run(partial(writes.create, record=record, wide=writes.wide_of(record)))

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
        entries = prepare(events, tip)
        for digest, data in (media or {}).items():
            stored_text(session_id, digest + data)
        kept = dict(media) if media else {}

        def work(connection: sqlite3.Connection) -> Appended:
            return writes.append(connection, session_id, entries, after, when, tip, kept)

        return await self._writer.run(work)

    async def rewrite(self, session_id: str, events: Sequence[Event], forget_media: Sequence[str] = ()) -> None:
        entries = prepare(events)
        await self._writer.run(lambda c: writes.rewrite(c, session_id, entries, forget_media))

    async def delete(self, session_id: str) -> None:
        await self._writer.run(lambda c: writes.delete(c, session_id))

    async def session(self, session_id: str) -> SessionRecord:
        return await self._read(lambda c: record_of(c, session_id))

    async def sessions(self, owner: str | None = None, limit: int | None = None) -> list[SessionRecord]:
        return await self._read(lambda c: reads.sessions(c, owner, limit))

    async def read(self, session_id: str, which: Slice) -> list[Event]:
        return await self._read(lambda c: reads.read(c, session_id, which))

    async def media(self, session_id: str, digests: Sequence[str]) -> dict[str, str]:
        return await self._read(lambda c: reads.media(c, session_id, digests))

    async def problems(self, session_id: str) -> list[str]:
        return await self._read(lambda c: reads.problems(c, session_id))

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
        asked = Asked(query, session_id, owner, where, limit, offset)
        hits, behind = await self._read(lambda c: search.search(c, asked))
        if behind > FAR_BEHIND:
            self._writer.wake()
        return hits

    async def ids(self, session_id: str, prefix: str, limit: int) -> list[str]:
        return await self._read(lambda c: reads.ids(c, session_id, prefix, limit))

    async def take(self, session_id: str, owner: str, seconds: float) -> bool:
        return await self._writer.run(lambda c: lease.take(c, session_id, owner, seconds))

    async def release(self, session_id: str, owner: str) -> None:
        await self._writer.run(lambda c: lease.release(c, session_id, owner))
        self._waiting.tell(session_id)

    async def held(self, session_id: str) -> float | None:
        return await self._read(lambda c: lease.held(c, session_id))

    async def changed(self, session_id: str, timeout: float) -> None:  # noqa: ASYNC109 - whoever waits says how long
        await self._waiting.told(session_id, min(timeout, A_MOMENT))

    async def close(self) -> None:
        with self._lock:
            self._closed = True
            resting, self._resting = self._resting, []
        for connection in resting:
            connection.close()
        await anyio.to_thread.run_sync(self._writer.stop)

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a read in a thread of its own, on a snapshot; a database in memory has only the writer."""
        if self._closed:
            raise StoreClosed
        if self._in_memory:
            return await self._writer.run(work)
        if not self._ready:
            await anyio.to_thread.run_sync(self._prepare)
        return await anyio.to_thread.run_sync(self._read_now, work)

    def _prepare(self) -> None:
        """See once that the file is there with its tables, even where it cannot be written."""
        self._connect().close()
        self._ready = True

    def _read_now(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            connection = self._resting.pop() if self._resting else None
        try:
            if connection is None:
                connection = open_reader(self._path)
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                connection.execute("ROLLBACK")
        except UnicodeEncodeError as error:
            raise InvalidInput(f"This is not Unicode text and cannot be in a log: {error}.") from error
        except sqlite3.Error as error:
            raise translate(error, self._path) from error
        finally:
            if connection is not None:
                with self._lock:
                    if not self._closed:
                        self._resting.append(connection)
                        connection = None
                if connection is not None:
                    connection.close()
