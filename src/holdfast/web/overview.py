"""What a person sees first: how full a session is, when it compacts next, and what the last compaction did."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..context.events import SessionRecord
from ..errors import HoldfastError
from ..io.text import first_line, printable
from ..sessions import SessionService
from ..sessions.history import TITLE, first_user_line, last_used
from ..stores import Lease, Slice

_MAX_TITLE = 200


class LastCompaction(msgspec.Struct, frozen=True):
    """The checkpoint in force."""

    seq: int
    time: str
    before: int
    after: int
    archived: int
    strategy: str


class Overview(msgspec.Struct, frozen=True):
    """State of one session."""

    id: str
    title: str
    owner: str
    model: str
    parent: str | None
    parent_seq: int
    version: int
    last_used: str
    tokens: int
    known: bool
    """Whether the size rests on the provider's report."""
    window: int | None
    next_at: int | None
    """Size at which the next compaction is due; None if nothing tells."""
    rounds: int
    last: LastCompaction | None
    compacting: bool
    """Whether a worker, an application or this server compacts it now."""


async def read_overview(sessions: SessionService, record: SessionRecord) -> Overview:
    """Reads the live window of a session; constant work for its history."""
    size = await sessions.size(record.id)
    return Overview(
        record.id,
        await read_title(sessions, record),
        record.owner or "",
        record.model or "",
        record.parent,
        record.parent_seq,
        record.version,
        await last_used(sessions.store, record),
        size.tokens,
        size.known,
        size.window,
        size.threshold,
        size.round,
        await _last_compaction(sessions, record),
        await _is_leased(sessions, record.id),
    )


async def _is_leased(sessions: SessionService, session_id: str) -> bool:
    store = sessions.store
    return isinstance(store, Lease) and await store.held(session_id, "compaction") is not None


async def read_title(sessions: SessionService, record: SessionRecord) -> str:
    given = record.metadata.get(TITLE)
    title = first_line(given) if isinstance(given, str) else await first_user_line(sessions.store, record.id)
    return printable(title)[:_MAX_TITLE] or record.id


async def _last_compaction(sessions: SessionService, record: SessionRecord) -> LastCompaction | None:
    tip = record.lanes.get("")
    if tip is None or tip.epoch is None:
        return None
    [event] = await sessions.store.read(record.id, Slice(any_lane=True, ids=(tip.epoch,)))
    body = event.body
    return LastCompaction(
        event.seq,
        event.time,
        body.get("tokens_before", 0),
        body.get("tokens_after", 0),
        sum(run["count"] for run in body.get("archived", ())),
        body.get("strategy") or "",
    )


class ListedSession(msgspec.Struct, frozen=True):
    """A session in the list of all."""

    overview: Overview
    depth: int
    """Forks stand below the session that they come from."""


async def read_sessions(sessions: SessionService, records: Sequence[SessionRecord]) -> list[ListedSession]:
    """Returns these sessions, newest first, each fork below its root."""
    known = {record.id: record for record in records}
    children: dict[str | None, list[SessionRecord]] = {}
    for record in records:
        children.setdefault(record.parent if record.parent in known else None, []).append(record)
    found: list[ListedSession] = []
    waiting = [(record, 0) for record in reversed(children.get(None, []))]
    while waiting:
        record, depth = waiting.pop()
        found.append(ListedSession(await _try_overview(sessions, record), depth))
        waiting += [(child, depth + 1) for child in reversed(children.get(record.id, []))]
    return found


async def _try_overview(sessions: SessionService, record: SessionRecord) -> Overview:
    """Returns the overview of a session; one that cannot be read is listed with the reason."""
    try:
        return await read_overview(sessions, record)
    except HoldfastError as problem:
        title = printable(f"{record.id}: {problem}")[:_MAX_TITLE]
        return Overview(
            id=record.id,
            title=title,
            owner=record.owner or "",
            model=record.model or "",
            parent=record.parent,
            parent_seq=record.parent_seq,
            version=record.version,
            last_used=record.created,
            tokens=0,
            known=False,
            window=None,
            next_at=None,
            rounds=0,
            last=None,
            compacting=False,
        )
