"""The full-text index: filled after the commit, up to a watermark; what is newer is scanned by the search."""

from __future__ import annotations

import sqlite3

import msgspec

from ...errors import CorruptLog
from ...events import Event
from ..said import Said, said_in
from ..sieve import LOOK_BACK, tool_of
from ..texts import fold
from .connection import script, statements
from .rows import COLUMNS, event_of
from .tokens import tag, tokens_of

READING = 2
"""Raise it when `said_in`, `fold` or the tokens change: the index is then made anew."""
PIECE = 400
"""Events indexed in one transaction."""
PIECE_CHARACTERS = 1_000_000
BLOCK = 1024
"""Rows whose times are noted together."""

_FIELDS = ", ".join(f"e.{name}" for name in COLUMNS.split(", "))
_ROW = f"SELECT {_FIELDS}, e.row, e.session, s.owner FROM events AS e JOIN sessions AS s ON s.key = e.session "  # noqa: S608
_TAIL = _ROW + "WHERE e.row > ? ORDER BY e.row LIMIT ?"
_ONE = _ROW + "WHERE e.row = ?"
_OWN = _ROW + "WHERE e.session = ? AND e.row <= ?"
_GET = "SELECT value FROM meta WHERE name = ?"
_SET = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_HAS = "SELECT 1 FROM sqlite_schema WHERE name = 'search'"
_ADD = "INSERT INTO search (rowid, text) VALUES (?, ?)"
_DROP = "INSERT INTO search (search, rowid, text) VALUES ('delete', ?, ?)"
_LAST = "SELECT coalesce(max(row), 0) FROM events"
_SPAN = """
INSERT INTO spans (block, first, last) VALUES (?1, ?2, ?2)
ON CONFLICT (block) DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)
"""
_BLOCKS = "SELECT min(block), max(block) FROM spans WHERE (?1 IS NULL OR last >= ?1) AND (?2 IS NULL OR first <= ?2)"
_EARLIER = f"""
SELECT {COLUMNS} FROM events
WHERE session = ?1 AND lane = ?2 AND seq < ?3 AND seq >= ?4 AND instr(body, ?5) ORDER BY seq DESC
"""  # noqa: S608


def make(connection: sqlite3.Connection) -> bool:
    """Create the index where this SQLite can, anew if it is of another reading; says if it is there."""
    try:
        if not _current(connection):
            connection.execute("BEGIN IMMEDIATE")
            if not _current(connection):  # another process may have been faster
                _make(connection)
            connection.execute("COMMIT")
    except sqlite3.OperationalError:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return False
    return True


def _current(connection: sqlite3.Connection) -> bool:
    return _get(connection, "reading") == READING and connection.execute(_HAS).fetchone() is not None


