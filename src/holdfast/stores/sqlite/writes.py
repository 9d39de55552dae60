"""Writes: each function checks first and writes last, inside one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

import msgspec

from ...context.events import LaneTip, SessionRecord
from ...errors import InvalidInput, UnknownSession
from ..append import (
    AppendPlan,
    LogEntry,
    RewritePlan,
    batches,
    check_mark,
    check_record,
    plan_append,
    plan_rewrite,
    require_unicode,
    required_lanes,
    rewrite_entries,
    with_new_fields,
)
from ..base import Appended, Rewrite, Unchanged
from . import index
from .deletion import has_hidden
from .reads import relatives_of
from .rows import MAX_SEQ, SessionChain, StoredSessionFields, find_events, lane_tips, read_session, session_chain

_SESSION_STATE = """
SELECT s.key, s.version, s.parent, l.lane, l.mark, l.epoch, l.start, l.base, l.base_epoch
FROM sessions AS s LEFT JOIN lanes AS l ON l.session = s.key AND l.lane = ''
WHERE s.id = ?
"""
_GET_TIP = "SELECT mark, epoch, start, base, base_epoch FROM lanes WHERE session = ? AND lane = ?"
_SET_TIP = """
INSERT INTO lanes (session, lane, mark, epoch, start, base, base_epoch) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (session, lane) DO UPDATE SET mark = excluded.mark, epoch = excluded.epoch, start = excluded.start
"""
_INSERT_EVENT = """
INSERT INTO events (session, seq, id, lane, kind, time, epoch, v, digest, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SET_VERSION = "UPDATE sessions SET version = ? WHERE key = ? AND version = ?"
_ADD_MEDIA = "INSERT OR IGNORE INTO media (session, digest, seq, data) VALUES (?, ?, ?, ?)"
_SESSION_VERSION_AND_KEY = "SELECT version, key FROM sessions WHERE id = ?"
_INSERT_SESSION = "INSERT INTO sessions (id, version, parent, parent_seq, owner, created) VALUES (?, ?, ?, ?, ?, ?)"
_INSERT_RECORD = "INSERT INTO records (session, record) VALUES (?, ?)"
_EVENT_ROW = "SELECT row FROM events WHERE session = ? AND id = ?"
_REPLACE_RECORD = "UPDATE records SET record = ? WHERE session = ?"
_REPLACE_BODY = "UPDATE events SET body = ?, digest = ?, rewritten = ? WHERE row = ?"
_DELETE_MEDIA = "DELETE FROM media WHERE session = ? AND digest IN (SELECT value FROM json_each(?))"
_NAMES_OF_FORKS = "SELECT id, parent_seq FROM sessions WHERE parent = ? ORDER BY key"


def create_session(connection: sqlite3.Connection, record: SessionRecord, fields: str, mark: int | None) -> None:
    parent = (
        None if record.parent is None else connection.execute(_SESSION_VERSION_AND_KEY, (record.parent,)).fetchone()
    )
    if record.parent is not None and parent is None:
        raise UnknownSession(record.parent)
    check_record(record, parent[0] if parent else None)
    check_mark(record, mark, dict(lane_tips(connection, parent[1])) if parent else {})
    if connection.execute(_SESSION_VERSION_AND_KEY, (record.id,)).fetchone():
        raise InvalidInput(f"Session {record.id!r} exists already: use another id.")
    row = (
        record.id,
        record.version,
        parent[1] if parent else None,
        record.parent_seq,
        record.owner,
        record.created,
    )
    key = connection.execute(_INSERT_SESSION, row).lastrowid
    assert key is not None
    connection.execute(_INSERT_RECORD, (key, fields))
    _set_tips(connection, key, record.lanes)


def encode_session_fields(record: SessionRecord) -> str:
    """Encodes the fixed fields of a session record, before any lock is taken."""
    fields = StoredSessionFields(
        record.system, record.tools, record.format, record.model, record.metadata, record.policy, record.alternating
    )
    try:
        return msgspec.json.encode(fields).decode()
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"Session {record.id!r} cannot be stored as JSON: {error}.") from error


