"""Reads: slices of a session and its ancestors, session records, media, ids, and the integrity check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...context.events import Event, SessionRecord, lane_key
from ...errors import UnknownSession
from ..append import find_problems
from ..base import Slice
from .rows import (
    MAX_SEQ,
    clamp_bigint,
    entry_from_row,
    escape_nul,
    event_from_row,
    find_events,
    load_statements,
    record_from_row,
    require_session,
    unescape_nul,
)

HIDDEN = "\1x"
"""Part of the ids of sessions that are being deleted; `escape_nul` never returns it."""
_READ_SQL = load_statements("reads.sql")


async def read_session(connection: Any, tenant: str, session_id: str) -> SessionRecord:
    row = await connection.fetchrow(_READ_SQL["session"], tenant, escape_nul(session_id))
    if row is None:
        raise UnknownSession(session_id)
    return await _record_from_row(connection, tenant, row)


async def _record_from_row(connection: Any, tenant: str, row: Any) -> SessionRecord:
    """Returns the record; a fork of a session that is being deleted already has another parent."""
    if row["parent"] is None or HIDDEN not in row["parent"]:
        return record_from_row(row)
    parent = await connection.fetchrow(_READ_SQL["visible_parent"], tenant, row["id"])
    return record_from_row({**row, "parent": parent and parent["id"], "parent_seq": parent["until"] if parent else 0})


async def list_sessions(connection: Any, tenant: str, owner: str | None, limit: int | None) -> list[SessionRecord]:
    bound = None if limit is None else max(0, clamp_bigint(limit))
    if owner is None:
        rows = await connection.fetch(_READ_SQL["sessions"], tenant, bound)
    else:
        rows = await connection.fetch(_READ_SQL["owned"], tenant, bound, escape_nul(owner))
    return [await _record_from_row(connection, tenant, row) for row in rows]


async def list_forks(connection: Any, tenant: str, session_id: str) -> list[SessionRecord]:
    await require_session(connection, tenant, session_id)
    rows = await connection.fetch(_READ_SQL["forks"], tenant, escape_nul(session_id))
    return [await _record_from_row(connection, tenant, row) for row in rows]


async def list_relatives(connection: Any, tenant: str, session_id: str) -> list[SessionRecord]:
    await require_session(connection, tenant, session_id)
    rows = await connection.fetch(_READ_SQL["relatives"], tenant, escape_nul(session_id))
    return [await _record_from_row(connection, tenant, row) for row in rows]


async def read_events(connection: Any, tenant: str, session_id: str, which: Slice) -> list[Event]:
    if which.ids:
        return await _read_by_id(connection, tenant, session_id, which)
    order = "newest" if which.newest else "oldest"
    until = MAX_SEQ if which.until is None else clamp_bigint(which.until)
    kinds = [escape_nul(kind) for kind in which.kinds] or None
    limit = None if which.limit is None else max(0, clamp_bigint(which.limit))
    arguments = (tenant, escape_nul(session_id), clamp_bigint(which.after), until, kinds, limit)
    if which.any_lane:
        rows = await connection.fetch(_READ_SQL[order], *arguments)
    else:
        rows = await connection.fetch(_READ_SQL[f"{order}_of_lane"], *arguments, escape_nul(lane_key(which.lane)))
    if not rows:
        await require_session(connection, tenant, session_id)
    return [event_from_row(row) for row in (reversed(rows) if which.newest else rows)]


async def _read_by_id(connection: Any, tenant: str, session_id: str, which: Slice) -> list[Event]:
    found = await find_events(connection, tenant, session_id, list(which.ids))
    if not found:
        await require_session(connection, tenant, session_id)
    chosen = sorted(
        (
            event
            for event in (entry.event for entry in found.values())
            if (which.any_lane or lane_key(event.lane) == lane_key(which.lane))
            and (not which.kinds or event.kind in which.kinds)
            and event.seq > which.after
            and (which.until is None or event.seq <= which.until)
        ),
        key=lambda event: event.seq,
    )
    if which.limit is None:
        return chosen
    limit = max(0, which.limit)
    return chosen[max(0, len(chosen) - limit) :] if which.newest else chosen[:limit]


async def read_media(connection: Any, tenant: str, session_id: str, digests: Sequence[str]) -> dict[str, str]:
    names = [escape_nul(digest) for digest in digests]
    rows = await connection.fetch(_READ_SQL["media"], tenant, escape_nul(session_id), names)
    if not rows:
        await require_session(connection, tenant, session_id)
    return {unescape_nul(digest): unescape_nul(data) for digest, data in rows}


async def ids_with_prefix(connection: Any, tenant: str, session_id: str, prefix: str, limit: int) -> list[str]:
    """Looks the prefix up in the index of ids, whatever the length of the log."""
    rows = await connection.fetch(
        _READ_SQL["ids"], tenant, escape_nul(session_id), escape_nul(prefix), max(0, clamp_bigint(limit))
    )
    if not rows:
        await require_session(connection, tenant, session_id)
    return [unescape_nul(row[0]) for row in rows]


async def check_session(connection: Any, tenant: str, session_id: str) -> list[str]:
    """Checks one snapshot, since others may append meanwhile."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        record = await read_session(connection, tenant, session_id)
        seqs: dict[str, int] = {}
        for name, seq in await connection.fetch(_READ_SQL["places"], tenant, escape_nul(session_id)):
            seqs.setdefault(unescape_nul(name), seq)
        own = await connection.fetch(_READ_SQL["own"], tenant, escape_nul(session_id), record.parent_seq)
    return find_problems(record, (entry_from_row(row) for row in own), seqs)
