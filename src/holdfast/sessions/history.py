"""Reads of a session's log: finding events, the record of a fork, and verification."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..context import SYNTHETIC_ID_SUFFIX, Checkpoint, View
from ..context.events import Event, EventKind, LaneTip, SessionRecord, lane_key, try_message_in
from ..errors import HoldfastError, InvalidInput
from ..io.text import first_line
from ..messages import Message, encode_all, find_problems, first_request, starts_turn
from ..stores import Log, Slice
from ..stores.search import search_document
from ..tokens import Estimator
from .live import LiveSession, SessionPolicy

ROOT = ""
FOLDER, TITLE = "folder", "title"
"""Keys of a session's metadata: the folder that its agent works in, and the title that another tool gave it."""
_TITLE_SCAN_EVENTS = 20
"""Events searched for the first user message of a session."""
SYNTHETIC_MARKS = ("synthetic", "aside", "source", "closes")
"""Body fields that mark messages which neither the user nor the model wrote: only the log has them."""


class EventPages(msgspec.Struct, frozen=True):
    """Which of the matching events to return."""

    last: int | None = None
    before: int | None = None
    page: int | None = None
    page_size: int | None = None

    def __post_init__(self) -> None:
        if self.last is not None and (self.page is not None or self.page_size is not None):
            raise InvalidInput("Use last= or page=/page_size=, not both.")
        if self.page is not None and self.page_size is None:
            raise InvalidInput("page= needs page_size=.")
        given = (
            ("last", self.last, 1),
            ("before", self.before, 1),
            ("page", self.page, 0),
            ("page_size", self.page_size, 1),
        )
        for name, value, least in given:
            if value is not None and value < least:
                raise InvalidInput(f"{name} must be at least {least}, not {value}.")

    def of(self, events: list[Event]) -> list[Event]:
        if self.last is not None:
            return events[-self.last :]
        if self.page_size is not None:
            first = (self.page or 0) * self.page_size
            return events[first : first + self.page_size]
        return events


async def find_events(
    live: LiveSession, pages: EventPages, *, kind: str | None, lane: str | None, archived: bool | None, text: str | None
) -> list[Event]:
    until = None if pages.before is None else pages.before - 1
    which = Slice(lane=lane or None, any_lane=lane is None, kinds=(kind,) if kind else (), until=until)
    if pages.last is not None and text is None and archived is None:
        which = msgspec.structs.replace(which, limit=pages.last, newest=True)
    events = await live.store.read(live.id, which)
    if archived is not None:
        events = await _by_visibility(live, events, archived)
    if text:
        wanted = text.casefold()
        events = [event for event in events if wanted in search_document(event).text.casefold()]
    return await live.with_media(pages.of(events))


async def _by_visibility(live: LiveSession, events: list[Event], archived: bool) -> list[Event]:
    visible: dict[str, set[str]] = {}
    for key in {lane_key(event.lane) for event in events}:
        view = await live.view(key or None)
        visible[key] = set(view.events)
    return [
        event
        for event in events
        if event.kind == EventKind.MESSAGE and (event.id not in visible[lane_key(event.lane)]) is archived
    ]


async def head_event_ids(live: LiveSession) -> frozenset[str]:
    """Returns ids of events before the live window that a head shows: pins, a preamble, a split turn's start."""
    sources: set[str] = set()
    for key, tip in live.record.lanes.items():
        if tip.epoch is not None:
            view = await live.view(key or None)
            sources.update(shown.source for shown in view.head if shown.source)
    return frozenset(sources)


def user_message_in(event: Event) -> Message | None:
    """Returns the event's message if the user wrote it."""
    if any(event.body.get(mark) for mark in SYNTHETIC_MARKS):
        return None
    message = try_message_in(event)
    return message if message is not None and starts_turn(message) else None


async def first_user_line(store: Log, session_id: str) -> str:
    """Returns the user's first request in a line, as a title of the session; empty if there is none."""
    opening = Slice(kinds=(EventKind.MESSAGE,), limit=_TITLE_SCAN_EVENTS)
    events = await store.read(session_id, opening)
    found = (try_message_in(event) for event in events if not any(event.body.get(mark) for mark in SYNTHETIC_MARKS))
    request = first_request(message for message in found if message is not None)
    title = first_line(request)
    if title.endswith(":"):  # the plan, the error or the list that it announces tells more
        lines = (first_line(line.lstrip("#-*> \t`")) for line in request.lstrip().splitlines()[1:])
        title = " ".join(filter(None, (title, next(filter(None, lines), ""))))
    return title


def works_in(record: SessionRecord, folder: Path) -> bool:
    """True if the session belongs to this folder, under any path that leads to it."""
    own = record.metadata.get(FOLDER)
    return isinstance(own, str) and (own == str(folder) or os.path.realpath(own) == os.path.realpath(folder))


def tool_of(record: SessionRecord) -> str:
    """Returns the name of the tool that a session was imported from, or nothing."""
    imported = record.metadata.get("imported")
    return str(imported.get("from") or "") if isinstance(imported, dict) else ""


