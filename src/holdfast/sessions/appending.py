"""Appends message events to a lane, and the archived messages that waited for its tool results."""

from __future__ import annotations

from ..context.events import Event
from .live import LiveSession
from .message_events import MessageEvents, new_events
from .restore import restore_deferred


async def append_events(
    live: LiveSession, ready: MessageEvents, lane: str | None, *, after: int | None, named: bool = True
) -> list[Event]:
    """Returns the events as stored. `named`: the caller chose their ids, so this may be a retry."""
    events = await new_events(live, ready) if named else ready.events
    done = await live.store.append(live.id, events, after=after, media=ready.media)
    if done.fresh:
        await live.appended(done.events, done.version)
    if live.deferred_restores:
        await restore_deferred(live, lane)
    return await live.with_media(done.events)
