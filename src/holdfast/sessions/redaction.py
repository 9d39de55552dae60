"""Redaction, the only rewrite of a log: its owner removes content for privacy, in every session that shares it.

One redaction is one step of the store: the events, what was derived from them, and a note that makes every process
read again and refuses compactions made before. A cancelled or killed caller may repeat it. Logs are read in pages, so
that memory does not grow with them. Afterwards the content is searched for; what is left is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio.to_thread
import msgspec

from ..context.events import Event, EventKind, SessionRecord, message_in, new_id, now
from ..errors import Conflict, InvalidInput, UnknownSession
from ..messages import COMMON, Drop, Json, Message, Path, Text, drop_parts, drop_rejected_parts, encode_all, rules_for
from ..stores import Log, Rewrite, Search, Where
from .handoff import handoff_citation
from .live import LiveSession
from .scrubbing import (
    BothScrubbers,
    NotesScrubber,
    Scrubber,
    is_reasoning_with,
    scrub_checkpoint,
    scrub_data,
    scrub_payload,
    strings_in,
    texts_of,
    without_content,
)
from .text_scrubber import REDACTED, QuoteFinder, TextScrubber
from .traces import Family, find_traces, read_pages

MAX_ATTEMPTS = 20
"""How often a redaction is planned again because another process wrote meanwhile."""
_DERIVED = (EventKind.COMPACTION, EventKind.ATTEMPT)
"""Kinds of events that quote messages."""
_WITHOUT_TEXT = frozenset((EventKind.PIN, EventKind.UNDO, EventKind.REDACTION))
_KEPT_FIELDS = frozenset(("message", "format", "source", "made_on", "media", "counter"))
"""Fields of a message event that have ids of ours, or are scrubbed as a message."""


class Redaction(msgspec.Struct, frozen=True):
    """What a redaction has done."""

    events: int = 0
    """Number of events that had the content."""
    left: tuple[str, ...] = ()
    """Where it still is; empty if it is nowhere that Holdfast can reach."""


async def redact_event(live: LiveSession, event_id: str) -> Redaction:
    """Removes the content of one message, its restored copies, and what checkpoints quote of it."""
    event = await live.event(event_id)
    if event.kind != EventKind.MESSAGE:
        raise InvalidInput(f"Event {event_id!r} is a {event.kind}: only messages can be redacted.")
    texts = [] if "redacted" in event.body else texts_of(message_in(event))
    plan = await _redact(live.store, live.id, event.seq, lambda: _MessagePlan(event, texts))
    await live.refresh()
    left = await live.store.erase()
    left += await find_traces(live.store, plan.family, QuoteFinder(texts))
    derived = {record.id: record for record in await _handoffs(live.store, plan.family)}
    left += await find_traces(live.store, derived, QuoteFinder(plan.notes.quotes))
    return Redaction(plan.count, tuple(left))


async def redact_text(live: LiveSession, text: str) -> Redaction:
    """Removes a text from every event, record and note, and from the sessions handed off from these."""
    if not text.strip():
        raise InvalidInput("There is nothing to redact: give a text that is not blank.")
    secret = await anyio.to_thread.run_sync(TextScrubber, text)
    total, traces = 0, list[str]()
    for _ in range(MAX_ATTEMPTS):
        count, family = await _redact_everywhere(live, secret)
        total += count
        traces = await find_traces(live.store, family, secret, media=True)
        if not traces or not count:  # else it may have been appended between the rewrite and this search
            break
    await live.refresh()
    return Redaction(total, (*await live.store.erase(), *traces))


async def _redact_everywhere(live: LiveSession, secret: TextScrubber) -> tuple[int, Family]:
    """Removes a text from the sessions that share events with this one, and from those handed off from them."""
    family: Family = {}
    count, waiting = 0, [live.id]
    for session_id in waiting:
        if session_id not in family:
            plan = await _redact(live.store, session_id, 0, lambda: _TextPlan(secret))
            count += plan.count
            family |= plan.family
            waiting += [record.id for record in await _handoffs(live.store, plan.family)]
    return count, family


async def _redact(store: Log, session_id: str, seq: int, start: Callable[[], _Plan]) -> _Plan:
    """Plans and rewrites until no other process writes in between; returns the plan that was carried out."""
    plan: _Plan | None = None
    for _ in range(MAX_ATTEMPTS):
        try:
            family = await _family(store, session_id, seq)
            if plan is None or not await plan.extend(store, family):
                plan = start()
                await plan.read(store, family)
            changes = plan.changes(seq)
            if not changes or await store.rewrite(changes):
                return plan
        except UnknownSession:
            await store.session(session_id)  # else another one of the family was deleted meanwhile
            plan = None
    raise Conflict(session_id)


async def _family(store: Log, session_id: str, seq: int) -> Family:
    """Returns the sessions that share this seq: the one that has it first, its forks, and those with copies.

    For seq 0, all that share anything with the session.
    """
    record = await store.session(session_id)
    while record.parent is not None and seq <= record.parent_seq:
        record = await store.session(record.parent)
    family: Family = {}
    waiting = [record]
    for each in waiting:
        if each.id not in family:
            family[each.id] = each
            waiting += [fork for fork in await store.forks(each.id) if fork.parent_seq >= seq]
            waiting += await store.relatives(each.id)
    return family


async def _handoffs(log: Log, family: Family) -> list[SessionRecord]:
    """Returns the sessions that begin with a handoff of one of these."""
    found: Family = {}
    store: object = log
    if not isinstance(store, Search):
        return []
    for record in family.values():
        citation, messages = handoff_citation(record.id), Where(kinds=(EventKind.MESSAGE,))
        hits = await store.search(citation, owner=record.owner, where=messages, limit=100)
        names = {hit.session_id for hit in hits if any(citation in text for text in strings_in(hit.event.body))}
        found |= {name: await log.session(name) for name in names - family.keys()}
    return list(found.values())


class _Plan:
    """Finds out what a redaction changes; reads each log once, and its checkpoints twice."""

    def __init__(self, notes: NotesScrubber, since: int = 0) -> None:
        self.notes = notes
        self.since = since
        """Events up to this seq stay; only their words are of interest."""
        self.family: Family = {}
        self.note: Json = {}
        self.lane: str | None = None
        self.media: set[str] = set()
        """Media that only redacted events have."""
        self._ids: dict[str, list[str]] = {}
        self._wanted: set[str] = set()

    @property
    def count(self) -> int:
        return sum(map(len, self._ids.values()))

    def message_body(self, event: Event) -> Json:
        """Returns the body of a message without what is redacted; the same object if it has nothing of it."""
        raise NotImplementedError

    def other_body(self, event: Event) -> Json:
        raise NotImplementedError

    def record(self, record: SessionRecord) -> SessionRecord:
        return record

    def change(self, event: Event) -> Json:
        return self.message_body(event) if event.kind == EventKind.MESSAGE else self.other_body(event)

    async def read(self, store: Log, family: Family) -> None:
        self.family = family
        for record in family.values():
            async for page in read_pages(store, record, self.since, _DERIVED):
                await anyio.to_thread.run_sync(self._read_notes, page)
        self.notes.look_only_for(self._wanted)
        for record in family.values():
            async for page in read_pages(store, record, self.since if self.notes.is_decided else 0):
                await anyio.to_thread.run_sync(self._read_page, record.id, page)
        for record in family.values():
            async for page in read_pages(store, record, self.since, _DERIVED):
                await anyio.to_thread.run_sync(self._choose, record.id, page)

    async def extend(self, store: Log, family: Family) -> bool:
        """Reads what was appended since; False if anything but messages was, or if the family is another one."""
        if {id: _marks(record) for id, record in family.items()} != {
            id: _marks(record) for id, record in self.family.items()
        }:
            return False
        for record in family.values():
            async for page in read_pages(store, record, self.family[record.id].version):
                if any(event.kind in _DERIVED for event in page):
                    return False
                await anyio.to_thread.run_sync(self._read_page, record.id, page)
        self.family = family
        return True

    def changes(self, seq: int) -> list[Rewrite]:
        records = {record.id: self.record(record) for record in self.family.values()}
        if not self.count and records == self.family:
            return []
        return [
            Rewrite(
                record.id,
                record.version,
                Event(
                    new_id(), EventKind.REDACTION, now(), self.note, self.lane if self.lane in record.lanes else None
                ),
                self._ids.get(record.id, ()),
                self.change,
                tuple(sorted(self.media)),
                seq,
                None if records[record.id] == record else records[record.id],
            )
            for record in self.family.values()
        ]

    def _read_notes(self, page: Sequence[Event]) -> None:
        for event in page:
            self._wanted |= self.notes.relevant_words(strings_in(event.body, keys=True))

    def _read_page(self, session_id: str, page: Sequence[Event]) -> None:
        self._choose(session_id, [event for event in page if event.seq > self.since and event.kind not in _DERIVED])
        for event in page if not self.notes.is_decided else ():
            if event.kind == EventKind.MESSAGE:
                self.spare_words(event)

    def spare_words(self, event: Event) -> None:
        for text in strings_in(self.message_body(event).get("message")):
            self.notes.spare(text)

    def _choose(self, session_id: str, page: Sequence[Event]) -> None:
        changed = [event.id for event in page if self.change(event) != event.body]
        self._ids.setdefault(session_id, []).extend(changed)
        chosen = frozenset(changed)
        for event in page if self.media else ():
            if event.id not in chosen:
                self.media.difference_update(event.body.get("media", ()))


def _marks(record: SessionRecord) -> dict[str, int]:
    """Returns the last compaction, undo, pin or redaction of each lane that has any."""
    return {lane: tip.mark for lane, tip in record.lanes.items() if tip.mark}


class _MessagePlan(_Plan):
    """Redacts one message and its restored copies."""

    def __init__(self, event: Event, texts: Sequence[str]) -> None:
        super().__init__(NotesScrubber(texts), event.seq - 1)
        self._event = event
        self.note, self.lane = {"event": event.id}, event.lane
        self.media = set(event.body.get("media", ()))

    def _is_copy(self, event: Event) -> bool:
        return self._event.id in (event.id, event.body.get("source"))

    def message_body(self, event: Event) -> Json:
        return _tombstone(event) if self._is_copy(event) and "redacted" not in event.body else event.body

    def other_body(self, event: Event) -> Json:
        if event.kind not in _DERIVED:
            return event.body
        return _scrub_notes(event, self.notes, frozenset((self._event.id,)), {})

    def spare_words(self, event: Event) -> None:
        if not self._is_copy(event):
            super().spare_words(event)


class _TextPlan(_Plan):
    """Redacts a text wherever it is."""

    def __init__(self, secret: TextScrubber) -> None:
        super().__init__(NotesScrubber([secret.text]))
        self._secret = secret
        self._both = BothScrubbers(secret, self.notes)
        self._dropped: dict[str, Sequence[Path]] = {}
        """The reasoning that messages have lost, by event id, as edits count their parts."""

    def message_body(self, event: Event) -> Json:
        if not self._secret.finds(msgspec.json.encode(event.body).decode()):
            return event.body
        body = _without_signed(event, self._secret, self._dropped)
        kept = {name: item for name, item in body.items() if name in _KEPT_FIELDS}
        others: Json = scrub_data({n: item for n, item in body.items() if n not in kept}, self._secret, keys=True)
        return {**kept, "message": scrub_payload(body["message"], self._secret), **others}

    def other_body(self, event: Event) -> Json:
        if event.kind in _DERIVED:
            return _scrub_notes(event, self._both, frozenset(), self._dropped)
        if event.kind in _WITHOUT_TEXT or not self._secret.finds(msgspec.json.encode(event.body).decode()):
            return event.body
        clean: Json = scrub_data(event.body, self._secret, keys=event.kind != EventKind.POLICY)
        return clean

    def record(self, record: SessionRecord) -> SessionRecord:
        return msgspec.structs.replace(
            record,
            system=scrub_payload(record.system, self._secret),
            tools=scrub_payload(record.tools, self._secret),
            metadata=scrub_data(record.metadata, self._secret, keys=True),
        )


def _scrub_notes(event: Event, scrub: Scrubber, gone: frozenset[str], dropped: dict[str, Sequence[Path]]) -> Json:
    """Returns the body of an event that was derived from messages."""
    if event.kind == EventKind.COMPACTION:
        return scrub_checkpoint(event.body, scrub, gone, dropped)
    return {**event.body, "why": scrub(str(event.body.get("why", "")))}


def _tombstone(event: Event) -> Json:
    """The event without its content: still a valid message, with its calls and results in place."""
    message = message_in(event)
    format = event.body.get("format") or "openai-chat"
    payload: Json = encode_all([without_content(message)], format)[0]
    body: Json = {"message": payload, "redacted": True}
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
