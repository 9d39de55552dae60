"""The index beside the files: where each event stands, so that reading the end never reads the whole.

It is an ordinary SQLite file that is never trusted: it counts for a log only as long as the log's file has
the size, time and inode that were noted, and it is made anew from the files whenever it is missing or broken.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import resources

import msgspec

from ...errors import StoreClosed
from ...events import LaneTip, SessionRecord, root_key
from .scan import Placed

VERSION = 1
_FILE_FIELDS = "key, id, inode, size, modified, read, version, parent, parent_seq, owner"
_GET = f"SELECT {_FILE_FIELDS} FROM files WHERE id = ?"  # noqa: S608
_ADD = """
INSERT INTO files (id, inode, size, modified, read, version, parent, parent_seq, owner)
VALUES (?, 0, 0, 0, ?, ?, ?, ?, ?)
"""
_MOVE = "UPDATE files SET inode = ?, size = ?, modified = ?, read = ?, version = ? WHERE key = ?"
_EVENT = "INSERT INTO events (file, seq, id, lane, kind, offset, length) VALUES (?, ?, ?, ?, ?, ?, ?)"
_TIP = "REPLACE INTO lanes (file, lane, mark, epoch, start, base, base_epoch) VALUES (?, ?, ?, ?, ?, ?, ?)"
_TIPS = """
SELECT lane, mark, epoch, start, base, base_epoch FROM lanes
WHERE file = ?1 AND (?2 IS NULL OR lane IN (SELECT value FROM json_each(?2))) ORDER BY lane
"""
_LAST = "SELECT seq, id, offset, length FROM events WHERE file = ? ORDER BY seq DESC LIMIT 1"
_IDS = "SELECT seq, id, offset, length FROM events WHERE file = ?1 AND id IN (SELECT value FROM json_each(?2))"
_BEGINNING = """
SELECT id FROM events WHERE file = ?1 AND id >= ?2 AND id < ?2 || char(1114111) AND seq <= ?3 ORDER BY id LIMIT ?4
"""
_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_REMOVE = (
    "DELETE FROM events WHERE file = ?",
    "DELETE FROM lanes WHERE file = ?",
    "DELETE FROM files WHERE key = ?",
)


class StaleIndexError(Exception):
    """The index was made anew meanwhile, or disagrees with a file that looked unchanged: ask again."""


class Known(msgspec.Struct, frozen=True):
    """What the index knows of one file."""

    generation: int
    """Which making of the index says so."""
    key: int
    id: str
    inode: int
    size: int
    modified: int
    read: int
    """The first byte that is not part of a whole append."""
    version: int
    parent: str | None
    parent_seq: int
    owner: str | None

    def describes(self, stat: os.stat_result) -> bool:
        return (self.inode, self.size, self.modified) == (stat.st_ino, stat.st_size, stat.st_mtime_ns)


class Spot(msgspec.Struct, frozen=True):
    """Where an event stands in its file."""

    seq: int
    id: str
    offset: int
    length: int


class Index:
    """One connection, one lock: its statements are short, and the files are read outside of it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self.generation = 0

    @contextmanager
    def transaction(self, known: Known | None = None) -> Iterator[sqlite3.Connection]:
        with self.reading(known) as connection:
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
    def reading(self, known: Known | None = None) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._closed:
                raise StoreClosed
            if known is not None and known.generation != self.generation:
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
            if connection.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                for statement in _schema():
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {VERSION:d}")
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def restart(self, error: Exception, generation: int) -> None:
        """Begin anew after an error: in a new file if the old one is broken, in memory if none can be written."""
        with self._lock:
            if generation != self.generation:
                return
            self.generation += 1
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            code = (getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_CORRUPT) & 0xFF
            if code in _BROKEN:
                for suffix in ("", "-wal", "-shm"):
                    with suppress(OSError):
                        os.unlink(self._path + suffix)
            if code not in _BROKEN or os.path.exists(self._path):
                self._path = ":memory:"

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def get(self, session_id: str) -> Known | None:
        with self.reading() as connection:
            row, generation = connection.execute(_GET, (session_id,)).fetchone(), self.generation
        return None if row is None else Known(generation, *row)

    def begin(self, record: SessionRecord, read: int) -> Known:
        """Note a file of which only the header was read."""
        with self.transaction() as connection:
            self.forget(record.id)
            row = (record.id, read, record.version, record.parent, record.parent_seq, record.owner)
            key = connection.execute(_ADD, row).lastrowid
            assert key is not None
            self._set_tips(connection, key, record.lanes)
        found = self.get(record.id)
        assert found is not None
        return found

    def add(
        self,
        known: Known,
        lines: Iterable[Placed],
        tips: Mapping[str, LaneTip],
        read: int,
        stat: os.stat_result,
    ) -> Known:
        """Note lines that were appended or found, and the state of the file after them."""
        version = known.version
        with self.transaction(known) as connection:
            for placed in lines:
                event = placed.line.entry.event
                row = (event.seq, event.id, root_key(event.lane), event.kind, placed.offset, placed.length)
                connection.execute(_EVENT, (known.key, *row))
                version = max(version, event.seq)
            self._set_tips(connection, known.key, tips)
            state = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            connection.execute(_MOVE, (*state, read, version, known.key))
        return msgspec.structs.replace(
            known, inode=state[0], size=state[1], modified=state[2], read=read, version=version
        )

    @staticmethod
    def _set_tips(connection: sqlite3.Connection, key: int, tips: Mapping[str, LaneTip]) -> None:
        for lane, tip in tips.items():
            connection.execute(_TIP, (key, lane, tip.mark, tip.epoch, tip.start, tip.base, tip.base_epoch))

    def forget(self, session_id: str) -> None:
        with self.transaction() as connection:
            row = connection.execute(_GET, (session_id,)).fetchone()
            if row is not None:
                for statement in _REMOVE:
                    connection.execute(statement, (row[0],))

    def tips(self, known: Known, lanes: Iterable[str] | None = None) -> dict[str, LaneTip]:
        """The tips of some lanes, or of all."""
        names = None if lanes is None else msgspec.json.encode(list(lanes)).decode()
        with self.reading(known) as connection:
            return {lane: LaneTip(*tip) for lane, *tip in connection.execute(_TIPS, (known.key, names))}

    def last(self, known: Known) -> Spot | None:
        with self.reading(known) as connection:
            row = connection.execute(_LAST, (known.key,)).fetchone()
        return None if row is None else Spot(*row)

    def find(self, known: Known, ids: Sequence[str]) -> list[Spot]:
        with self.reading(known) as connection:
            rows = connection.execute(_IDS, (known.key, msgspec.json.encode(list(ids)).decode()))
            return [Spot(*row) for row in rows]

    def ids(self, known: Known, prefix: str, until: int, limit: int) -> list[str]:
        """Ids that begin so, of events up to this seq."""
        with self.reading(known) as connection:
            return [row[0] for row in connection.execute(_BEGINNING, (known.key, prefix, until, max(0, limit)))]


def _schema() -> list[str]:
    text = (resources.files("holdfast.stores.jsonl") / "index.sql").read_text(encoding="utf-8")
    return [statement for statement in text.split(";") if statement.strip()]
