"""Reads: slices of a session and its ancestors, session records, media, ids, and the integrity check."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from ...context.events import Event, SessionRecord, lane_key
from ..append import LogEntry, find_problems
from ..base import Slice
from .rows import (
    EVENT_COLUMNS,
    MAX_SEQ,
    Row,
    SessionChain,
    entry_from_row,
    event_from_row,
    lanes_with_events,
    read_session,
    session_chain,
)

_SELECT_SLICE = f"""
SELECT {EVENT_COLUMNS} FROM events
WHERE session = ? AND lane = ? AND seq > ? AND seq <= ?
  AND (? IS NULL OR kind IN (SELECT value FROM json_each(?)))
"""  # noqa: S608
_OLDEST_FIRST = _SELECT_SLICE + "ORDER BY seq"
_NEWEST_FIRST = _SELECT_SLICE + "ORDER BY seq DESC"
_EVENTS_BY_ID = f"""
SELECT {EVENT_COLUMNS} FROM events
WHERE session = ? AND id IN (SELECT value FROM json_each(?)) AND seq > ? AND seq <= ?
"""  # noqa: S608
_ALL_SESSION_IDS = "SELECT id FROM sessions WHERE typeof(id) = 'text' ORDER BY created DESC, id DESC LIMIT ?"
_SESSION_IDS_OF_OWNER = """
SELECT id FROM sessions WHERE owner = ? AND typeof(id) = 'text' ORDER BY created DESC, id DESC LIMIT ?
"""
_SESSION_IDS_OF_FORKS = """
WITH RECURSIVE forks (key, id) AS (
    SELECT key, id FROM sessions WHERE parent = (SELECT key FROM sessions WHERE id = ?)
    UNION ALL
    SELECT s.key, s.id FROM forks JOIN sessions AS s ON s.parent = forks.key WHERE typeof(forks.id) = 'blob'
)
SELECT id FROM forks WHERE typeof(id) = 'text' ORDER BY key
"""
_SESSION_IDS_OF_RELATIVES = """
SELECT DISTINCT s.id FROM origins AS o JOIN origins AS p ON p.origin = o.origin AND p.session <> o.session
JOIN sessions AS s ON s.key = p.session
WHERE o.session = ? AND typeof(s.id) = 'text' ORDER BY s.id
"""
_HAS_ORIGINS = "SELECT 1 FROM sqlite_schema WHERE name = 'origins'"
_READ_MEDIA = "SELECT digest, data FROM media WHERE session = ? AND digest IN (SELECT value FROM json_each(?))"
_OWN_EVENTS = f"SELECT {EVENT_COLUMNS} FROM events WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq, row"  # noqa: S608
_IDS_WITH_PREFIX = """
SELECT id FROM events WHERE session = ?1 AND id >= ?2 AND id < ?2 || char(1114111) AND seq <= ?3 ORDER BY id LIMIT ?4
"""
_ID_SEQS = "SELECT id, seq FROM events WHERE session = ? AND seq <= ?"


def read_events(connection: sqlite3.Connection, session_id: str, which: Slice) -> list[Event]:
    chain = session_chain(connection, session_id)
    after = min(which.after, MAX_SEQ)
    until = MAX_SEQ if which.until is None else min(which.until, MAX_SEQ)
    if which.ids:
        rows = _read_by_id(connection, chain, which, after, until)
    elif which.newest:
        rows = _merge_lanes(connection, chain, which, after, until)
    else:
        rows = _merge_lanes(connection, chain[::-1], which, after, until)
    chosen = list(rows if which.limit is None else islice(rows, max(0, which.limit)))
    if which.newest:
        chosen.reverse()
    return [event_from_row(row) for row in chosen]


def _merge_lanes(
    connection: sqlite3.Connection, chain: SessionChain, which: Slice, after: int, until: int
) -> Iterator[Row]:
    """Yields rows in the requested order, session by session, with the lanes of each merged by seq."""
    statement = _NEWEST_FIRST if which.newest else _OLDEST_FIRST
    kinds = msgspec.json.encode(which.kinds).decode() if which.kinds else None
    for key, visible in chain:
        end = min(until, visible)
        if end <= after:
            continue
        lanes = [lane_key(which.lane)]
        if which.any_lane:
            lanes = lanes_with_events(connection, key)
        parts = [connection.execute(statement, (key, lane, after, end, kinds, kinds)) for lane in lanes]
        if len(parts) == 1:
            yield from parts[0]
        else:
            yield from heapq.merge(*parts, key=lambda row: row[5], reverse=which.newest)


def _read_by_id(
    connection: sqlite3.Connection, chain: SessionChain, which: Slice, after: int, until: int
) -> Iterator[Row]:
    ids = msgspec.json.encode(which.ids).decode()
    lane = lane_key(which.lane)
    rows = [
        row
        for key, visible in chain
        for row in connection.execute(_EVENTS_BY_ID, (key, ids, after, min(until, visible)))
        if (which.any_lane or row[4] == lane) and (not which.kinds or row[1] in which.kinds)
    ]
    return iter(sorted(rows, key=lambda row: row[5], reverse=which.newest))


def list_forks(connection: sqlite3.Connection, session_id: str) -> list[SessionRecord]:
    session_chain(connection, session_id)
    ids = connection.execute(_SESSION_IDS_OF_FORKS, (session_id,)).fetchall()
    return [read_session(connection, name) for (name,) in ids]


def list_relatives(connection: sqlite3.Connection, session_id: str) -> list[SessionRecord]:
    key = session_chain(connection, session_id)[0][0]
    return [read_session(connection, name) for name in relatives_of(connection, key)]


def relatives_of(connection: sqlite3.Connection, key: int) -> list[str]:
    """Returns the ids of the sessions that have copies of the same events; none in a read-only file without them."""
    if connection.execute(_HAS_ORIGINS).fetchone() is None:
        return []
    return [name for (name,) in connection.execute(_SESSION_IDS_OF_RELATIVES, (key,))]


def list_sessions(connection: sqlite3.Connection, owner: str | None, limit: int | None) -> list[SessionRecord]:
    bound = -1 if limit is None else min(max(0, limit), MAX_SEQ)
    if owner is None:
        names = connection.execute(_ALL_SESSION_IDS, (bound,)).fetchall()
    else:
        names = connection.execute(_SESSION_IDS_OF_OWNER, (owner, bound)).fetchall()
    return [read_session(connection, name) for (name,) in names]


def read_media(connection: sqlite3.Connection, session_id: str, digests: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    names = msgspec.json.encode(list(digests)).decode()
    for key, _ in session_chain(connection, session_id):
        for digest, data in connection.execute(_READ_MEDIA, (key, names)):
            found.setdefault(digest, data)
    return found


def ids_with_prefix(connection: sqlite3.Connection, session_id: str, prefix: str, limit: int) -> list[str]:
    """Looks the prefix up in the index of ids, whatever the length of the log."""
    bound = min(max(0, limit), MAX_SEQ)
    rows = [
        row
        for key, until in session_chain(connection, session_id)
        for row in connection.execute(_IDS_WITH_PREFIX, (key, prefix, until, bound))
    ]
    return sorted({name for (name,) in rows})[:bound]


def check_session(connection: sqlite3.Connection, session_id: str) -> list[str]:
    chain = session_chain(connection, session_id)
    seqs: dict[str, int] = {}
    for key, until in chain:
        for event_id, seq in connection.execute(_ID_SEQS, (key, until)):
            seqs.setdefault(event_id, seq)
    record = read_session(connection, session_id)
    own: Iterator[LogEntry] = (
        entry_from_row(row)
        for key, until in reversed(chain)
        if until > record.parent_seq
        for row in connection.execute(_OWN_EVENTS, (key, record.parent_seq, until))
    )
    return find_problems(record, own, seqs)
