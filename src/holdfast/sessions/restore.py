"""Restores archived messages: a quoted copy at the end of the context, so what was shown before does not change."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import msgspec

from ..context import View
from ..context.events import Event, EventKind, lane_key, message_in
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
from ..stores import Unchanged
from .live import LiveSession
from .message_events import message_events

log = logging.getLogger("holdfast")


class RestoreLimits(msgspec.Struct, frozen=True):
    """The largest copy to restore and the session's window, both in tokens; None is no limit."""

    max_tokens: int | None = None
    window: int | None = None


async def restore_event(
    live: LiveSession, event_id: str, lane: str | None, id: str | None, limits: RestoreLimits
) -> Event:
    """Appends a quoted copy of an archived message, with its source; with a known `id`, writes nothing.

    The copy is synthetic: it counts as no turn, and a redaction of its source reaches it. If another writer compacts,
    pins, undoes or redacts meanwhile, the source is read again.
    """
    while True:
        unchanged = Unchanged(mark=live.tip(None).mark)  # any redaction moves it: the copy would bring the text back
        source = await _original(live, event_id)
        known = await live.events([id]) if id is not None else []
        if known and known[0].body.get("source") == source.id:
            return known[0]
        view = await live.view(lane)
        if view.pending_calls:
            names = ", ".join(repr(call.id) for call in view.pending_calls)
            raise InvalidInput(
                f"Tool calls wait for their results ({names}): append those, then restore {source.id!r}."
            )
        copy = _checked_copy(view, source, limits)
        ready = message_events(
            copy, view, lane=lane, ids=id, synthetic=True, format=live.record.format, source=source.id
        )
        done = await live.append(ready.events, when=unchanged, media=ready.media)
        if not done.conflict:
            return (await live.with_media(done.events))[0]


async def restore_after_results(
    live: LiveSession, event_id: str, lane: str | None, limits: RestoreLimits
) -> Event | None:
    """Restores a message now or, while tool calls are open, after their last result; None if it has to wait."""
    source = await _original(live, event_id)
    view = await live.view(lane)
    if not view.pending_calls:
        return await restore_event(live, source.id, lane, None, limits)
    _checked_copy(view, source, limits)
    live.deferred_restores.setdefault(lane_key(lane), {})[source.id] = limits
    return None


async def restore_deferred(live: LiveSession, lane: str | None) -> None:
    """Appends the copies that waited for tool results; one that no longer fits is left out and logged."""
    if (await live.view(lane)).pending_calls:
        return
    for event_id, limits in live.deferred_restores.pop(lane_key(lane), {}).items():
        try:
            await restore_event(live, event_id, lane, None, limits)
        except InvalidInput as problem:
            log.warning("session %s: an archived message was not restored: %s", live.id, problem)


async def _original(live: LiveSession, event_id: str) -> Event:
    """Returns the event to restore; for a restored copy, its source."""
    event = await live.event(event_id)
    if event.kind != EventKind.MESSAGE:
        raise InvalidInput(f"Event {event_id!r} is a {event.kind}: only messages can be restored.")
    if "redacted" in event.body:
        raise InvalidInput(f"Event {event_id!r} was redacted: there is nothing left to restore.")
    source = event.body.get("source")
    return await _original(live, source) if isinstance(source, str) else event


def _checked_copy(view: View, event: Event, limits: RestoreLimits) -> Message:
    """Returns the copy to append. Raises InvalidInput if the context already shows the event or has no room for it."""
    copies = {event.id, *(id for id, shown in view.events.items() if shown.body.get("source") == event.id)}
    shortened = {item.ref for item in view.checkpoint.head if item.ref and item.message is not None}
    if copies & view.events.keys() - view.checkpoint.edits.keys() - shortened:
        raise InvalidInput(f"Event {event.id!r} is in the context already: there is nothing to restore.")
    copy = _restored_copy(event)
    after = view.tokens_with(view.token_sums.estimator.measure(copy))
    size, limit, window = after - view.tokens, limits.max_tokens, limits.window
    if limit is not None and size > limit:
        raise InvalidInput(
            f"Event {reference(event)} takes {size:,} tokens, more than the {limit:,} that may be restored at once: "
            "read it in parts instead."
        )
    if window is not None and after > window:
        raise InvalidInput(
            f"Event {reference(event)} takes {size:,} tokens, and the context has room for "
            f"{max(0, window - view.tokens):,} of {window:,}: compact first, or read it in parts."
        )
    return copy


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
