"""Events as the pages show them: one line each for lists, and whole, a bounded piece at a time, for reading."""

from __future__ import annotations

from typing import Any

import msgspec

from ..compaction.breakdown import preview_line
from ..context.events import Event, EventKind, SessionRecord, lane_key, try_message_in
from ..io.text import first_line, printable
from ..messages import Message, ToolCall, to_json
from ..sessions import SessionService
from ..sessions.restore import quote_message
from ..stores import Slice
from ..tokens import Estimator
from .content import content_of, partner_of, sentences_of

MAX_ROWS = 400
"""Rows in a reply."""
MAX_TEXT = 60_000
"""Characters of one event in a reply."""
_MAX_LINE, _MAX_TOOLS = 180, 40
_CALLS_BEFORE = 12
"""Events before the first row, whose calls name its results."""
_MAIN_ARGUMENTS = ("command", "cmd", "file_path", "path", "pattern", "query", "url", "prompt", "description")
"""Arguments that tell what a call does, the most informative first."""


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
    tool: str
    """Names of the tools that are called, or whose results it has."""


async def read_rows(sessions: SessionService, record: SessionRecord, first: int, last: int) -> list[Row]:
    """Returns the rows from `first` to `last`, at most so many as a reply holds."""
    last = min(last, first + MAX_ROWS - 1, record.version)
    if first > last:
        return []
    events = await sessions.store.read(
        record.id, Slice(any_lane=True, after=max(0, first - 1 - _CALLS_BEFORE), until=last)
    )
    shown, names = await sessions.shown(record.id), dict[str, str]()
    rows = [row_of(event, record, shown, sessions.estimator, names) for event in events]
    return [row for row in rows if row.seq >= first]


def row_of(
    event: Event, record: SessionRecord, shown: frozenset[str], estimator: Estimator, names: dict[str, str]
) -> Row:
    """Returns the row of an event; `names` has the tools of the calls before it, by id, and takes those of this one."""
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
        "" if message is None else tools_of(message, names),
    )


def tools_of(message: Message, names: dict[str, str]) -> str:
    """Returns the tools that a message calls, or whose results it has; `names` are those of earlier calls, by id."""
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    names |= {call.id: call.name for call in calls}
    found = [call.name for call in calls] + [one.name or names.get(one.call_id, "") for one in message.results]
    return printable(", ".join(dict.fromkeys(filter(None, found))))[:_MAX_TOOLS]


def _role(event: Event, message: Message | None) -> str:
    if event.kind != EventKind.MESSAGE or message is None:
        return event.kind
    if "source" in event.body:
        return "restored"
    return "note" if event.body.get("synthetic") else role_of(message)


def role_of(message: Message) -> str:
    """Returns a message's role; of calls and their results, what they are."""
    if message.results:
        return "result"
    return "call" if any(isinstance(part, ToolCall) for part in message.parts) else str(message.role)


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
    if event.kind == EventKind.MESSAGE:
        return "(cannot be read)" if message is None else printable(message_line(message))
    return " ".join(sentences_of(event)[:1])


def message_line(message: Message) -> str:
    """Returns the first line of a message; of a call without words, its main argument."""
    call = next((part for part in message.parts if isinstance(part, ToolCall)), None)
    if call is None or message.text.strip():
        return preview_line(message)
    given = call.arguments_dict
    return next(
        (first_line(one) for name in _MAIN_ARGUMENTS if isinstance(one := given.get(name), str)), call.arguments_json
    )


async def read_event(
    sessions: SessionService, record: SessionRecord, seq: int, offset: int = 0
) -> dict[str, Any] | None:
    """Returns one event as text, from a character on, and a short one also as parts; None if there is none."""
    found = await sessions.events(record.id, last=1, before=seq + 1)
    if not found or found[0].seq != seq:
        return None
    event = found[0]
    message = try_message_in(event) if event.kind == EventKind.MESSAGE else None
    text = _event_text(event, message)
    row = row_of(event, record, await sessions.shown(record.id), sessions.estimator, {})
    fields = dict(zip(Row.__struct_fields__, msgspec.to_builtins(row), strict=True))
    fields["pinned"] = await _is_pinned(sessions, record, event)
    piece = text[offset : offset + MAX_TEXT]
    if len(text) <= MAX_TEXT:
        fields["parts"] = content_of(event, message)
        if message is not None and (partner := await partner_of(sessions, record, event, message)) is not None:
            fields["beside"] = partner
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
