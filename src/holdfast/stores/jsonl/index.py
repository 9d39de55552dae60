"""The index of a folder: byte offsets of events, so that the end of a log is read without the rest.

A SQLite file that is only a cache: an entry is valid while the log's file has the recorded size, time and inode, and
the index is rebuilt from the logs whenever it is missing or broken.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import resources

import msgspec

from ...context.events import LaneTip, SessionRecord, lane_key
from ...errors import StoreClosed
from ..base import Slice
from .format import MAX_SEQ, LocatedLine

INDEX_VERSION = 1
_FILE_FIELDS = "key, id, inode, size, modified, read, version, parent, parent_seq, owner"
_GET_FILE = f"SELECT {_FILE_FIELDS} FROM files WHERE id = ?"  # noqa: S608
_ADD_FILE = """
INSERT INTO files (id, inode, size, modified, read, version, parent, parent_seq, owner)
VALUES (?, 0, 0, 0, ?, ?, ?, ?, ?)
"""
_UPDATE_FILE = "UPDATE files SET inode = ?, size = ?, modified = ?, read = ?, version = ? WHERE key = ?"
_ADD_EVENT = "INSERT INTO events (file, seq, id, lane, kind, offset, length) VALUES (?, ?, ?, ?, ?, ?, ?)"
_SET_TIP = "REPLACE INTO lanes (file, lane, mark, epoch, start, base, base_epoch) VALUES (?, ?, ?, ?, ?, ?, ?)"
_GET_TIPS = """
SELECT lane, mark, epoch, start, base, base_epoch FROM lanes
WHERE file = ?1 AND (?2 IS NULL OR lane IN (SELECT value FROM json_each(?2))) ORDER BY lane
"""
_LAST_EVENT = "SELECT seq, id, offset, length FROM events WHERE file = ? ORDER BY seq DESC LIMIT 1"
_LOCATE_BY_SEQ = "SELECT seq, id, offset, length FROM events WHERE file = ? AND seq = ?"
_LOCATE_NEXT = "SELECT seq, id, offset, length FROM events WHERE file = ? AND seq > ? ORDER BY seq LIMIT ?"
_LOCATE_BY_ID = "SELECT seq, id, offset, length FROM events WHERE file = ?1 AND id IN (SELECT value FROM json_each(?2))"
_IDS_WITH_PREFIX = """
SELECT id FROM events WHERE file = ?1 AND id >= ?2 AND id < ?2 || char(1114111) AND seq <= ?3 ORDER BY id LIMIT ?4
"""
_BROKEN_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_ORPHAN_FILE = "UPDATE files SET id = CAST(key AS BLOB) WHERE id = ?"
_GET_ORPHAN = "SELECT key FROM files WHERE id >= x'' LIMIT 1"
_REMOVE_ORPHAN_EVENTS = """
DELETE FROM events WHERE rowid IN (SELECT rowid FROM events WHERE file = ? ORDER BY seq LIMIT ?)
"""
_REMOVE_ORPHAN = ("DELETE FROM lanes WHERE file = ?", "DELETE FROM files WHERE key = ?")


class StaleIndexError(Exception):
    """The index was rebuilt meanwhile, or does not match a file that looked unchanged: retry."""


class IndexedFile(msgspec.Struct, frozen=True):
    """The index entry of one log file."""

    generation: int
    """Generation of the index that returned this entry."""
    key: int
    id: str
    inode: int
    size: int
    modified: int
    indexed_size: int
    """Offset of the first byte that is not part of a complete append."""
    version: int
    parent: str | None
    parent_seq: int
    owner: str | None

    def matches(self, stat: os.stat_result) -> bool:
        return (self.inode, self.size, self.modified) == (stat.st_ino, stat.st_size, stat.st_mtime_ns)


class EventLocation(msgspec.Struct, frozen=True):
    """Byte range of an event in its log file."""

    seq: int
    id: str
    offset: int
    length: int


class LogFileIndex:
    """One connection behind one lock; the log files are read outside of it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self.generation = 0

    @contextmanager
    def transaction(self, indexed: IndexedFile | None = None) -> Iterator[sqlite3.Connection]:
        with self.connection(indexed) as connection:
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def connection(self, indexed: IndexedFile | None = None) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._closed:
                raise StoreClosed
            if indexed is not None and indexed.generation != self.generation:
                raise StaleIndexError
            if self._connection is None:
                self._connection = self._open()
            yield self._connection

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=30, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA user_version").fetchone()[0] != INDEX_VERSION:
                for statement in _schema_statements():
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {INDEX_VERSION:d}")
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def reset(self, error: Exception, generation: int) -> None:
        """Resets the index after an error: to a new file if the old one is broken, to memory if none can be written."""
        with self._lock:
            if generation != self.generation:
                return
            self.generation += 1
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            code = (getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_CORRUPT) & 0xFF
            if code in _BROKEN_CODES:
                for suffix in ("", "-wal", "-shm"):
                    with suppress(OSError):
                        os.unlink(self._path + suffix)
            if code not in _BROKEN_CODES or os.path.exists(self._path):
                self._path = ":memory:"

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def get_file(self, session_id: str) -> IndexedFile | None:
        with self.connection() as connection:
            row, generation = connection.execute(_GET_FILE, (session_id,)).fetchone(), self.generation
        return None if row is None else IndexedFile(generation, *row)

    def add_file(self, record: SessionRecord, indexed_size: int) -> IndexedFile:
        """Adds a file of which only the header was read."""
        with self.transaction() as connection:
            self.remove_file(record.id)
            row = (record.id, indexed_size, record.version, record.parent, record.parent_seq, record.owner)
            key = connection.execute(_ADD_FILE, row).lastrowid
            assert key is not None
            self._set_tips(connection, key, record.lanes)
        found = self.get_file(record.id)
        assert found is not None
        return found

    def add_lines(
        self,
        indexed: IndexedFile,
        lines: Iterable[LocatedLine],
        tips: Mapping[str, LaneTip],
        indexed_size: int,
        stat: os.stat_result,
    ) -> IndexedFile:
        """Adds lines that were appended or scanned, and the state of the file after them."""
        version = indexed.version
        with self.transaction(indexed) as connection:
            for located in lines:
                event = located.line.entry.event
                row = (event.seq, event.id, lane_key(event.lane), event.kind, located.offset, located.length)
                connection.execute(_ADD_EVENT, (indexed.key, *row))
                version = max(version, event.seq)
            self._set_tips(connection, indexed.key, tips)
            state = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            connection.execute(_UPDATE_FILE, (*state, indexed_size, version, indexed.key))
        return msgspec.structs.replace(
            indexed, inode=state[0], size=state[1], modified=state[2], indexed_size=indexed_size, version=version
        )

    @staticmethod
    def _set_tips(connection: sqlite3.Connection, key: int, tips: Mapping[str, LaneTip]) -> None:
        for lane, tip in tips.items():
            connection.execute(_SET_TIP, (key, lane, tip.mark, tip.epoch, tip.start, tip.base, tip.base_epoch))

    def remove_file(self, session_id: str) -> None:
        """Makes a file unknown at once; its entries are left to `remove_orphans`."""
        with self.transaction() as connection:
            connection.execute(_ORPHAN_FILE, (session_id,))

    def remove_orphans(self, events: int) -> bool:
        """Removes some entries of files that are no longer known; True if there may be more."""
        with self.transaction() as connection:
            row = connection.execute(_GET_ORPHAN).fetchone()
            if row is None:
                return False
            if connection.execute(_REMOVE_ORPHAN_EVENTS, (row[0], events)).rowcount == 0:
                for statement in _REMOVE_ORPHAN:
                    connection.execute(statement, row)
            return True

    def lane_tips(self, indexed: IndexedFile, lanes: Iterable[str] | None = None) -> dict[str, LaneTip]:
        """Returns the tips of the given lanes, or of all."""
        names = None if lanes is None else msgspec.json.encode(list(lanes)).decode()
        with self.connection(indexed) as connection:
            return {lane: LaneTip(*tip) for lane, *tip in connection.execute(_GET_TIPS, (indexed.key, names))}

    def last_location(self, indexed: IndexedFile) -> EventLocation | None:
        with self.connection(indexed) as connection:
            row = connection.execute(_LAST_EVENT, (indexed.key,)).fetchone()
        return None if row is None else EventLocation(*row)

    def locate_seq(self, key: int, seq: int) -> EventLocation | None:
        with self.connection() as connection:
            row = connection.execute(_LOCATE_BY_SEQ, (key, seq)).fetchone()
        return None if row is None else EventLocation(*row)

    def locate_next(self, indexed: IndexedFile, after: int, limit: int) -> list[EventLocation]:
        """Returns the locations of the events after a seq."""
        with self.connection(indexed) as connection:
            return [EventLocation(*row) for row in connection.execute(_LOCATE_NEXT, (indexed.key, after, limit))]

    def locate_ids(self, indexed: IndexedFile, ids: Sequence[str]) -> list[EventLocation]:
        with self.connection(indexed) as connection:
            rows = connection.execute(_LOCATE_BY_ID, (indexed.key, msgspec.json.encode(list(ids)).decode()))
            return [EventLocation(*row) for row in rows]

    def ids_with_prefix(self, indexed: IndexedFile, prefix: str, until: int, limit: int) -> list[str]:
        """Returns ids with this prefix, of events up to seq `until`."""
        with self.connection(indexed) as connection:
            return [row[0] for row in connection.execute(_IDS_WITH_PREFIX, (indexed.key, prefix, until, max(0, limit)))]