def append_events(
    connection: sqlite3.Connection,
    session_id: str,
    entries: tuple[LogEntry, ...],
    after: int | None,
    when: Unchanged | None,
    tip: LaneTip | None,
    media: Mapping[str, str],
) -> Appended:
    """Appends events; a single event is inserted optimistically, and the unique index detects a known id."""
    state = connection.execute(_SESSION_STATE, (session_id,)).fetchone()
    if state is None:
        raise UnknownSession(session_id)
    key, version, parent = state[:3]
    tips = {} if state[3] is None else {"": LaneTip(*state[4:])}
    for lane in required_lanes(entries, when) - {""}:
        row = connection.execute(_GET_TIP, (key, lane)).fetchone()
        if row is not None:
            tips[lane] = LaneTip(*row)
    known: dict[str, LogEntry] = {}
    optimistic = len(entries) == 1 and parent is None and when is None and (after is None or after == version)
    while True:
        if not optimistic:
            chain: SessionChain = [(key, MAX_SEQ)] if parent is None else session_chain(connection, session_id)
            known = find_events(connection, chain, [entry.event.id for entry in entries])
        plan = plan_append(session_id, entries, known, version, tips, after, when, tip)
        if not isinstance(plan, AppendPlan):
            return plan
        try:
            _insert_events(connection, key, plan.entries)
            break
        except sqlite3.IntegrityError:
            if not optimistic:
                raise
            optimistic = False
    moved = connection.execute(_SET_VERSION, (plan.result.version, key, version)).rowcount
    assert moved == 1, "the write lock is held, so the version cannot have changed"
    if plan.tips:
        _set_tips(connection, key, plan.tips)
    for digest, data in media.items():
        connection.execute(_ADD_MEDIA, (key, digest, plan.result.version, data))
    return plan.result


def _insert_events(connection: sqlite3.Connection, key: int, entries: Sequence[LogEntry]) -> None:
    for entry in entries:
        e, body = entry.event, entry.body.decode()
        row = (key, e.seq, e.id, e.lane or "", e.kind, e.time, e.epoch, e.v, entry.digest, body)
        connection.execute(_INSERT_EVENT, row)


def _set_tips(connection: sqlite3.Connection, key: int, tips: Mapping[str, LaneTip]) -> None:
    for lane, tip in tips.items():
        row = (key, lane, tip.mark, tip.epoch, tip.start, tip.base, tip.base_epoch)
        connection.execute(_SET_TIP, row)


def rewrite_sessions(connection: sqlite3.Connection, changes: Sequence[Rewrite]) -> bool | None:
    """Replaces bodies; None while a deletion still has to copy events to other sessions."""
    if has_hidden(connection):
        return None
    plans: list[tuple[int, RewritePlan]] = []
    names = {change.session_id for change in changes}
    for change in changes:
        row = connection.execute(_SESSION_VERSION_AND_KEY, (change.session_id,)).fetchone()
        if row is None:
            raise UnknownSession(change.session_id)
        version, key = row
        forks = connection.execute(_NAMES_OF_FORKS, (key,)).fetchall()
        forks += [(name, MAX_SEQ) for name in relatives_of(connection, key)]
        plan = plan_rewrite(change, version, dict(lane_tips(connection, key)), forks, names)
        if plan is None:
            return False
        plans.append((key, plan))
        for ids in batches(change.ids):  # what cannot be rewritten must fail before the first write
            rewrite_entries(change, ids, find_events(connection, [(key, MAX_SEQ)], ids))
    for key, plan in plans:
        _write_rewrite(connection, key, plan)
    return True


def _write_rewrite(connection: sqlite3.Connection, key: int, plan: RewritePlan) -> None:
    change = plan.change
    for ids in batches(change.ids):
        for entry in rewrite_entries(change, ids, find_events(connection, [(key, MAX_SEQ)], ids)):
            body = entry.body.decode()
            ((row,),) = connection.execute(_EVENT_ROW, (key, entry.event.id)).fetchall()
            index.reindex_event(connection, row, body)
            connection.execute(_REPLACE_BODY, (body, entry.digest, entry.rewritten, row))
    forget = [require_unicode(change.session_id, digest) for digest in change.forget_media]
    connection.execute(_DELETE_MEDIA, (key, msgspec.json.encode(forget).decode()))
    if change.record is not None:
        stored = read_session(connection, change.session_id)
        fields = encode_session_fields(with_new_fields(stored, change.record))
        connection.execute(_REPLACE_RECORD, (fields, key))
    _insert_events(connection, key, [plan.note])
    connection.execute(_SET_VERSION, (plan.note.event.seq, key, change.version))
    _set_tips(connection, key, plan.tips)
    index.request_erasure(connection)
