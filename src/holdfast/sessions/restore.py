"""Restores archived messages: a quoted copy at the end of the context, so what was shown before does not change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..context import View
from ..context.events import Event, EventKind, message_in
from ..context.references import reference
from ..errors import InvalidInput
from ..messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    add_frame,
    describe_media,
    to_json,
)
from .live import LiveSession
from .message_events import message_events


async def restore_event(live: LiveSession, event_id: str, lane: str | None, id: str | None) -> Event:
    """Appends a quoted copy of an archived message, with its source; with a known `id`, writes nothing.

    The copy is synthetic: it counts as no turn, and a redaction of its source reaches it.
    """
    source = await _original(live, event_id)
    known = await live.events([id]) if id is not None else []
    if known and known[0].body.get("source") == source.id:
        return known[0]
    view = await live.view(lane)
    _require_restorable(view, source)
    ready = message_events(
        _restored_copy(source), view, lane=lane, ids=id, synthetic=True, format=live.record.format, source=source.id
    )
    done = await live.store.append(live.id, ready.events, media=ready.media)
    await live.appended(done.events, done.version)
    return (await live.with_media(done.events))[0]


async def _original(live: LiveSession, event_id: str) -> Event:
    """Returns the event to restore; for a restored copy, its source."""
    event = await live.event(event_id)
    if event.kind != EventKind.MESSAGE:
        raise InvalidInput(f"Event {event_id!r} is a {event.kind}: only messages can be restored.")
    if "redacted" in event.body:
        raise InvalidInput(f"Event {event_id!r} was redacted: there is nothing left to restore.")
    source = event.body.get("source")
    return await _original(live, source) if isinstance(source, str) else event


def _require_restorable(view: View, event: Event) -> None:
    """Raises InvalidInput if tool calls are open, or if the context already shows the event."""
    if view.pending_calls:
        names = ", ".join(repr(call.id) for call in view.pending_calls)
        raise InvalidInput(f"Tool calls wait for their results ({names}): append those, then restore {event.id!r}.")
    copies = {event.id, *(id for id, shown in view.events.items() if shown.body.get("source") == event.id)}
    shortened = {item.ref for item in view.checkpoint.head if item.ref and item.message is not None}
    if copies & view.events.keys() - view.checkpoint.edits.keys() - shortened:
        raise InvalidInput(f"Event {event.id!r} is in the context already: there is nothing to restore.")


def _restored_copy(event: Event) -> Message:
    """The message as quoted text, with its media as they were."""
    message = message_in(event)
    text = add_frame(f"[Restored from earlier: {event_line(event, message.role)}]\n{quote_message(message)}")
    media = [part for part in message.parts if isinstance(part, Media)]
    media += [item for result in message.results for item in result.content if isinstance(item, Media)]
    return Message("user", (Text(text), *media))


def quote_message(message: Message, tools: Sequence[str] = ()) -> str:
    """Returns the parts of a message as text, one below the other; `tools` names results that have no name."""
    names = iter(tools if len(tools) == len(message.results) else ())
    return "\n".join(_quote_part(part, names) for part in message.parts)


def _quote_part(part: Part | Text | Media | Opaque, tools: Iterator[str]) -> str:
    match part:
        case Text():
            return part.text
        case Reasoning():
            return f"(thinking) {part.text}" if part.text else "(thinking, not readable)"
        case ToolCall():
            return f"→ {part.name} {part.arguments_json}"
        case ToolResult():
            content = "\n".join(_quote_part(item, tools) for item in part.content) or "(empty)"
            name = part.name or next(tools, "")
            return f"← {name + ' ' if name else ''}{'failed: ' if part.is_error else ''}{content}"
        case Media():
            return f"[{describe_media(part)}]"
        case Opaque():
            return f"({part.kind}) {to_json(part.data)}"


def event_line(event: Event, role: str) -> str:
    """Returns an event's reference, role, lane and time on one line."""
    lane = f" in lane {event.lane}" if event.lane else ""
    time = f", {event.time[:19].replace('T', ' ')}" if event.time else ""
    return f"{reference(event)}, {role}{lane}{time}"
