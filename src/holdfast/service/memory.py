"""Remembering something for as long as a session lives: one more message now, part of a summary later (W11)."""

from __future__ import annotations

import msgspec

from ..errors import InvalidInput
from ..events import Event
from ..messages import Message, decode_one
from ..strategies.blend_memory import is_note, note_of
from ..summaries import readable
from .live import LiveSession
from .writing import draft


async def remember(live: LiveSession, text: str, lane: str | None, id: str | None) -> Event:
    """Append a note; with an id that is known, nothing is written."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput("There is nothing to remember: give a text that is not blank.")
    note = note_of(readable(text))
    known = await live.events([id]) if id is not None else []
    if any(_is(event, note) for event in known):
        return known[0]
    view = await live.view(lane)
    if view.waiting:
        names = ", ".join(repr(call.id) for call in view.waiting)
        raise InvalidInput(f"Tool calls wait for their results ({names}): append those, then remember this.")
    ready = draft(note, view, lane=lane, ids=id, usage=None, synthetic=True, format=live.record.format)
    events = [msgspec.structs.replace(event, body={**event.body, "memory": True}) for event in ready.events]
    done = await live.store.append(live.id, events)
    if done.fresh:
        await live.appended(done.events, done.version)
    return done.events[0]


def _is(event: Event, note: Message) -> bool:
    return is_note(event) and decode_one(event.body["message"], event.body.get("format")).parts == note.parts
