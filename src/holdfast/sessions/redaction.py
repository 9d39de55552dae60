"""Redaction, the only rewrite of a log: its owner removes content for privacy, in every session that shares it.

One redaction is one step of the store: the events, what was derived from them, and a note that makes every process
read again and refuses compactions made before. A cancelled or killed caller may repeat it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from anyio import to_thread

from ..context.events import Event, EventKind, SessionRecord, message_in, new_id, now
from ..errors import Conflict, InvalidInput
from ..messages import (
    COMMON,
    Drop,
    Json,
    Message,
    Path,
    Text,
    drop_parts,
    drop_rejected_parts,
    encode_all,
    rules_for,
)
from ..stores import Log, Rewrite, Slice
from .live import LiveSession
from .scrubbing import (
    REDACTED,
    NotesScrubber,
    Scrubber,
    TextScrubber,
    is_reasoning_with,
    scrub_checkpoint,
    scrub_data,
    strings_in,
    texts_of,
    without_content,
)

MAX_ATTEMPTS = 20
"""How often a redaction is planned again because another process wrote meanwhile."""
Family = Mapping[str, tuple[SessionRecord, Sequence[Event]]]
"""Sessions that share an event, by id, each with its own events; the one that has it first."""


async def redact_event(live: LiveSession, event_id: str) -> None:
    """Removes the content of one message, its restored copies, and what checkpoints quote of it."""
    for _ in range(MAX_ATTEMPTS):
        event = await live.event(event_id)
        if event.kind != EventKind.MESSAGE:
            raise InvalidInput(f"Event {event_id!r} is a {event.kind}: only messages can be redacted.")
        owner = await _owner(live, event.seq)
        family = await _family(live.store, owner, event.seq)
        current = next(each for each in family[owner.id][1] if each.id == event_id)
        if "redacted" in current.body and _is_noted(family, event_id):
            await live.store.rewrite(())  # finishes an interrupted erasure
            return
        changes = await to_thread.run_sync(_without_message, family, event)
        if await live.store.rewrite(changes):
            await live.refresh()
            return
        await live.refresh()
    raise Conflict(live.id)


async def redact_text(live: LiveSession, text: str) -> int:
    """Removes a text from every event, record and note; returns the number of events that had it."""
    if not text.strip():
        raise InvalidInput("There is nothing to redact: give a text that is not blank.")
    for _ in range(MAX_ATTEMPTS):
        family = await _family(live.store, await _owner(live, 0), 0)
        changes = await to_thread.run_sync(_without_text, family, text)
        if await live.store.rewrite(changes):
            await live.refresh()
            return sum(len(change.events) for change in changes)
        await live.refresh()
    raise Conflict(live.id)


async def _owner(live: LiveSession, seq: int) -> SessionRecord:
    """Returns the session whose own event this is: itself, or an ancestor. For seq 0, the oldest ancestor."""
    record = await live.store.session(live.id)
    while record.parent is not None and seq <= record.parent_seq:
        record = await live.store.session(record.parent)
    return record


async def _family(store: Log, owner: SessionRecord, seq: int) -> Family:
    family: dict[str, tuple[SessionRecord, Sequence[Event]]] = {}
    waiting = [owner]
    for record in waiting:
        own = Slice(any_lane=True, after=record.parent_seq, until=record.version)
        family[record.id] = (record, await store.read(record.id, own))
        waiting += [fork for fork in await store.forks(record.id) if fork.parent_seq >= seq]
    return family


def _is_noted(family: Family, event_id: str) -> bool:
    return any(
        event.kind == EventKind.REDACTION and event.body.get("event") == event_id
        for _, events in family.values()
        for event in events
    )


def _without_message(family: Family, redacted: Event) -> list[Rewrite]:
    def is_copy(event: Event) -> bool:
        return event.id == redacted.id or event.body.get("source") == redacted.id

    everything = [event for _, events in family.values() for event in events]
    gone = {event.id for event in everything if event.kind == EventKind.MESSAGE and is_copy(event)}
    others = (event for event in everything if event.kind == EventKind.MESSAGE and event.id not in gone)
    known = (text for event in others for text in strings_in(event.body.get("message")))
    scrub = NotesScrubber(texts_of(message_in(redacted)), known)

    def change(event: Event) -> Json:
        if event.id in gone:
            return event.body if "redacted" in event.body else _tombstone(event)
        if event.kind == EventKind.MESSAGE or event.seq < redacted.seq:  # a note from before it cannot quote it
            return event.body
        return _scrubbed(event, scrub, gone)

    return _changes(family, change, {"event": redacted.id}, redacted.seq, redacted.lane)


def _without_text(family: Family, text: str) -> list[Rewrite]:
    scrub = TextScrubber(text)
    everything = [event for _, events in family.values() for event in events]
    dropped: dict[str, Sequence[Path]] = {}
    clean: dict[str, Json] = {
        event.id: scrub_data(_without_signed(event, scrub, dropped), scrub)
        for event in everything
        if event.kind == EventKind.MESSAGE
    }
    notes = NotesScrubber([text], (text for body in clean.values() for text in strings_in(body.get("message"))))

    def change(event: Event) -> Json:
        return (
            clean[event.id] if event.id in clean else _scrubbed(event, lambda quote: notes(scrub(quote)), (), dropped)
        )

    changes = _changes(family, change, {}, 0, None)
    records = [family[each.session_id][0] for each in changes]
    return [
        msgspec.structs.replace(each, record=_scrubbed_record(record, scrub))
        for each, record in zip(changes, records, strict=True)
    ]


def _changes(
    family: Family, change: Callable[[Event], Json], note: Json, since: int, lane: str | None
) -> list[Rewrite]:
    changed = {
        id: [msgspec.structs.replace(event, body=body) for event in events if (body := change(event)) != event.body]
        for id, (_, events) in family.items()
    }
    kept = {event.id for events in changed.values() for event in events}
    in_use = {
        digest
        for id, (_, events) in family.items()
        for event in [*changed[id], *(event for event in events if event.id not in kept)]
        for digest in event.body.get("media", ())
    }
    return [
        Rewrite(
            id,
            record.version,
            Event(new_id(), EventKind.REDACTION, now(), note, lane if lane is None or lane in record.lanes else None),
            tuple(changed[id]),
            tuple(sorted({digest for event in events for digest in event.body.get("media", ())} - in_use)),
            since,
        )
        for id, (record, events) in family.items()
    ]


def _scrubbed(
    event: Event, scrub: Scrubber, gone: Iterable[str], dropped: Mapping[str, Sequence[Path]] | None = None
) -> Json:
    """Returns the body of an event that is no message."""
    if event.kind == EventKind.COMPACTION:
        return scrub_checkpoint(event.body, scrub, gone, dropped)
    if event.kind == EventKind.ATTEMPT:
        return {**event.body, "why": scrub(str(event.body.get("why", "")))}
    return event.body


def _scrubbed_record(record: SessionRecord, scrub: Scrubber) -> SessionRecord:
    return msgspec.structs.replace(
        record,
        system=scrub_data(record.system, scrub),
        tools=scrub_data(record.tools, scrub),
        metadata=scrub_data(record.metadata, scrub, keys=True),
    )


def _tombstone(event: Event) -> Json:
    """The event without its content: still a valid message, with its calls and results in place."""
    message = message_in(event)
    format = event.body.get("format") or "openai-chat"
    payload: Json = encode_all([without_content(message)], format)[0]
    body: Json = {"message": payload, "redacted": event.digest}
    for key in ("format", "usage", "model", "foreign_usage", "synthetic", "aside", "source", "closes"):
        if key in event.body:
            body[key] = event.body[key]
    return body


def _without_signed(event: Event, scrub: Scrubber, dropped: dict[str, Sequence[Path]]) -> Json:
    """Returns the body without reasoning that has the text: a changed one would no longer match its signature.

    Records in `dropped` what the message, as it is shown and edited, has lost.
    """
    message = message_in(event)
    bare = _without_reasoning(message, scrub)
    if bare is message:
        return event.body
    if shown := drop_rejected_parts(message, rules_for(event.body.get("format") or COMMON)):
        dropped[event.id] = [edit.path for edit in _without_reasoning(shown, scrub).edits if isinstance(edit, Drop)]
    if not bare.parts:
        bare = Message(message.role, (Text(REDACTED),), message.format)
    return {**event.body, "message": encode_all([bare], event.body.get("format") or "openai-chat")[0]}


def _without_reasoning(message: Message, scrub: Scrubber) -> Message:
    return drop_parts(message, [at for at, part in enumerate(message.parts) if is_reasoning_with(part, scrub)])
