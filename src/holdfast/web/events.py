"""Events as the pages show them: one line each for lists, and whole, a bounded piece at a time, for reading."""

from __future__ import annotations

from typing import Any

import msgspec

from ..compaction.breakdown import preview_line
from ..context.events import Event, EventKind, SessionRecord, lane_key, try_message_in
from ..io.text import printable
from ..messages import Message, to_json
from ..sessions import SessionService
from ..sessions.restore import quote_message
from ..stores import Slice
from ..tokens import Estimator

MAX_ROWS = 400
"""Rows in a reply."""
MAX_TEXT = 60_000
"""Characters of one event in a reply."""
_MAX_LINE = 180


class Row(msgspec.Struct, frozen=True, array_like=True):
    """An event in a list."""

    seq: int
    kind: str
    role: str
    line: str
    tokens: int
    time: str
    archived: bool
    lane: str
    id: str


async def read_rows(sessions: SessionService, record: SessionRecord, first: int, last: int) -> list[Row]:
    """Returns the rows from `first` to `last`, at most so many as a reply holds."""
    last = min(last, first + MAX_ROWS - 1, record.version)
    if first > last:
        return []
    events = await sessions.store.read(record.id, Slice(any_lane=True, after=max(0, first - 1), until=last))
    shown = await sessions.shown(record.id)
    return [row_of(event, record, shown, sessions.estimator) for event in events]


def row_of(event: Event, record: SessionRecord, shown: frozenset[str], estimator: Estimator) -> Row:
    message = try_message_in(event) if event.kind == EventKind.MESSAGE else None
    return Row(
        event.seq,
        event.kind,
        _role(event, message),
        describe_event(event, message)[:_MAX_LINE],
        event_tokens(event, message, estimator),
        event.time,
        is_archived(event, record, shown),
        event.lane or "",
        event.id,
    )


def _role(event: Event, message: Message | None) -> str:
    if event.kind != EventKind.MESSAGE or message is None:
        return event.kind
    if "source" in event.body:
        return "restored"
    return "note" if event.body.get("synthetic") else str(message.role)


def is_archived(event: Event, record: SessionRecord, shown: frozenset[str]) -> bool:
    """Whether a message is no longer in the context of its lane."""
    tip = record.lanes.get(lane_key(event.lane))
    return event.kind == EventKind.MESSAGE and tip is not None and event.seq <= tip.start and event.id not in shown


def event_tokens(event: Event, message: Message | None, estimator: Estimator) -> int:
    if event.body.get("counter") == estimator.name and isinstance(units := event.body.get("units"), int):
        return estimator.tokens(units)
    return 0 if message is None else estimator.tokens(estimator.measure(message))


def describe_event(event: Event, message: Message | None) -> str:
    """Returns an event on one line."""
    body = event.body
    match event.kind:
        case EventKind.MESSAGE:
            return "(cannot be read)" if message is None else printable(preview_line(message))
        case EventKind.COMPACTION:
            sizes = f"{body.get('tokens_before', 0):,} → {body.get('tokens_after', 0):,} tokens"
            archived = sum(run["count"] for run in body.get("archived", ()))
            return f"{sizes} · {archived:,} archived · {body.get('strategy') or ''}"
        case EventKind.PIN:
            return "pinned a message" if body.get("pinned", True) else "unpinned a message"
        case EventKind.UNDO:
            return "undid the last compaction" if body.get("to") is None else "went back to an earlier compaction"
        case EventKind.ATTEMPT:
            return printable(f"a compaction failed: {body.get('why', '')}")
    return event.kind


async def read_event(
    sessions: SessionService, record: SessionRecord, seq: int, offset: int = 0
) -> dict[str, Any] | None:
    """Returns one event as text, from a character on; None if there is none."""
    found = await sessions.store.read(record.id, Slice(any_lane=True, after=seq - 1, until=seq))
    if not found:
        return None
    event = found[0]
    message = try_message_in(event) if event.kind == EventKind.MESSAGE else None
    text = _event_text(event, message)
    row = row_of(event, record, await sessions.shown(record.id), sessions.estimator)
    fields = dict(zip(Row.__struct_fields__, msgspec.to_builtins(row), strict=True))
    fields["pinned"] = await _is_pinned(sessions, record, event)
    piece = text[offset : offset + MAX_TEXT]
    return fields | {"text": piece, "next": offset + MAX_TEXT if offset + MAX_TEXT < len(text) else None}


async def _is_pinned(sessions: SessionService, record: SessionRecord, event: Event) -> bool:
    pins = await sessions.store.read(record.id, Slice(any_lane=True, kinds=(EventKind.PIN,)))
    last = next((pin for pin in reversed(pins) if pin.body.get("event") == event.id), None)
    return last is not None and bool(last.body.get("pinned", True))


def _event_text(event: Event, message: Message | None) -> str:
    if message is not None:
        return quote_message(message)
    body = {name: value for name, value in event.body.items() if name not in ("carry", "head", "edits")}
    return msgspec.json.format(to_json(body), indent=2)
