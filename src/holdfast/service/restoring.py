"""Bringing something archived back into a context: as a quoted copy at its end, with its source (H1).

What was shown before stays byte for byte as it was, so the prompt cache holds. The copy is a note of ours:
it counts as no turn, goes again when its time comes, and a redaction of its source reaches it.
"""

from __future__ import annotations

from ..errors import InvalidInput
from ..events import Event, Kind
from ..messages import Media, Message, Text, decode_one, frame
from ..view import View
from .live import LiveSession
from .quoting import quoted, said_when


async def source_of(live: LiveSession, event_id: str) -> Event:
    """The event to restore; for a copy that was restored before, what it is a copy of."""
    event = await live.event(event_id)
    if event.kind != Kind.MESSAGE:
        raise InvalidInput(f"Event {event_id!r} is a {event.kind}: only messages can be restored.")
    if "redacted" in event.body:
        raise InvalidInput(f"Event {event_id!r} was redacted: there is nothing left to restore.")
    source = event.body.get("source")
    return await source_of(live, source) if isinstance(source, str) else event


def must_be_useful(view: View, event: Event) -> None:
    """Refuse what would do harm, or nothing."""
    if view.waiting:
        names = ", ".join(repr(call.id) for call in view.waiting)
        raise InvalidInput(f"Tool calls wait for their results ({names}): append those, then restore {event.id!r}.")
    there = {event.id, *(id for id, shown in view.events.items() if shown.body.get("source") == event.id)}
    if there & view.events.keys() - view.checkpoint.edits.keys() - _changed(view):
        raise InvalidInput(f"Event {event.id!r} is in the context already: there is nothing to restore.")


def _changed(view: View) -> set[str]:
    """Events that the head shows in other words."""
    return {item.ref for item in view.checkpoint.head if item.ref and item.message is not None}


def copy_of(event: Event) -> Message:
    """What is appended: the message in words, and its media as they were."""
    message = decode_one(event.body["message"], event.body.get("format"))
    text = frame(f"[Restored from earlier: {said_when(event, message.role)}]\n{quoted(message)}")
    media = [part for part in message.parts if isinstance(part, Media)]
    media += [item for result in message.results for item in result.content if isinstance(item, Media)]
    return Message("user", (Text(text), *media))
