"""The flag of a session as a row: whoever finds it expired may take it over (W13)."""

from __future__ import annotations

import sqlite3
import time

from .rows import chain_of

_TAKE = """
INSERT INTO leases (session, owner, until) VALUES (?1, ?2, ?3)
ON CONFLICT (session) DO UPDATE SET owner = excluded.owner, until = excluded.until
WHERE leases.owner = excluded.owner OR leases.until <= ?4
"""
_RELEASE = "DELETE FROM leases WHERE session = (SELECT key FROM sessions WHERE id = ?) AND owner = ?"
_HELD = "SELECT until FROM leases WHERE session = (SELECT key FROM sessions WHERE id = ?)"
_THERE = "SELECT 1 FROM sqlite_schema WHERE name = 'leases'"


def take(connection: sqlite3.Connection, session_id: str, owner: str, seconds: float) -> bool:
    key, now = chain_of(connection, session_id)[0][0], time.time()
    return connection.execute(_TAKE, (key, owner, now + seconds, now)).rowcount == 1


def release(connection: sqlite3.Connection, session_id: str, owner: str) -> None:
    connection.execute(_RELEASE, (session_id, owner))


def held(connection: sqlite3.Connection, session_id: str) -> float | None:
    """A file that cannot be written may be too old to have flags: nobody is at work on it."""
    if connection.execute(_THERE).fetchone() is None:
        return None
    row = connection.execute(_HELD, (session_id,)).fetchone()
    left = 0.0 if row is None else row[0] - time.time()
    return left if left > 0 else None
