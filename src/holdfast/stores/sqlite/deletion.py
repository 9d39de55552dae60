"""Deletion in pieces: a session disappears at once, its rows are removed step by step.

Hiding replaces the session's id by a BLOB, which no caller can name; its forks still read the events they share,
through its key. Each step copies shared events to a fork, newest first, and lowers the fork's `parent_seq` with them:
an event is visible exactly once at any time. A process that dies leaves the next step to any other.
"""

from __future__ import annotations

import sqlite3
import time

from ...context.events import new_id
from ...errors import UnknownSession
from . import index
from .rows import Row, lanes_with_events

STEP_SECONDS = 0.01
"""How long one step may hold the write lock."""
_BATCH_EVENTS = 50
"""Events copied or removed between two looks at the clock."""
_HIDE = "UPDATE sessions SET id = ? WHERE key = ?"
_KEY = "SELECT key FROM sessions WHERE id = ?"
_DROP_LEASE = "DELETE FROM leases WHERE session = ?"
_HIDDEN_IDS = "SELECT id FROM sessions WHERE id >= x''"
_NEXT_HIDDEN = """
SELECT s.key, s.parent, s.parent_seq FROM sessions AS s
WHERE s.id >= x'' AND NOT EXISTS (SELECT 1 FROM sessions AS f WHERE f.parent = s.key AND f.id >= x'')
ORDER BY s.key LIMIT 1
"""
"""Forks before their parents: a fork that is deleted as well needs no copies."""
_ADD_ORIGIN = "INSERT INTO origins (session, origin) VALUES (?, ?)"
_COPY_ORIGINS = """
INSERT OR IGNORE INTO origins (session, origin) SELECT ?1, origin FROM origins WHERE session = ?2
"""
_NEXT_FORK = "SELECT key, parent_seq FROM sessions WHERE parent = ? ORDER BY key LIMIT 1"
_MISSING_MEDIA = """
SELECT digest FROM media AS m WHERE session = ?1 AND seq <= ?2
  AND NOT EXISTS (SELECT 1 FROM media AS o WHERE o.session = ?3 AND o.digest = m.digest)
"""
_COPY_MEDIA = """
INSERT INTO media (session, digest, seq, data) SELECT ?, digest, seq, data FROM media WHERE session = ? AND digest = ?
"""
_RESERVED_ROWS = "SELECT value FROM meta WHERE name = 'copies to ' || ?"
_RESERVE_ROWS = """
INSERT INTO meta (name, value) SELECT 'copies to ' || ?, coalesce(max(row), 0) FROM events RETURNING value
"""
_END_RESERVATION = "DELETE FROM meta WHERE name = 'copies to ' || ?"
_COPY_EVENTS = """
INSERT INTO events (row, session, seq, id, lane, kind, time, epoch, v, digest, rewritten, body)
SELECT ?1 + seq, ?2, seq, id, lane, kind, time, epoch, v, digest, rewritten, body
FROM events WHERE session = ?3 AND lane = ?4 AND seq > ?5 AND seq <= ?6
"""
_SET_PARENT = "UPDATE sessions SET parent = ?, parent_seq = ? WHERE key = ?"
_NEWEST_EVENTS = "SELECT row FROM events WHERE session = ? ORDER BY lane DESC, seq DESC LIMIT ?"
_DELETE_EVENT = "DELETE FROM events WHERE row = ?"
_SOME_MEDIA = "SELECT digest FROM media WHERE session = ? LIMIT ?"
_DELETE_MEDIA = "DELETE FROM media WHERE session = ? AND digest = ?"
_DELETE_SESSION = (
    _END_RESERVATION,
    "DELETE FROM lanes WHERE session = ?",
    "DELETE FROM leases WHERE session = ?",
    "DELETE FROM origins WHERE session = ?",
    "DELETE FROM records WHERE session = ?",
    "DELETE FROM sessions WHERE key = ?",
)


