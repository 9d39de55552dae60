"""Looking into a session's log, and starting a new session from a point in it."""

from __future__ import annotations

import msgspec

from ..errors import InvalidInput
from ..events import Event, Kind, LaneTip, SessionRecord, root_key
from ..stores import Slice
from ..stores.said import said_in
from .live import LiveSession

ROOT = ""


class Pages(msgspec.Struct, frozen=True):
    """Which of the events found to return."""

    last: int | None = None
    page: int | None = None
    page_size: int | None = None

    def __post_init__(self) -> None:
        if self.last is not None and (self.page is not None or self.page_size is not None):
            raise InvalidInput("Use last= or page=/page_size=, not both.")
        if self.page is not None and self.page_size is None:
            raise InvalidInput("page= needs page_size=.")
        for name, value, least in (("last", self.last, 1), ("page", self.page, 0), ("page_size", self.page_size, 1)):
            if value is not None and value < least:
                raise InvalidInput(f"{name} must be at least {least}, not {value}.")

    def of(self, events: list[Event]) -> list[Event]:
        if self.last is not None:
            return events[-self.last :]
        if self.page_size is not None:
            first = (self.page or 0) * self.page_size
            return events[first : first + self.page_size]
        return events


async def find(
    live: LiveSession, pages: Pages, *, kind: str | None, lane: str | None, archived: bool | None, text: str | None
) -> list[Event]:
    which = Slice(lane=lane or None, any_lane=lane is None, kinds=(kind,) if kind else ())
    if pages.last is not None and text is None and archived is None:
        which = msgspec.structs.replace(which, limit=pages.last, newest=True)
    events = await live.store.read(live.id, which)
    if archived is not None:
        events = await _by_visibility(live, events, archived)
    if text:
        wanted = text.casefold()
        events = [event for event in events if wanted in said_in(event).text.casefold()]
    return await live.with_media(pages.of(events))


async def _by_visibility(live: LiveSession, events: list[Event], archived: bool) -> list[Event]:
    visible: dict[str, set[str]] = {}
    for key in {root_key(event.lane) for event in events}:
        view = await live.view(key or None)
        visible[key] = set(view.events)
    return [
        event
        for event in events
        if event.kind == Kind.MESSAGE and (event.id not in visible[root_key(event.lane)]) is archived
    ]


async def shown_first(live: LiveSession) -> frozenset[str]:
    """Events before the live window that a context shows all the same: pins, a preamble, a split turn's start."""
    sources: set[str] = set()
    for key, tip in live.record.lanes.items():
        if tip.epoch is not None:
            view = await live.view(key or None)
            sources.update(shown.source for shown in view.head if shown.source)
    return frozenset(sources)


async def fork_record(live: LiveSession, at: str | None, new: str, created: str) -> SessionRecord:
    """The record of a session that shares this one's events up to `at`: constant work."""
    source = live.record
    seq, root = source.version, live.tip(None)
    if at is not None:
        event = await live.event(at)
        if event.lane is not None:
            raise InvalidInput(f"Event {at!r} belongs to the lane {event.lane!r}: fork from an event of the root.")
        seq = event.seq
        moved = {Kind.COMPACTION: event.id, Kind.UNDO: event.body.get("to")}
        epoch = moved.get(event.kind, event.epoch)
        root = LaneTip(mark=seq, epoch=epoch, start=await live.start_of(epoch))
    lanes = {ROOT: root} | {
        key: tip if tip.mark <= seq else LaneTip(start=seq, base=seq, base_epoch=root.epoch)
        for key, tip in source.lanes.items()
        if key != ROOT and tip.base < seq
    }
    return msgspec.structs.replace(
        source, id=new, created=created, parent=source.id, parent_seq=seq, version=seq, lanes=lanes
    )
