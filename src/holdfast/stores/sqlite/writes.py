"""Everything that changes a database. Each function checks first and writes last, inside one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

import msgspec

from ...errors import InvalidInput, UnknownEvent, UnknownSession
from ...events import LaneTip, SessionRecord
from ..admission import Entry, Write, admit, check_record, lanes_needed, rewrite_entry, stored_text
from ..log import Appended, Unchanged
from . import index
from .rows import NO_END, Chain, Wide, chain_of, find

_STATE = """
SELECT s.key, s.version, s.parent, l.lane, l.mark, l.epoch, l.start, l.base, l.base_epoch
FROM sessions AS s LEFT JOIN lanes AS l ON l.session = s.key AND l.lane = ''
WHERE s.id = ?
"""
_TIP = "SELECT mark, epoch, start, base, base_epoch FROM lanes WHERE session = ? AND lane = ?"
_SET_TIP = """
INSERT INTO lanes (session, lane, mark, epoch, start, base, base_epoch) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (session, lane) DO UPDATE SET mark = excluded.mark, epoch = excluded.epoch, start = excluded.start
"""
_INSERT = """
INSERT INTO events (session, seq, id, lane, kind, time, epoch, v, digest, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_MOVE = "UPDATE sessions SET version = ? WHERE key = ? AND version = ?"
_ADD_MEDIA = "INSERT OR IGNORE INTO media (session, digest, seq, data) VALUES (?, ?, ?, ?)"
_EXISTS = "SELECT version, key FROM sessions WHERE id = ?"
_CREATE = "INSERT INTO sessions (id, version, parent, parent_seq, owner, created) VALUES (?, ?, ?, ?, ?, ?)"
_RECORD = "INSERT INTO records (session, record) VALUES (?, ?)"
_PLACE = "SELECT row FROM events WHERE session = ? AND id = ? AND seq <= ?"
_REPLACE = "UPDATE events SET body = ?, rewritten = ? WHERE row = ?"
_FORGET = "DELETE FROM media WHERE session = ? AND digest IN (SELECT value FROM json_each(?))"
_FORKS = "SELECT key, parent_seq FROM sessions WHERE parent = ?"
_SHARE_EVENTS = """
INSERT INTO events (session, seq, id, lane, kind, time, epoch, v, digest, rewritten, body)
SELECT ?, seq, id, lane, kind, time, epoch, v, digest, rewritten, body
FROM events WHERE session = ? AND seq <= ?
"""
_SHARE_MEDIA = """
INSERT OR IGNORE INTO media (session, digest, seq, data)
SELECT ?, digest, seq, data FROM media WHERE session = ? AND seq <= ?
"""
_REPARENT = """
UPDATE sessions SET parent = (SELECT parent FROM sessions WHERE key = ?1),
    parent_seq = min(parent_seq, (SELECT parent_seq FROM sessions WHERE key = ?1))
WHERE parent = ?1
"""
_REMOVE = (
    "DELETE FROM events WHERE session = ?",
    "DELETE FROM media WHERE session = ?",
    "DELETE FROM lanes WHERE session = ?",
    "DELETE FROM leases WHERE session = ?",
    "DELETE FROM records WHERE session = ?",
    "DELETE FROM sessions WHERE key = ?",
)


def create(connection: sqlite3.Connection, record: SessionRecord, wide: str) -> None:
    parent = None if record.parent is None else connection.execute(_EXISTS, (record.parent,)).fetchone()
    if record.parent is not None and parent is None:
        raise UnknownSession(record.parent)
    check_record(record, parent[0] if parent else None)
    if connection.execute(_EXISTS, (record.id,)).fetchone():
        raise InvalidInput(f"Session {record.id!r} exists already: use another id.")
    row = (
        record.id,
        record.version,
        parent[1] if parent else None,
        record.parent_seq,
        record.owner,
        record.created,
    )
    key = connection.execute(_CREATE, row).lastrowid
    assert key is not None
    connection.execute(_RECORD, (key, wide))
    _set_tips(connection, key, record.lanes)


def wide_of(record: SessionRecord) -> str:
    """What `create` keeps beside the narrow row, encoded before anything is locked."""
    wide = Wide(record.system, record.tools, record.format, record.model, record.metadata)
    try:
        return msgspec.json.encode(wide).decode()
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"Session {record.id!r} cannot be stored as JSON: {error}.") from error


