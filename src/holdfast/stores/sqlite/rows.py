"""From rows to events and records, and the lookups that reading and writing share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ...errors import CorruptLog, UnknownSession
from ...events import Event, LaneTip, SessionRecord
from ..admission import Entry

COLUMNS = "id, kind, time, body, lane, seq, epoch, v, digest, rewritten"
NO_END = 2**63 - 1

_CHAIN = """
WITH RECURSIVE chain (key, parent, parent_seq, until) AS (
    SELECT key, parent, parent_seq, 9223372036854775807 FROM sessions WHERE id = ?
    UNION ALL
    SELECT s.key, s.parent, s.parent_seq, min(chain.until, chain.parent_seq)
    FROM chain JOIN sessions AS s ON s.key = chain.parent
)
SELECT key, until FROM chain
"""
_FIND_ONE = f"SELECT {COLUMNS} FROM events WHERE session = ? AND id = ? AND seq <= ?"  # noqa: S608
_FIND = f"""
SELECT {COLUMNS} FROM events
WHERE session = ? AND id IN (SELECT value FROM json_each(?)) AND seq <= ?
"""  # noqa: S608
_SESSION = """
SELECT s.key, s.id, s.created, s.owner, s.version, s.parent_seq, p.id, r.record
FROM sessions AS s JOIN records AS r ON r.session = s.key LEFT JOIN sessions AS p ON p.key = s.parent
WHERE s.id = ?
"""
_LANES = "SELECT lane, mark, epoch, start, base, base_epoch FROM lanes WHERE session = ? ORDER BY lane"

Row = tuple[Any, ...]
Chain = list[tuple[int, int]]


class Wide(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a record that never change, kept as one JSON text."""

    system: Any = None
    tools: Any = None
    format: str | None = None
    model: str | None = None
    metadata: dict[str, Any] = {}


_wide = msgspec.json.Decoder(Wide)
_json = msgspec.json.Decoder()


def event_of(row: Row) -> Event:
    try:
        body = _json.decode(row[3])
    except msgspec.DecodeError as error:
        raise CorruptLog(f"Event {row[0]!r} cannot be read ({error}): restore a backup.") from error
    return Event(row[0], row[1], row[2], body, row[4] or None, row[5], row[6], row[7])


def entry_of(row: Row) -> Entry:
    return Entry(event_of(row), row[3].encode(), row[8], row[9])


def chain_of(connection: sqlite3.Connection, session_id: str) -> Chain:
    """The keys of a session and its ancestors, each with the last seq that the session sees of it."""
    chain: Chain = connection.execute(_CHAIN, (session_id,)).fetchall()
    if not chain:
        raise UnknownSession(session_id)
    return chain


def find(connection: sqlite3.Connection, chain: Iterable[tuple[int, int]], ids: list[str]) -> dict[str, Entry]:
    """Those of the events that exist, by id."""
    found: dict[str, Entry] = {}
    for key, until in chain:
        if len(ids) == 1:
            rows = connection.execute(_FIND_ONE, (key, ids[0], until))
        else:
            rows = connection.execute(_FIND, (key, msgspec.json.encode(ids).decode(), until))
        for row in rows:
            found.setdefault(row[0], entry_of(row))
    return found


def record_of(connection: sqlite3.Connection, session_id: str) -> SessionRecord:
    row = connection.execute(_SESSION, (session_id,)).fetchone()
    if row is None:
        raise UnknownSession(session_id)
    key, name, created, owner, version, parent_seq, parent, wide = row
    rest = _wide.decode(wide)
    return SessionRecord(
        id=name,
        created=created,
        owner=owner,
        system=rest.system,
        tools=rest.tools,
        format=rest.format,
        model=rest.model,
        parent=parent,
        parent_seq=parent_seq,
        version=version,
        lanes=dict(lanes_of(connection, key)),
        metadata=rest.metadata,
    )


def lanes_of(connection: sqlite3.Connection, key: int) -> Iterator[tuple[str, LaneTip]]:
    for lane, *tip in connection.execute(_LANES, (key,)):
        yield lane, LaneTip(*tip)
