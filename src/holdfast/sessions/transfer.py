"""Export and import of sessions as plain data, from one store to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import msgspec

from ..context import Checkpoint
from ..context.events import (
    DECODE_ERRORS,
    Event,
    EventKind,
    LaneTip,
    SessionRecord,
    decode_reason,
    lane_key,
    message_in,
    new_id,
)
from ..errors import InvalidInput
from ..messages import extract_media
from ..stores import Log, Slice
from .history import broken_references
from .live import LiveSession

BATCH = 500


async def export_session(live: LiveSession) -> list[dict[str, Any]]:
    """Returns the session's record, then its events with their media in place, inherited ones included."""
    record = msgspec.structs.replace(live.record, parent=None, parent_seq=0, version=0, lanes={})
    lines: list[dict[str, Any]] = [{"kind": "session", **msgspec.to_builtins(record)}]
    events = await live.with_media(await live.store.read(live.id, Slice(any_lane=True)))
    return lines + [msgspec.to_builtins(event) for event in events]


async def import_session(store: Log, records: Sequence[Mapping[str, Any]], new: str | None) -> SessionRecord:
    """Writes a session from exported data; each checkpoint and undo takes effect at its position."""
    if not records or records[0].get("kind") != "session":
        raise InvalidInput("This is not an exported session: its first record must be of the kind 'session'.")
    try:
        record = msgspec.convert({k: v for k, v in records[0].items() if k != "kind"}, SessionRecord)
        events = [msgspec.convert(line, Event) for line in records[1:]]
    except msgspec.ValidationError as problem:
        raise InvalidInput(f"This is not an exported session: {problem}.") from problem
    _check_events(events)
    record = msgspec.structs.replace(record, id=new or record.id or new_id())
    await store.create(record)
    try:
        return await _write_events(store, record, events)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await store.delete(record.id)
        raise


def _check_events(events: Sequence[Event]) -> None:
    """Raises InvalidInput for an event that no session could show: nothing is imported then."""
    for number, event in enumerate(events, 2):
        try:
            if event.kind == EventKind.MESSAGE:
                message_in(event)
            elif event.kind == EventKind.COMPACTION:
                msgspec.convert(event.body, Checkpoint)
            elif event.kind == EventKind.ATTEMPT:
                _ = int(event.body["failures"]), float(event.body["retry_at"])
        except DECODE_ERRORS as problem:
            raise InvalidInput(
                f"Line {number} of this export cannot be read: event {event.id!r} is no valid {event.kind} "
                f"({decode_reason(problem)}): export the session again."
            ) from problem
    if broken := broken_references(events):
        raise InvalidInput(f"This export is not complete: {broken[0]}.")


async def _write_events(store: Log, record: SessionRecord, events: Sequence[Event]) -> SessionRecord:
    seqs: dict[str, int] = {}
    starts: dict[str, int] = {}
    batch: list[Event] = []

    async def flush() -> None:
        if batch:
            await _append(store, record.id, batch, None, seqs)
            batch.clear()

    for event in events:
        plain = event.kind not in (EventKind.COMPACTION, EventKind.UNDO, EventKind.PIN, EventKind.REDACTION)
        if batch and (not plain or batch[-1].lane != event.lane or len(batch) >= BATCH):
            await flush()
        if plain:
            batch.append(event)
            continue
        tip = await _tip(store, record.id, event, seqs, starts)
        await _append(store, record.id, [event], tip, seqs)
    await flush()
    return await store.session(record.id)


async def _append(store: Log, session_id: str, events: list[Event], tip: LaneTip | None, seqs: dict[str, int]) -> None:
    media: dict[str, str] = {}
    ready = []
    for event in events:
        body, found = extract_media(event.body)
        media |= found
        ready.append(msgspec.structs.replace(event, body=body, seq=0, epoch=None))
    done = await store.append(session_id, ready, tip=tip, media=media)
    seqs.update((event.id, event.seq) for event in done.events)


async def _tip(store: Log, session_id: str, event: Event, seqs: dict[str, int], starts: dict[str, int]) -> LaneTip:
    """Returns the state in which this event left its lane when it was first written."""
    lanes = (await store.session(session_id)).lanes
    now = lanes.get(lane_key(event.lane), LaneTip())
    if event.kind == EventKind.COMPACTION:
        boundary = msgspec.convert(event.body, Checkpoint).boundary
        starts[event.id] = seqs.get(boundary, 0) if boundary else now.start
        return LaneTip(now.mark, event.id, starts[event.id], now.base, now.base_epoch)
    if event.kind == EventKind.UNDO:
        to = event.body.get("to")
        return LaneTip(now.mark, to, starts.get(to, 0) if to else 0, now.base, now.base_epoch)
    return now
