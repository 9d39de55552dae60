"""Writes: the usual append is one statement; any other is planned under a lock on the session's row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio.to_thread
import msgspec

from ...context.events import Event, LaneTip, SessionRecord, lane_key
from ...errors import InvalidInput, UnknownSession
from ..append import (
    REWRITTEN,
    AppendPlan,
    LogEntry,
    RewritePlan,
    batches,
    check_mark,
    check_record,
    plan_append,
    plan_rewrite,
    required_lanes,
    rewrite_entries,
    with_new_fields,
)
from ..base import Appended, Rewrite, Unchanged
from . import index
from .deletion import has_hidden, lock_store
from .reads import read_session
from .rows import (
    MAX_SEQ,
    clamp_bigint,
    entry_from_row,
    escape_nul,
    event_columns,
    find_events,
    load_statements,
    media_columns,
    tip_columns,
    tip_from_row,
    unescape_nul,
)

_WRITE_SQL = load_statements("writes.sql")
_UNIQUE_VIOLATION, _APPEND_CONFLICT = "23505", "HF001"
"""SQLSTATEs of an append that must be planned step by step: an id is known, or the lane's mark has moved."""


class AppendRequest(msgspec.Struct, frozen=True):
    """Arguments of one append."""

    session_id: str
    entries: tuple[LogEntry, ...]
    after: int | None
    when: Unchanged | None
    tip: LaneTip | None
    media: Mapping[str, str]


def encode_record(record: SessionRecord) -> str:
    """Encodes the fixed fields of a session record, before anything is sent."""
    fixed = msgspec.structs.replace(record, parent=None, parent_seq=0, version=0, lanes={})
    try:
        return msgspec.json.encode(fixed).decode()
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"Session {record.id!r} cannot be stored as JSON: {error}.") from error


async def create_session(
    connection: Any, tenant: str, record: SessionRecord, encoded: str, mark: int | None, unsure: bool
) -> None:
    """Creates a session; with `unsure`, an equal one was created by an attempt that broke off."""
    if mark is None or record.parent is None:
        await _create_session(connection, tenant, record, encoded, unsure)
        return
    async with connection.transaction():
        name = escape_nul(record.parent)
        await connection.execute(_WRITE_SQL["lock_parent"], tenant, name)  # waits for a redaction that is under way
        tips = await connection.fetch(_WRITE_SQL["tips"], tenant, name, [""])
        if unsure and await _is_created(connection, tenant, record):
            return
        check_mark(record, mark, {lane: tip_from_row(tip) for lane, *tip in tips})
        await _create_session(connection, tenant, record, encoded, unsure)


async def _create_session(connection: Any, tenant: str, record: SessionRecord, encoded: str, unsure: bool) -> None:
    check_record(record, record.parent_seq if record.parent is not None else None)
    done = await connection.fetchval(
        _WRITE_SQL["create"],
        tenant,
        escape_nul(record.id),
        record.version,
        escape_nul(record.parent),
        record.parent_seq,
        escape_nul(record.owner),
        escape_nul(record.created),
        encoded,
        *tip_columns(record.lanes),
    )
    if done is not None:
        return
    if record.parent is not None:
        version = await connection.fetchval(_WRITE_SQL["version"], tenant, escape_nul(record.parent))
        if version is None:
            raise UnknownSession(record.parent)
        check_record(record, version)
    if not unsure or not await _is_created(connection, tenant, record):
        raise InvalidInput(f"Session {record.id!r} exists already: use another id.")


async def _is_created(connection: Any, tenant: str, record: SessionRecord) -> bool:
    """Whether an attempt that broke off has created this session."""
    try:
        return await read_session(connection, tenant, record.id) == record
    except UnknownSession:
        return False


async def append_events(connection: Any, tenant: str, request: AppendRequest, unsure: bool) -> Appended:
    return await _append_in_one_statement(connection, tenant, request) or await _append_step_by_step(
        connection, tenant, request, unsure
    )