def append(
    connection: sqlite3.Connection,
    session_id: str,
    entries: tuple[Entry, ...],
    after: int | None,
    when: Unchanged | None,
    tip: LaneTip | None,
    media: Mapping[str, str],
) -> Appended:
    """A single plain event is inserted in the hope that its id is new; the index tells if it is not."""
    state = connection.execute(_STATE, (session_id,)).fetchone()
    if state is None:
        raise UnknownSession(session_id)
    key, version, parent = state[:3]
    tips = {} if state[3] is None else {"": LaneTip(*state[4:])}
    for lane in lanes_needed(entries, when) - {""}:
        row = connection.execute(_TIP, (key, lane)).fetchone()
        if row is not None:
            tips[lane] = LaneTip(*row)
    known: dict[str, Entry] = {}
    hopeful = len(entries) == 1 and parent is None and when is None and (after is None or after == version)
    while True:
        if not hopeful:
            chain: Chain = [(key, NO_END)] if parent is None else chain_of(connection, session_id)
            known = find(connection, chain, [entry.event.id for entry in entries])
        decided = admit(session_id, entries, known, version, tips, after, when, tip)
        if not isinstance(decided, Write):
            return decided
        try:
            _insert(connection, key, decided.entries)
            break
        except sqlite3.IntegrityError:
            if not hopeful:
                raise
            hopeful = False
    moved = connection.execute(_MOVE, (decided.answer.version, key, version)).rowcount
    assert moved == 1, "the write lock is held, so nobody else can have moved the version"
    if decided.tips:
        _set_tips(connection, key, decided.tips)
    for digest, data in media.items():
        connection.execute(_ADD_MEDIA, (key, digest, decided.answer.version, data))
    return decided.answer


def _insert(connection: sqlite3.Connection, key: int, entries: Sequence[Entry]) -> None:
    for entry in entries:
        e, body = entry.event, entry.body.decode()
        row = (key, e.seq, e.id, e.lane or "", e.kind, e.time, e.epoch, e.v, entry.digest, body)
        connection.execute(_INSERT, row)


def _set_tips(connection: sqlite3.Connection, key: int, tips: Mapping[str, LaneTip]) -> None:
    for lane, tip in tips.items():
        row = (key, lane, tip.mark, tip.epoch, tip.start, tip.base, tip.base_epoch)
        connection.execute(_SET_TIP, row)


def rewrite(connection: sqlite3.Connection, session_id: str, entries: Sequence[Entry], forget: Sequence[str]) -> None:
    chain = chain_of(connection, session_id)
    stored = find(connection, chain, [entry.event.id for entry in entries])
    for entry in entries:
        if entry.event.id not in stored:
            raise UnknownEvent(entry.event.id, session_id)
    for entry in entries:
        new = rewrite_entry(stored[entry.event.id], entry.body, entry.event.body)
        for key, until in chain:
            for (row,) in connection.execute(_PLACE, (key, entry.event.id, until)).fetchall():
                index.replace(connection, row, new.body.decode())
                connection.execute(_REPLACE, (new.body.decode(), new.rewritten, row))
    names = msgspec.json.encode([stored_text(session_id, digest) for digest in forget]).decode()
    for key, _ in chain:
        connection.execute(_FORGET, (key, names))


def delete(connection: sqlite3.Connection, session_id: str) -> None:
    key = chain_of(connection, session_id)[0][0]
    for fork, until in connection.execute(_FORKS, (key,)).fetchall():
        connection.execute(_SHARE_EVENTS, (fork, key, until))
        connection.execute(_SHARE_MEDIA, (fork, key, until))
    connection.execute(_REPARENT, (key,))
    index.forget(connection, key)
    for statement in _REMOVE:
        connection.execute(statement, (key,))
    index.rewind(connection)
