"""Converts rows to events and session records, and looks up sessions and events by id."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ...context.events import Event, LaneTip, SessionRecord
from ...errors import CorruptLog, UnknownSession
from ..append import LogEntry

EVENT_COLUMNS = "id, kind, time, body, lane, seq, epoch, v, digest, rewritten"
MAX_SEQ = 2**63 - 1
_SESSION_CHAIN = """
WITH RECURSIVE chain (key, parent, parent_seq, until) AS (
    SELECT key, parent, parent_seq, 9223372036854775807 FROM sessions WHERE id = ?
    UNION ALL
    SELECT s.key, s.parent, s.parent_seq, min(chain.until, chain.parent_seq)
    FROM chain JOIN sessions AS s ON s.key = chain.parent
)
SELECT key, until FROM chain
"""
_FIND_EVENT = f"SELECT {EVENT_COLUMNS} FROM events WHERE session = ? AND id = ? AND seq <= ?"  # noqa: S608
_FIND_EVENTS = f"""
SELECT {EVENT_COLUMNS} FROM events
WHERE session = ? AND id IN (SELECT value FROM json_each(?)) AND seq <= ?
"""  # noqa: S608
_READ_SESSION = """
SELECT s.key, s.id, s.created, s.owner, s.version, s.parent_seq, s.parent, p.id, r.record
FROM sessions AS s JOIN records AS r ON r.session = s.key LEFT JOIN sessions AS p ON p.key = s.parent
WHERE s.id = ?
"""
_PARENT_OF = (
    "SELECT s.parent_seq, s.parent, p.id FROM sessions AS s LEFT JOIN sessions AS p ON p.key = s.parent WHERE s.key = ?"
)
_LANES_WITH_EVENTS = """
WITH RECURSIVE used (lane) AS (
    SELECT min(lane) FROM events WHERE session = ?1
    UNION ALL
    SELECT (SELECT min(lane) FROM events WHERE session = ?1 AND lane > used.lane) FROM used WHERE lane IS NOT NULL
)
SELECT lane FROM used WHERE lane IS NOT NULL
"""
_LANE_TIPS = "SELECT lane, mark, epoch, start, base, base_epoch FROM lanes WHERE session = ? ORDER BY lane"
Row = tuple[Any, ...]
SessionChain = list[tuple[int, int]]


class StoredSessionFields(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields of a session record that never change, stored as one JSON text."""

    system: Any = None
    tools: Any = None
    format: str | None = None
    model: str | None = None
    metadata: dict[str, Any] = {}
    policy: dict[str, Any] | None = None
    alternating: bool = False


_session_fields_decoder = msgspec.json.Decoder(StoredSessionFields)
_json_decoder = msgspec.json.Decoder()


def event_from_row(row: Row) -> Event:
    try:
        body = _json_decoder.decode(row[3])
    except msgspec.DecodeError as error:
        raise CorruptLog(f"Event {row[0]!r} cannot be read ({error}): restore a backup.") from error
    return Event(row[0], row[1], row[2], body, row[4] or None, row[5], row[6], row[7])


def entry_from_row(row: Row) -> LogEntry:
    return LogEntry(event_from_row(row), row[3].encode(), row[8], row[9])


def session_chain(connection: sqlite3.Connection, session_id: str) -> SessionChain:
    """Returns the keys of a session and its ancestors, each with the last seq visible to the session."""
    chain: SessionChain = connection.execute(_SESSION_CHAIN, (session_id,)).fetchall()
    if not chain:
        raise UnknownSession(session_id)
    return chain


def find_events(
    connection: sqlite3.Connection, chain: Iterable[tuple[int, int]], ids: list[str]
) -> dict[str, LogEntry]:
    """Returns those of the events that exist, by id."""
    found: dict[str, LogEntry] = {}
    for key, until in chain:
        if len(ids) == 1:
            rows = connection.execute(_FIND_EVENT, (key, ids[0], until))
        else:
            rows = connection.execute(_FIND_EVENTS, (key, msgspec.json.encode(ids).decode(), until))
        for row in rows:
            found.setdefault(row[0], entry_from_row(row))
    return found


def read_session(connection: sqlite3.Connection, session_id: str) -> SessionRecord:
    row = connection.execute(_READ_SESSION, (session_id,)).fetchone()
    if row is None:
        raise UnknownSession(session_id)
    key, name, created, owner, version, parent_seq, parent_key, parent, encoded = row
    while isinstance(parent, bytes):  # it is being deleted: the fork already counts as a child of the grandparent
        base, parent_key, parent = connection.execute(_PARENT_OF, (parent_key,)).fetchone()
        parent_seq = min(parent_seq, base)
    fields = _session_fields_decoder.decode(encoded)
    return SessionRecord(
        id=name,
        created=created,
        owner=owner,
        system=fields.system,
        tools=fields.tools,
        format=fields.format,
        model=fields.model,
        parent=parent,
        parent_seq=parent_seq,
        version=version,
        lanes=dict(lane_tips(connection, key)),
        metadata=fields.metadata,
        policy=fields.policy,
        alternating=fields.alternating,
    )


def lane_tips(connection: sqlite3.Connection, key: int) -> Iterator[tuple[str, LaneTip]]:
    for lane, *tip in connection.execute(_LANE_TIPS, (key,)):
        yield lane, LaneTip(*tip)


def lanes_with_events(connection: sqlite3.Connection, key: int) -> list[str]:
    """Returns the lanes in which a session has events of its own: one lookup for each, whatever their length."""
    return [lane for (lane,) in connection.execute(_LANES_WITH_EVENTS, (key,))]
