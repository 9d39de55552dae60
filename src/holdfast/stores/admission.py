"""What every store decides alike: which events of an append are new, whether it may happen, what it writes.

Pure functions over what a store looked up, so that memory, JSONL and SQLite cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..errors import DuplicateEvent, InvalidInput, StaleVersion
from ..events import Event, LaneTip, SessionRecord, digest_of, root_key
from .log import Appended, Unchanged

NO_TIP = LaneTip()


class Entry(msgspec.Struct, frozen=True):
    """An event with its encoded body and what its content comes to."""

    event: Event
    body: bytes
    """Encoded; empty where a store read the event and need not encode it again."""
    digest: str
    """Of the content as it was first appended: a rewrite does not change it."""
    rewritten: str | None = None
    """Of the content now, where it was rewritten."""


class Write(msgspec.Struct, frozen=True):
    """What an admitted append adds to a log."""

    entries: tuple[Entry, ...]
    tips: dict[str, LaneTip]
    """The tips it sets, by lane."""
    answer: Appended


def prepare(events: Sequence[Event], tip: LaneTip | None = None) -> tuple[Entry, ...]:
    """Encode events before anything is locked; InvalidInput for what no log can hold."""
    if tip is not None and (not events or len({root_key(event.lane) for event in events}) > 1):
        raise InvalidInput("A tip needs events of exactly one lane: append the lanes one by one.")
    return tuple(_encode(event) for event in events)


def _encode(event: Event) -> Entry:
    if not event.id:
        raise InvalidInput("An event id must not be empty: leave it to new_id().")
    try:
        if b"\0" in f"{event.id}{event.kind}{event.time}{event.lane or ''}".encode():
            raise ValueError("its envelope holds a NUL character")
        if event.lane == "":
            event = msgspec.structs.replace(event, lane=None)
        return Entry(event, msgspec.json.encode(event.body), event.digest)
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"Event {event.id!r} cannot be stored as JSON: {error}.") from error


def stored_text(session_id: str, data: str) -> str:
    """Encoded text that SQLite and files can hold; InvalidInput for half a surrogate pair."""
    try:
        data.encode()
    except UnicodeError as error:
        raise InvalidInput(f"Session {session_id!r} was given text that is not Unicode: {error}.") from error
    return data


def lanes_needed(entries: Sequence[Entry], when: Unchanged | None) -> set[str]:
    """The lanes whose tips `admit` looks at."""
    lanes = {root_key(entry.event.lane) for entry in entries}
    lanes.add("")
    if when is not None:
        lanes.add(root_key(when.lane))
    return lanes


def admit(
    session_id: str,
    entries: Sequence[Entry],
    known: Mapping[str, Entry],
    version: int,
    tips: Mapping[str, LaneTip],
    after: int | None,
    when: Unchanged | None,
    tip: LaneTip | None,
) -> Appended | Write:
    """Decide an append: a retry or a conflict is answered at once, anything else says what to write."""
    fresh: dict[str, Entry] = {}
    for entry in entries:
        earlier = known.get(entry.event.id) or fresh.get(entry.event.id)
        if earlier is None:
            fresh[entry.event.id] = entry
        elif earlier.digest != entry.digest:
            raise DuplicateEvent(entry.event.id, session_id)
    if not fresh:
        return Appended(tuple(known[entry.event.id].event for entry in entries), version, fresh=False)
    if after is not None and after != version:
        raise StaleVersion(session_id, after, version)
    if when is not None and not _holds(when, version, tips):
        return Appended((), version, conflict=True, fresh=False)
    stored, moved = _place(fresh, version, tips)
    last = next(reversed(stored.values())).event
    if tip is not None:
        lane = root_key(last.lane)
        own = moved.get(lane) or tips.get(lane, NO_TIP)
        moved[lane] = LaneTip(last.seq, tip.epoch, tip.start, own.base, own.base_epoch)
    events = tuple((stored.get(entry.event.id) or known[entry.event.id]).event for entry in entries)
    return Write(tuple(stored.values()), moved, Appended(events, last.seq))


def _place(
    fresh: Mapping[str, Entry], version: int, tips: Mapping[str, LaneTip]
) -> tuple[dict[str, Entry], dict[str, LaneTip]]:
    """Give each new event its seq and epoch; a lane's first event notes where the root stood."""
    stored: dict[str, Entry] = {}
    begun: dict[str, LaneTip] = {}
    for seq, (event_id, entry) in enumerate(fresh.items(), version + 1):
        event = entry.event
        lane = root_key(event.lane)
        place = tips.get(lane) or begun.get(lane)
        if place is None and lane:
            place = begun[lane] = LaneTip(base=seq - 1, base_epoch=tips.get("", NO_TIP).epoch)
        epoch = place.epoch if place else None
        event = Event(event.id, event.kind, event.time, event.body, event.lane, seq, epoch, event.v)
        stored[event_id] = Entry(event, entry.body, entry.digest)
    return stored, begun


def _holds(when: Unchanged, version: int, tips: Mapping[str, LaneTip]) -> bool:
    if when.version is not None and when.version != version:
        return False
    return when.mark is None or when.mark == tips.get(root_key(when.lane), NO_TIP).mark


def check_names(record: SessionRecord) -> None:
    """Refuse names that cannot be stored, before anything is locked."""
    stored_text(record.id, record.id + record.created + (record.owner or "") + (record.parent or ""))
    if not record.id:
        raise InvalidInput("A session id must not be empty: leave it to new_id().")


def check_record(record: SessionRecord, parent_version: int | None) -> None:
    """Refuse a record that no log could continue: `parent_version` is None where there is no parent."""
    if record.version != record.parent_seq:
        raise InvalidInput("A new session's version must be its parent_seq, or 0 where it has no parent.")
    last = parent_version or 0
    if not 0 <= record.parent_seq <= last:
        raise InvalidInput(f"A session cannot be forked at {record.parent_seq}: its parent ends at {last}.")


def rewrite_entry(stored: Entry, body: bytes, content: object) -> Entry:
    """The entry with another body; kind, lane, id and first digest stay as a tombstone."""
    event = stored.event
    return Entry(event, body, stored.digest, digest_of([event.kind, event.lane, content]))