def _schema_statements() -> list[str]:
    text = (resources.files("holdfast.stores.jsonl") / "index.sql").read_text(encoding="utf-8")
    return [statement for statement in text.split(";") if statement.strip()]


_SELECT_LOCATION = "SELECT seq, id, offset, length FROM events "
_INDEX_HINT = ("", "INDEXED BY events_by_id ")
_SEQ_RANGE = "WHERE file = ?1 AND seq > ?2 AND seq <= ?3 "
_KIND_CONDITION = "AND (?4 IS NULL OR kind IN (SELECT value FROM json_each(?4))) "
_LANE_CONDITION = ("AND lane = ?5 ", "AND ?5 IS NOT NULL ")
_ID_CONDITION = ("AND ?6 IS NULL ", "AND id IN (SELECT value FROM json_each(?6)) ")
_SEQ_ORDER = ("ORDER BY seq LIMIT ?7", "ORDER BY seq DESC LIMIT ?7")
_SLICE_STATEMENTS = {
    (lane, ids, order): _SELECT_LOCATION
    + _INDEX_HINT[ids]
    + _SEQ_RANGE
    + _KIND_CONDITION
    + _LANE_CONDITION[lane]
    + _ID_CONDITION[ids]
    + _SEQ_ORDER[order]
    for lane in (False, True)
    for ids in (False, True)
    for order in (False, True)
}
"""Keyed by: any lane, by ids, newest first."""