def hide_session(connection: sqlite3.Connection, session_id: str) -> None:
    """Hides a session; raises UnknownSession if there is none, unless an earlier deletion of it goes on."""
    row = connection.execute(_KEY, (session_id,)).fetchone()
    if row is not None:
        connection.execute(_HIDE, (_hidden_id(session_id, row[0]), row[0]))
        connection.execute(_DROP_LEASE, row)
        connection.execute(_ADD_ORIGIN, (row[0], new_id()))
        return
    begun = _hidden_id(session_id)
    if not any(name.startswith(begun) for (name,) in connection.execute(_HIDDEN_IDS)):
        raise UnknownSession(session_id)


def _hidden_id(session_id: str, key: int | None = None) -> bytes:
    return session_id.encode() + b"\0deleted " + (b"" if key is None else str(key).encode())


def has_hidden(connection: sqlite3.Connection) -> bool:
    return connection.execute(_HIDDEN_IDS).fetchone() is not None


def remove_hidden(connection: sqlite3.Connection) -> bool:
    """Removes hidden sessions for a limited time, inside a transaction; True if there is more to remove."""
    until = time.monotonic() + STEP_SECONDS
    while (found := connection.execute(_NEXT_HIDDEN).fetchone()) is not None:
        key = found[0]
        fork = connection.execute(_NEXT_FORK, (key,)).fetchone()
        if fork is not None:
            _copy_to_fork(connection, found, fork, until)
        elif not _remove_events(connection, key, until) or not _remove_media(connection, key, until):
            return True
        else:
            for statement in _DELETE_SESSION:
                connection.execute(statement, (key,))
        if time.monotonic() >= until:
            return connection.execute(_NEXT_HIDDEN).fetchone() is not None
    return False


def _copy_to_fork(connection: sqlite3.Connection, hidden: Row, child: Row, until: float) -> None:
    """Copies media, then events, newest first; the fork gets the grandparent as its parent with the last of them.

    The copies' row numbers are reserved with the first of them, so that search finds them in order of seq.
    """
    (key, parent, base), (fork, shared) = hidden, child
    if shared > base:
        connection.execute(_COPY_ORIGINS, (fork, key))
    for (digest,) in connection.execute(_MISSING_MEDIA, (key, shared, fork)).fetchall():
        connection.execute(_COPY_MEDIA, (fork, key, digest))
        if time.monotonic() >= until:
            return
    first = connection.execute(_RESERVED_ROWS, (fork,)).fetchone()
    if first is None and shared > base:
        first = connection.execute(_RESERVE_ROWS, (fork,)).fetchone()
    lanes = lanes_with_events(connection, key)
    while shared > base:
        low = max(base, shared - _BATCH_EVENTS)
        for lane in lanes:
            connection.execute(_COPY_EVENTS, (first[0], fork, key, lane, low, shared))
        shared = low
        if time.monotonic() >= until:
            break
    if shared > base:
        connection.execute(_SET_PARENT, (key, shared, fork))
    else:
        connection.execute(_SET_PARENT, (parent, shared, fork))
        connection.execute(_END_RESERVATION, (fork,))


def _remove_events(connection: sqlite3.Connection, key: int, until: float) -> bool:
    """Removes events, newest first, since the index of a tool's result depends on its call; True if none is left."""
    indexed = index.begin_removal(connection)
    over = False
    while not over and (rows := connection.execute(_NEWEST_EVENTS, (key, _BATCH_EVENTS)).fetchall()):
        for (row,) in rows:
            if row <= indexed:
                index.unindex_event(connection, row)
            connection.execute(_DELETE_EVENT, (row,))
            if over := time.monotonic() >= until:
                break
    index.rewind_watermark(connection)
    return not over


def _remove_media(connection: sqlite3.Connection, key: int, until: float) -> bool:
    while found := connection.execute(_SOME_MEDIA, (key, _BATCH_EVENTS)).fetchall():
        for (digest,) in found:
            connection.execute(_DELETE_MEDIA, (key, digest))
            if time.monotonic() >= until:
                return False
    return True
