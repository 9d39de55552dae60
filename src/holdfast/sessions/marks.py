"""Pins and undos: marks that change what a context shows, each written by compare-and-set.

The condition is what the caller saw. Messages that others append meanwhile do not matter; their compactions, pins,
undos and redactions do.
"""

from __future__ import annotations

import anyio

from ..context.events import Event, EventKind, LaneTip, lane_key, new_id, now
from ..errors import Conflict, InvalidInput
from ..stores import Unchanged
from .live import LiveSession


async def pin_event(live: LiveSession, event_id: str, *, pinned: bool, id: str | None, after: int | None) -> None:
    """Appends a pin; without `after` as often as other writers are faster, since it holds whatever they did."""
    event = await live.event(event_id)
    if event.kind != EventKind.MESSAGE:
        raise InvalidInput(f"Event {event_id!r} is a {event.kind}: only messages can be pinned.")
    body = {"event": event_id, "pinned": pinned}
    pin = Event(new_id() if id is None else id, EventKind.PIN, now(), body, event.lane)
    while not await _mark(live, pin, live.tip(event.lane), after):
        if after is not None:
            raise Conflict(live.id)


async def undo_compaction(live: LiveSession, lane: str | None, to: str | None, after: int | None) -> str | None:
    """Appends an undo of what this service saw; returns the checkpoint now in force."""
    earlier, back = await tip_after_undo(live, lane, to)
    with anyio.CancelScope(shield=True):  # a cancellation in here would report that nothing changed
        if not await _mark(live, Event(new_id(), EventKind.UNDO, now(), {"to": earlier}, lane), back, after):
            raise Conflict(live.id)
    return earlier


async def tip_after_undo(live: LiveSession, lane: str | None, to: str | None) -> tuple[str | None, LaneTip]:
    """Returns the checkpoint that an undo goes back to, or to which a redo returns, and the lane's tip with it."""
    view = await live.view(lane)
    if to is None and view.checkpoint_id is None:
        raise InvalidInput(f"Session {live.id!r} has no compaction to undo.")
    if to is not None and ((named := await live.event(to)).kind != EventKind.COMPACTION or named.lane != lane):
        raise InvalidInput(f"Event {to!r} is no compaction of this lane: name the one to go back to.")
    earlier = view.checkpoint.previous if to is None else to
    tip = live.tip(lane)
    return earlier, LaneTip(tip.mark, earlier, await live.start_of(earlier), tip.base, tip.base_epoch)


async def _mark(live: LiveSession, event: Event, tip: LaneTip, after: int | None) -> bool:
    """Appends a mark if the lane has no newer one than `tip`, which is made from what was seen; else reads it again."""
    if after is not None and (tip.mark > after or _started_since(live, event.lane, after)):
        return False
    return not (await live.append([event], when=Unchanged(lane=event.lane, mark=tip.mark), tip=tip)).conflict


def _started_since(live: LiveSession, lane: str | None, version: int) -> bool:
    """Whether a lane's first message is newer than the version: what its root was by then is in no mark of its own."""
    started = live.record.lanes.get(lane_key(lane))
    return started is not None and started.base > version
