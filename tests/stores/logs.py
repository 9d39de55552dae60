"""Helpers of the store tests: events, records, sessions, ids."""

from __future__ import annotations

from typing import Any

from holdfast.context.events import Event, LaneTip, SessionRecord
from holdfast.stores import Appended, Rewrite, Slice

EVERYTHING = Slice(any_lane=True)


def message(event_id: str, text: str | None = None, lane: str | None = None) -> Event:
    body = {"message": {"role": "user", "content": f"says {event_id}" if text is None else text}}
    return Event(event_id, "message", "2026-01-01T00:00:00.000Z", body, lane)


def compaction(event_id: str, lane: str | None = None, **fields: Any) -> Event:
    body = {"boundary": "e1", "head": [], "carry": {"round": 1}, **fields}
    return Event(event_id, "compaction", "2026-01-01T00:00:01.000Z", body, lane)


def record(session_id: str, **fields: Any) -> SessionRecord:
    return SessionRecord(session_id, fields.pop("created", "2026-01-01T00:00:00.000Z"), **fields)


async def begin(store: Any, *event_ids: str, session_id: str = "s", **fields: Any) -> None:
    """Creates a session with these messages, appended one by one."""
    await store.create(record(session_id, **fields))
    for event_id in event_ids:
        await store.append(session_id, [message(event_id)])


async def fork(store: Any, parent: str, at: int, session_id: str, **lanes: LaneTip) -> None:
    await store.create(record(session_id, parent=parent, parent_seq=at, version=at, lanes=lanes))


def rewriting(session_id: str, version: int, *events: Event, **fields: Any) -> Rewrite:
    note = Event(f"r{version}", "redaction", "2026-01-01T00:00:02.000Z", {})
    bodies = {event.id: event.body for event in events}
    return Rewrite(session_id, version, note, tuple(bodies), lambda event: bodies[event.id], **fields)


async def rewrite(store: Any, session_id: str, *events: Event, forget: tuple[str, ...] = ()) -> bool:
    """Replaces the bodies of events of one session that has no forks."""
    version = (await store.session(session_id)).version
    return bool(await store.rewrite([rewriting(session_id, version, *events, forget_media=forget)]))


async def ids(store: Any, session_id: str = "s", which: Slice = EVERYTHING) -> list[str]:
    return [event.id for event in await store.read(session_id, which)]


def seqs(appended: Appended) -> list[int]:
    return [event.seq for event in appended.events]