async def _append_in_one_statement(connection: Any, tenant: str, request: AppendRequest) -> Appended | None:
    """Appends in one statement; None if nothing was written, for any reason."""
    when, entries = request.when or Unchanged(), request.entries
    version = when.version if request.after is None else request.after
    lanes = {lane_key(entry.event.lane) for entry in entries}
    if len(lanes) != 1 or not (when.version is None or when.version == version):
        return None
    if when.mark is not None and lane_key(when.lane) not in lanes:
        return None
    usual = len(entries) == 1 and lanes == {""} and not request.tip and not request.media and when.mark is None
    try:
        if usual:
            done = await _append_one(connection, tenant, request.session_id, entries[0], _clamp_optional(version))
            if done is not None:
                return done
        return await _append_several(connection, tenant, request, _clamp_optional(version), _clamp_optional(when.mark))
    except Exception as error:
        if getattr(error, "sqlstate", None) in (_UNIQUE_VIOLATION, _APPEND_CONFLICT):
            return None
        raise


async def _append_one(
    connection: Any, tenant: str, session_id: str, entry: LogEntry, version: int | None
) -> Appended | None:
    event, body = entry.event, entry.body.decode()
    id, kind, time = escape_nul(event.id), escape_nul(event.kind), escape_nul(event.time)
    row = await connection.fetchrow(
        _WRITE_SQL["append_one"], tenant, escape_nul(session_id), version, id, kind, time, event.v, entry.digest, body
    )
    return _stored_append([event], row[0], row[1]) if row else None


async def _append_several(
    connection: Any, tenant: str, request: AppendRequest, version: int | None, mark: int | None
) -> Appended | None:
    events, tip = [entry.event for entry in request.entries], request.tip
    done: str | None = await connection.fetchval(
        _WRITE_SQL["append"],
        tenant,
        escape_nul(request.session_id),
        escape_nul(lane_key(events[0].lane)),
        version,
        mark,
        *event_columns(request.entries),
        tip is not None,
        escape_nul(tip.epoch) if tip else None,
        tip.start if tip else None,
        *(media_columns(request.media) if request.media else (None, None)),
    )
    if done is None:
        return None
    last, _, epoch = done.partition(" ")
    return _stored_append(events, int(last), epoch or None)


def _stored_append(events: Sequence[Event], last: int, epoch: str | None) -> Appended:
    force = unescape_nul(epoch)
    stored = (
        Event(event.id, event.kind, event.time, event.body, event.lane, seq, force, event.v)
        for seq, event in enumerate(events, last - len(events) + 1)
    )
    return Appended(tuple(stored), last)


async def _append_step_by_step(connection: Any, tenant: str, request: AppendRequest, unsure: bool) -> Appended:
    """Locks the session's row, then plans and writes the append.

    With `unsure`, known events were written by an attempt that broke off: they are reported as fresh.
    """
    session_id, entries, name = request.session_id, request.entries, escape_nul(request.session_id)
    async with connection.transaction():
        row = await connection.fetchrow(_WRITE_SQL["lock"], tenant, name)
        if row is None:
            raise UnknownSession(session_id)
        lanes = [escape_nul(lane) for lane in required_lanes(entries, request.when)]
        tips = {
            unescape_nul(lane): tip_from_row(tip)
            for lane, *tip in await connection.fetch(_WRITE_SQL["tips"], tenant, name, lanes)
        }
        known = await find_events(connection, tenant, session_id, [entry.event.id for entry in entries])
        plan = plan_append(session_id, entries, known, row["version"], tips, request.after, request.when, request.tip)
        if isinstance(plan, Appended):
            retried = unsure and not plan.conflict and bool(entries)
            return msgspec.structs.replace(plan, fresh=True) if retried else plan
        await _write_plan(connection, tenant, name, plan, request.media)
    return plan.result


