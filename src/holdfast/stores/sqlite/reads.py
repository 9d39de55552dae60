"""Reading: slices of a session and its ancestors, records, media, and the check of what is stored."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from ...events import Event, SessionRecord, root_key
from ..admission import Entry
from ..checks import find_problems
from ..log import Slice
from .rows import COLUMNS, NO_END, Chain, Row, chain_of, entry_of, event_of, record_of

_WHICH = f"""
SELECT {COLUMNS} FROM events
WHERE session = ? AND lane = ? AND seq > ? AND seq <= ?
  AND (? IS NULL OR kind IN (SELECT value FROM json_each(?)))
"""  # noqa: S608
_OLDEST = _WHICH + "ORDER BY seq"
_NEWEST = _WHICH + "ORDER BY seq DESC"
_BY_ID = f"""
SELECT {COLUMNS} FROM events
WHERE session = ? AND id IN (SELECT value FROM json_each(?)) AND seq > ? AND seq <= ?
"""  # noqa: S608
_ALL_LANES = """
WITH RECURSIVE used (lane) AS (
    SELECT min(lane) FROM events WHERE session = ?1
    UNION ALL
    SELECT (SELECT min(lane) FROM events WHERE session = ?1 AND lane > used.lane) FROM used WHERE lane IS NOT NULL
)
SELECT lane FROM used WHERE lane IS NOT NULL
"""
_SESSIONS = "SELECT id FROM sessions ORDER BY created DESC, id DESC LIMIT ?"
_OWNED = "SELECT id FROM sessions WHERE owner = ? ORDER BY created DESC, id DESC LIMIT ?"
_MEDIA = "SELECT digest, data FROM media WHERE session = ? AND digest IN (SELECT value FROM json_each(?))"
_OWN = f"SELECT {COLUMNS} FROM events WHERE session = ? ORDER BY seq, row"  # noqa: S608
_BEGINNING = """
SELECT id FROM events WHERE session = ?1 AND id >= ?2 AND id < ?2 || char(1114111) AND seq <= ?3 ORDER BY id LIMIT ?4
"""
_PLACES = "SELECT id, seq FROM events WHERE session = ? AND seq <= ?"


def read(connection: sqlite3.Connection, session_id: str, which: Slice) -> list[Event]:
    chain = chain_of(connection, session_id)
    after = min(which.after, NO_END)
    until = NO_END if which.until is None else min(which.until, NO_END)
    if which.ids:
        rows = _by_id(connection, chain, which, after, until)
    elif which.newest:
        rows = _merged(connection, chain, which, after, until)
    else:
        rows = _merged(connection, chain[::-1], which, after, until)
    chosen = list(rows if which.limit is None else islice(rows, max(0, which.limit)))
    if which.newest:
        chosen.reverse()
    return [event_of(row) for row in chosen]


def _merged(connection: sqlite3.Connection, chain: Chain, which: Slice, after: int, until: int) -> Iterator[Row]:
    """Rows in order, newest first if asked: session by session, and in each its lanes merged by seq."""
    statement = _NEWEST if which.newest else _OLDEST
    kinds = msgspec.json.encode(which.kinds).decode() if which.kinds else None
    for key, seen in chain:
        end = min(until, seen)
        if end <= after:
            continue
        lanes = [root_key(which.lane)]
        if which.any_lane:
            lanes = [row[0] for row in connection.execute(_ALL_LANES, (key,))]
        parts = [connection.execute(statement, (key, lane, after, end, kinds, kinds)) for lane in lanes]
        if len(parts) == 1:
            yield from parts[0]
        else:
            yield from heapq.merge(*parts, key=lambda row: row[5], reverse=which.newest)


def _by_id(connection: sqlite3.Connection, chain: Chain, which: Slice, after: int, until: int) -> Iterator[Row]:
    ids = msgspec.json.encode(which.ids).decode()
    lane = root_key(which.lane)
    rows = [
        row
        for key, seen in chain
        for row in connection.execute(_BY_ID, (key, ids, after, min(until, seen)))
        if (which.any_lane or row[4] == lane) and (not which.kinds or row[1] in which.kinds)
    ]
    return iter(sorted(rows, key=lambda row: row[5], reverse=which.newest))


def sessions(connection: sqlite3.Connection, owner: str | None, limit: int | None) -> list[SessionRecord]:
    most = -1 if limit is None else min(max(0, limit), NO_END)
    if owner is None:
        names = connection.execute(_SESSIONS, (most,)).fetchall()
    else:
        names = connection.execute(_OWNED, (owner, most)).fetchall()
    return [record_of(connection, name) for (name,) in names]


def media(connection: sqlite3.Connection, session_id: str, digests: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    names = msgspec.json.encode(list(digests)).decode()
    for key, _ in chain_of(connection, session_id):
        for digest, data in connection.execute(_MEDIA, (key, names)):
            found.setdefault(digest, data)
    return found


def ids(connection: sqlite3.Connection, session_id: str, prefix: str, limit: int) -> list[str]:
    """Ids that begin so: the index of ids is asked, whatever the length of the log."""
    most = min(max(0, limit), NO_END)
    rows = [
        row
        for key, until in chain_of(connection, session_id)
        for row in connection.execute(_BEGINNING, (key, prefix, until, most))
    ]
    return sorted({name for (name,) in rows})[:most]


def problems(connection: sqlite3.Connection, session_id: str) -> list[str]:
    chain = chain_of(connection, session_id)
    places: dict[str, int] = {}
    for key, until in chain:
        for event_id, seq in connection.execute(_PLACES, (key, until)):
            places.setdefault(event_id, seq)
    own: Iterator[Entry] = (entry_of(row) for row in connection.execute(_OWN, (chain[0][0],)))
    return find_problems(record_of(connection, session_id), own, places)