def locate_slice(
    index: LogFileIndex, chain: list[tuple[IndexedFile, int]], which: Slice
) -> list[tuple[IndexedFile, list[EventLocation]]]:
    """Returns the locations of a slice, file by file, oldest first. `chain` starts with the session's own file."""
    left = -1 if which.limit is None else min(max(0, which.limit), MAX_SEQ)
    newest = which.newest and which.limit is not None
    found: list[tuple[IndexedFile, list[EventLocation]]] = []
    for indexed, visible in chain if newest else chain[::-1]:
        until = visible if which.until is None else min(which.until, visible)
        if left == 0 or until <= which.after:
            continue
        locations = _locate_in_file(index, indexed, which, until, newest, left)
        found.append((indexed, locations[::-1] if newest else locations))
        left = left if left < 0 else left - len(locations)
    return found[::-1] if newest else found


def _locate_in_file(
    index: LogFileIndex, indexed: IndexedFile, which: Slice, until: int, newest: bool, limit: int
) -> list[EventLocation]:
    kinds = msgspec.json.encode(which.kinds).decode() if which.kinds else None
    ids = msgspec.json.encode(which.ids).decode() if which.ids else None
    values = (indexed.key, min(which.after, MAX_SEQ), until, kinds, lane_key(which.lane), ids, limit)
    with index.connection(indexed) as connection:
        rows = connection.execute(_SLICE_STATEMENTS[which.any_lane, ids is not None, newest], values)
        return [EventLocation(*row) for row in rows]