async def _write_plan(connection: Any, tenant: str, name: str, plan: AppendPlan, media: Mapping[str, str]) -> None:
    events = [entry.event for entry in plan.entries]
    ids, kinds, times, versions, digests, bodies = event_columns(plan.entries)
    await connection.execute(
        _WRITE_SQL["add"],
        tenant,
        name,
        plan.result.version,
        times[-1],
        [event.seq for event in events],
        ids,
        [escape_nul(lane_key(event.lane)) for event in events],
        kinds,
        times,
        [escape_nul(event.epoch) for event in events],
        versions,
        digests,
        bodies,
    )
    if plan.tips:
        await connection.execute(_WRITE_SQL["set_tips"], tenant, name, *tip_columns(plan.tips))
    if media:
        await connection.execute(_WRITE_SQL["add_media"], tenant, name, plan.result.version, *media_columns(media))


async def rewrite_sessions(connection: Any, tenant: str, changes: Sequence[Rewrite]) -> bool | None:
    """Replaces bodies under the exclusive lock, so that no indexer adds removed text again.

    None while a deletion still has to copy events to other sessions.
    """
    async with connection.transaction():
        await lock_store(connection)
        if await has_hidden(connection, tenant):
            return None
        names = {change.session_id for change in changes}
        rows = await connection.fetch(_WRITE_SQL["lock_all"], tenant, [escape_nul(name) for name in names])
        versions = {unescape_nul(row["id"]): row["version"] for row in rows}
        plans = []
        for change in changes:
            if change.session_id not in versions:
                raise UnknownSession(change.session_id)
            name = escape_nul(change.session_id)
            tips = {
                unescape_nul(lane): tip_from_row(tip)
                for lane, *tip in await connection.fetch(_WRITE_SQL["all_tips"], tenant, name)
            }
            forks = [
                (unescape_nul(fork), seq) for fork, seq in await connection.fetch(_WRITE_SQL["forks"], tenant, name)
            ]
            forks += [
                (unescape_nul(row["id"]), MAX_SEQ)
                for row in await connection.fetch(_WRITE_SQL["relatives"], tenant, name)
            ]
            plan = plan_rewrite(change, versions[change.session_id], tips, forks, names)
            if plan is None:
                return False
            plans.append(plan)
        for plan in plans:
            await _write_rewrite(connection, tenant, plan)
    return True


async def _write_rewrite(connection: Any, tenant: str, plan: RewritePlan) -> None:
    change, name = plan.change, escape_nul(plan.change.session_id)
    for ids in batches(change.ids):
        rows = await connection.fetch(_WRITE_SQL["own_events"], tenant, name, [escape_nul(each) for each in ids])
        stored = {entry.event.id: entry for entry in map(entry_from_row, rows)}
        entries = await anyio.to_thread.run_sync(rewrite_entries, change, ids, stored)
        indexed = await connection.fetch(
            _WRITE_SQL["rewrite"],
            tenant,
            name,
            [escape_nul(entry.event.id) for entry in entries],
            [entry.body.decode() for entry in entries],
            [entry.rewritten for entry in entries],
            REWRITTEN,
        )
        await index.index_events(connection, tenant, indexed)
    forget = [escape_nul(digest) for digest in change.forget_media]
    await connection.execute(_WRITE_SQL["forget_media"], tenant, name, forget)
    if change.record is not None:
        known = await read_session(connection, tenant, change.session_id)
        record = encode_record(with_new_fields(known, change.record))
        await connection.execute(_WRITE_SQL["set_record"], tenant, name, record)
    note = plan.note.event
    appended = AppendPlan((plan.note,), plan.tips, Appended((note,), note.seq))
    await _write_plan(connection, tenant, name, appended, {})


async def list_expired(connection: Any, tenant: str, before: str) -> list[str]:
    return [unescape_nul(row[0]) for row in await connection.fetch(_WRITE_SQL["expired"], tenant, escape_nul(before))]


def _clamp_optional(value: int | None) -> int | None:
    return None if value is None else clamp_bigint(value)
