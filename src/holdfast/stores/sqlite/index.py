"""The full-text index: filled after the commit, up to a watermark; what is newer is scanned by the search."""

from __future__ import annotations

import sqlite3

import msgspec

from ..texts import fold, text_of
from .connection import script, statements

READING = 1
"""Raise it when `text_of` or `fold` changes: the index is then made anew."""
PIECE = 400
"""Events indexed in one transaction."""
PIECE_CHARACTERS = 1_000_000

_GET = "SELECT value FROM meta WHERE name = ?"
_SET = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_HAS = "SELECT 1 FROM sqlite_schema WHERE name = 'search'"
_TAIL = "SELECT row, body FROM events WHERE row > ? ORDER BY row LIMIT ?"
_ADD = "INSERT INTO search (rowid, text) VALUES (?, ?)"
_DROP = "INSERT INTO search (search, rowid, text) VALUES ('delete', ?, ?)"
_OWN = "SELECT row, body FROM events WHERE session = ? AND row <= ?"
_LAST = "SELECT coalesce(max(row), 0) FROM events"


def make(connection: sqlite3.Connection) -> bool:
    """Create the index where this SQLite can, and empty one of another reading; says if it is there."""
    try:
        for statement in statements(script("search.sql")):
            connection.execute(statement)
        if _get(connection, "reading") != READING:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO search (search) VALUES ('delete-all')")
            connection.execute(_SET, ("watermark", 0))
            connection.execute(_SET, ("reading", READING))
            connection.execute("COMMIT")
    except sqlite3.OperationalError:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return False
    return True


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


def fill(connection: sqlite3.Connection) -> bool:
    """Index the next piece, and scrub what was removed; True if there is more to do."""
    if not usable(connection):
        return False
    connection.execute("BEGIN IMMEDIATE")
    at, size = watermark(connection), 0
    rows = connection.execute(_TAIL, (at, PIECE)).fetchall()
    for row, body in rows:
        text = _text(body)
        connection.execute(_ADD, (row, text))
        at, size = row, size + len(text)
        if size > PIECE_CHARACTERS:
            break
    if rows:
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


def replace(connection: sqlite3.Connection, row: int, old: str, new: str) -> None:
    """Forget what a rewritten event said."""
    if not _touch(connection) or row > watermark(connection):
        return
    connection.execute(_DROP, (row, _text(old)))
    connection.execute(_ADD, (row, _text(new)))


def forget(connection: sqlite3.Connection, session: int) -> None:
    """Forget all events of a session, before its rows go."""
    if not _touch(connection):
        return
    for row, body in connection.execute(_OWN, (session, watermark(connection))).fetchall():
        connection.execute(_DROP, (row, _text(body)))


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


def _text(body: str) -> str:
    """Folded, and padded so that a word at the very end also begins a trigram."""
    return fold(text_of(msgspec.json.decode(body))) + "\n\n"
