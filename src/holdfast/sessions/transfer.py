"""Export and import of sessions as plain data, from one store to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

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
from ..messages import Json, extract_media
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
    record, events = read_export(records)
    record = msgspec.structs.replace(record, id=new or record.id or new_id())
    await store.create(record)
    try:
        return await _write_events(store, record, events)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await store.delete(record.id)
        raise


def read_export(records: Sequence[Any]) -> tuple[SessionRecord, list[Event]]:
    """Reads exported data; raises InvalidInput, with the line, for anything that no session could show."""
    if not records or not isinstance(records[0], Mapping) or records[0].get("kind") != "session":
        raise InvalidInput("This is not an exported session: its first record, line 1, must be of the kind 'session'.")
    record = _read_line(1, {name: value for name, value in records[0].items() if name != "kind"}, SessionRecord)
    events = [_read_line(number, line, Event) for number, line in enumerate(records[1:], 2)]
    for number, event in enumerate(events, 2):
        try:
            _check_body(event)
        except DECODE_ERRORS as problem:
            raise InvalidInput(
                f"Line {number} of this export cannot be read: event {event.id!r} is no valid {event.kind} "
                f"({decode_reason(problem)}): export the session again."
            ) from problem
    if broken := broken_references(events):
        raise InvalidInput(f"This export is not complete: {broken[0]}.")
    return record, events


_Line = TypeVar("_Line", SessionRecord, Event)


def _read_line(number: int, line: Any, kind: type[_Line]) -> _Line:
    try:
        return msgspec.convert(line, kind)
    except msgspec.ValidationError as problem:
        raise InvalidInput(
            f"Line {number} of this export cannot be read ({problem}): export the session again."
        ) from problem


def _check_body(event: Event) -> None:
    """Raises one of DECODE_ERRORS for a body that cannot be read."""
    if event.kind == EventKind.MESSAGE:
        msgspec.convert(event.message, Json)
        message_in(event)
    elif event.kind == EventKind.COMPACTION:
        msgspec.convert(event.body, Checkpoint)
    elif event.kind == EventKind.UNDO:
        msgspec.convert(event.body.get("to"), str | None)
    elif event.kind == EventKind.POLICY:
        msgspec.convert(event.body.get("policy"), Json | None)
    elif event.kind == EventKind.ATTEMPT:
        _ = int(event.body["failures"]), float(event.body["retry_at"])


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
