"""Reading: slices of a session and its ancestors, records, media, and the check of what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import UnknownSession
from ...events import Event, SessionRecord, root_key
from ..checks import find_problems
from ..log import Slice
from .nul import given, kept
from .rows import NO_END, entry_of, event_of, find, must_exist, record_of, whole
from .statements import blocks

_SQL = blocks("reads.sql")


async def session(connection: Any, tenant: str, session_id: str) -> SessionRecord:
    row = await connection.fetchrow(_SQL["session"], tenant, kept(session_id))
    if row is None:
        raise UnknownSession(session_id)
    return record_of(row)


async def sessions(connection: Any, tenant: str, owner: str | None, limit: int | None) -> list[SessionRecord]:
    most = None if limit is None else max(0, whole(limit))
    if owner is None:
        rows = await connection.fetch(_SQL["sessions"], tenant, most)
    else:
        rows = await connection.fetch(_SQL["owned"], tenant, most, kept(owner))
    return [record_of(row) for row in rows]


async def read(connection: Any, tenant: str, session_id: str, which: Slice) -> list[Event]:
    if which.ids:
        return await _by_id(connection, tenant, session_id, which)
    order = "newest" if which.newest else "oldest"
    until = NO_END if which.until is None else whole(which.until)
    kinds = [kept(kind) for kind in which.kinds] or None
    limit = None if which.limit is None else max(0, whole(which.limit))
    asked = (tenant, kept(session_id), whole(which.after), until, kinds, limit)
    if which.any_lane:
        rows = await connection.fetch(_SQL[order], *asked)
    else:
        rows = await connection.fetch(_SQL[f"{order}_of_lane"], *asked, kept(root_key(which.lane)))
    if not rows:
        await must_exist(connection, tenant, session_id)
    return [event_of(row) for row in (reversed(rows) if which.newest else rows)]


async def _by_id(connection: Any, tenant: str, session_id: str, which: Slice) -> list[Event]:
    found = await find(connection, tenant, session_id, list(which.ids))
    if not found:
        await must_exist(connection, tenant, session_id)
    chosen = sorted(
        (
            event
            for event in (entry.event for entry in found.values())
            if (which.any_lane or root_key(event.lane) == root_key(which.lane))
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


async def media(connection: Any, tenant: str, session_id: str, digests: Sequence[str]) -> dict[str, str]:
    names = [kept(digest) for digest in digests]
    rows = await connection.fetch(_SQL["media"], tenant, kept(session_id), names)
    if not rows:
        await must_exist(connection, tenant, session_id)
    return {given(digest): given(data) for digest, data in rows}


async def ids(connection: Any, tenant: str, session_id: str, prefix: str, limit: int) -> list[str]:
    """Ids that begin so: the index of ids is asked, whatever the length of the log."""
    rows = await connection.fetch(_SQL["ids"], tenant, kept(session_id), kept(prefix), max(0, whole(limit)))
    if not rows:
        await must_exist(connection, tenant, session_id)
    return [given(row[0]) for row in rows]


async def problems(connection: Any, tenant: str, session_id: str) -> list[str]:
    """All of it at one moment: others may append meanwhile."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        record = await session(connection, tenant, session_id)
        places: dict[str, int] = {}
        for name, seq in await connection.fetch(_SQL["places"], tenant, kept(session_id)):
            places.setdefault(given(name), seq)
        own = await connection.fetch(_SQL["own"], tenant, kept(session_id))
    return find_problems(record, (entry_of(row) for row in own), places)