def _make(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE IF EXISTS search")
    connection.execute("DROP TABLE IF EXISTS spans")
    for statement in statements(script("search.sql")):
        connection.execute(statement)
    connection.execute(_SET, ("watermark", 0))
    connection.execute(_SET, ("reading", READING))


def usable(connection: sqlite3.Connection) -> bool:
    """Whether there is an index that this SQLite can read."""
    try:
        connection.execute("SELECT rowid FROM search LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return _get(connection, "reading") == READING


def watermark(connection: sqlite3.Connection) -> int:
    """The last row that is in the index."""
    return _get(connection, "watermark")


def behind(connection: sqlite3.Connection) -> int:
    """About how many rows are not in the index yet."""
    return int(connection.execute(_LAST).fetchone()[0]) - watermark(connection)


def rows_between(connection: sqlite3.Connection, since: str | None, until: str | None) -> tuple[int, int]:
    """The indexed rows between which all events of a span of time lie; the second below the first if there are none."""
    if since is None and until is None:
        return 0, watermark(connection)
    first, last = connection.execute(_BLOCKS, (since, until)).fetchone()
    return (1, 0) if first is None else (first * BLOCK, min(last * BLOCK + BLOCK - 1, watermark(connection)))


def fill(connection: sqlite3.Connection, piece: int | None = None) -> bool:
    """Index the next piece, and scrub what was removed; True if there is more to do."""
    if not usable(connection):
        return False
    connection.execute("BEGIN IMMEDIATE")
    at, size, times = watermark(connection), 0, []
    rows = connection.execute(_TAIL, (at, PIECE if piece is None else piece)).fetchall()
    for row in rows:
        tokens, at = _tokens(connection, row), row[-3]
        connection.execute(_ADD, (at, tokens))
        times.append((at // BLOCK, row[2]))
        size += len(row[3])
        if size > PIECE_CHARACTERS and piece is None:
            break
    if rows:
        connection.executemany(_SPAN, times)
        connection.execute(_SET, ("watermark", at))
    connection.execute("COMMIT")
    if not rows and _get(connection, "scrub"):
        _scrub(connection)
    return bool(rows)


def _scrub(connection: sqlite3.Connection) -> None:
    """Leave no trace of removed text: merge the index's segments, then empty the write-ahead log."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO search (search) VALUES ('optimize')")
    connection.execute(_SET, ("scrub", 0))
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint (TRUNCATE)").fetchall()


def replace(connection: sqlite3.Connection, row: int, new: str) -> None:
    """Forget what an event said, before its body is replaced by this one."""
    if not _touch(connection) or row > watermark(connection):
        return
    old = connection.execute(_ONE, (row,)).fetchone()
    connection.execute(_DROP, (row, _tokens(connection, old)))
    connection.execute(_ADD, (row, _tokens(connection, (*old[:3], new, *old[4:]))))


def forget(connection: sqlite3.Connection, session: int) -> None:
    """Forget all events of a session, before its rows go."""
    if not _touch(connection):
        return
    for row in connection.execute(_OWN, (session, watermark(connection))).fetchall():
        connection.execute(_DROP, (row[-3], _tokens(connection, row)))


def rewind(connection: sqlite3.Connection) -> None:
    """Row numbers past the last one will be used again, so they are not indexed yet."""
    last = connection.execute(_LAST).fetchone()[0]
    if last < watermark(connection):
        connection.execute(_SET, ("watermark", last))


def _touch(connection: sqlite3.Connection) -> bool:
    """Note that text is being removed; an index that cannot be reached from here must be made anew."""
    if usable(connection):
        connection.execute(_SET, ("scrub", 1))
        return True
    if connection.execute(_HAS).fetchone():
        connection.execute(_SET, ("reading", 0))
    return False


def _get(connection: sqlite3.Connection, name: str) -> int:
    row = connection.execute(_GET, (name,)).fetchone()
    return int(row[0]) if row else 0


def _tokens(connection: sqlite3.Connection, row: tuple[object, ...]) -> str:
    """An event as the index has it; what cannot be read has no words, and `verify` tells of it."""
    session, owner = row[-2], row[-1]
    try:
        event = event_of(row)
        said = said_in(event)
    except CorruptLog:
        return tag("s", session)
    tags = [tag("s", session), tag("k", event.kind), tag("l", event.lane or ""), tag("r", said.role)]
    tags += [tag("t", name) for name in _tools(connection, session, event, said)]
    if owner is not None:
        tags.append(tag("o", owner))
    return tokens_of(fold(said.text), tags)


def _tools(connection: sqlite3.Connection, session: object, event: Event, said: Said) -> set[str]:
    called = (tool_of(earlier(connection, session, event, call_id), call_id) for call_id in said.answers)
    return {*said.tools, *filter(None, called)}


def earlier(connection: sqlite3.Connection, session: object, event: Event, call_id: str) -> list[Event]:
    """Events shortly before this one in its lane that hold this call, the nearest first."""
    written = msgspec.json.encode(call_id).decode()
    where = (session, event.lane or "", event.seq, event.seq - LOOK_BACK, written)
    return [event_of(row) for row in connection.execute(_EARLIER, where)]