async def last_used(store: Log, record: SessionRecord) -> str:
    """Returns the time of the newest event, or of the creation."""
    newest = await store.read(record.id, Slice(after=record.version - 1, any_lane=True))
    return (newest[-1].time if newest else "") or record.created


async def fork_record(live: LiveSession, at: str | None, new: str, created: str) -> SessionRecord:
    """Returns the record of a session that shares this one's events up to `at`, in constant work per lane."""
    source = live.record
    seq, lanes = source.version, source.lanes
    if at is not None:
        event = await live.event(at)
        if event.lane is not None:
            raise InvalidInput(f"Event {at!r} belongs to the lane {event.lane!r}: fork from an event of the root.")
        seq = event.seq
        lanes = {ROOT: await _tip_after(live, event, live.tip(None), seq)}
        for key, tip in source.lanes.items():
            if key != ROOT and tip.base < seq:
                lanes[key] = tip if tip.mark <= seq else await _earlier_tip(live, key, tip, seq)
    return msgspec.structs.replace(
        source, id=new, created=created, parent=source.id, parent_seq=seq, version=seq, lanes=lanes
    )


async def view_at(live: LiveSession, event: Event) -> View:
    """Returns the view that the event's lane had right after it; reads what that view needs, and writes nothing."""
    if event.seq == live.version:
        return await live.view(event.lane)
    tip = await _tip_after(live, event, live.tip(event.lane), event.seq)
    return await view_from(live, event.lane, tip)


async def view_from(
    live: LiveSession, lane: str | None, tip: LaneTip, estimator: Estimator | None = None, *, calibrated: bool = True
) -> View:
    """Returns a lane's view as of the tip's mark, counted by the session's own estimator or by this one."""
    record = msgspec.structs.replace(live.record, version=tip.mark, lanes={lane_key(lane): tip})
    given = live.estimator if estimator is None else estimator
    calibrated = live.calibrated if estimator is None else calibrated
    counting = SessionPolicy(live.policy, given, calibrated)
    return await LiveSession(live.store, record, lambda *_: counting).view(lane)


async def _earlier_tip(live: LiveSession, lane: str, tip: LaneTip, seq: int) -> LaneTip:
    """Returns the tip that a lane had at this seq, which lies after the lane's first event."""
    [last] = await live.store.read(live.id, Slice(lane=lane, until=seq, limit=1, newest=True))
    return await _tip_after(live, last, tip, seq)


async def _tip_after(live: LiveSession, event: Event, tip: LaneTip, seq: int) -> LaneTip:
    moved = {EventKind.COMPACTION: event.id, EventKind.UNDO: event.body.get("to")}
    epoch = moved.get(event.kind, event.epoch)
    return LaneTip(seq, epoch, await live.start_of(epoch), tip.base, tip.base_epoch)


async def verify_session(live: LiveSession) -> list[str]:
    """Returns what is wrong; empty if the log, its checkpoints and all its contexts agree."""
    found = list(await live.store.problems(live.id))
    events = await live.store.read(live.id, Slice(any_lane=True))
    found += broken_references(events)
    for lane in sorted({lane_key(event.lane) for event in events} | {""}):
        found += await _verify_lane(live, lane or None)
    return found


def broken_references(events: Sequence[Event]) -> list[str]:
    """Describes checkpoints and undos that refer to anything but events before them."""
    found: list[str] = []
    seen: set[str] = set()
    for event in events:
        if event.kind == EventKind.COMPACTION:
            checkpoint = msgspec.convert(event.body, Checkpoint)
            named = [checkpoint.boundary, checkpoint.previous, *(item.ref for item in checkpoint.head)]
            named += [name for run in checkpoint.archived for name in (run.first, run.last)]
            named += [name for name in checkpoint.edits if not name.endswith(SYNTHETIC_ID_SUFFIX)]
            missing = sorted({name for name in named if name is not None and name not in seen})
            if missing:
                found.append(f"compaction {event.id} names events that are not before it: {', '.join(missing)}")
        elif event.kind == EventKind.UNDO and (to := event.body.get("to")) is not None and to not in seen:
            found.append(f"undo {event.id} steps back to {to}, which is not before it")
        seen.add(event.id)
    return found


async def _verify_lane(live: LiveSession, lane: str | None) -> list[str]:
    """The view in memory must equal one rebuilt from the log as of the same version, and be valid for its format."""
    name = f"lane {lane!r}" if lane else "the context"
    try:
        kept = await live.view(lane)
        shown, record = encode_all(kept.context_messages(), kept.format), live.record  # before others append
        counting = SessionPolicy(live.policy, live.estimator, live.calibrated)
        fresh = await LiveSession(live.store, record, lambda *_: counting).view(lane)
    except HoldfastError as problem:
        return [f"{name} cannot be built: {problem}"]
    found = []
    if shown != encode_all(fresh.context_messages(), fresh.format):
        found.append(f"{name} differs from the one rebuilt from the log")
        live.heal(lane_key(lane))
    found += [f"{name}: {problem}" for problem in find_problems(fresh.context_messages(), fresh.rules)]
    return found
