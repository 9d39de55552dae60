"""From a reference to the events it names."""

from __future__ import annotations

import msgspec

from ..errors import AmbiguousReference, InvalidInput, UnknownEvent
from ..events import Event, SessionRecord
from ..references import reference, seq_of, span_of
from ..stores import Log, Search, Slice
from ..summaries import readable

MOST_NAMED = 3
"""Events that an error names as what could have been meant."""


class Place(msgspec.Struct, frozen=True):
    """Events of a session, from a character of the first on."""

    first: Event
    last: Event
    offset: int = 0


async def resolve(store: Log, record: SessionRecord, written: str) -> Place:
    """The events that a reference names. A whole id is taken as such, whatever is in it."""
    bare = readable(written).strip() if isinstance(written, str) else ""
    if bare and not bare.startswith("#") and (exact := await _by_id(store, record, bare)):
        return Place(exact, exact)
    span = span_of(bare or written)
    if bare.startswith("#") and seq_of(bare) is None and (exact := await _by_id(store, record, bare[1:])):
        return Place(exact, exact)
    first = await _named(store, record, span.first)
    last = first if span.last is None else await _named(store, record, span.last)
    if last.seq < first.seq:
        raise InvalidInput(f"{written!r} ends before it begins: write {reference(last)}-{reference(first)}.")
    return Place(first, last, span.offset)


async def _named(store: Log, record: SessionRecord, name: str) -> Event:
    """One event, by its number, its id, or the beginning of its id."""
    seq = seq_of(name)
    if seq is not None:
        found = await store.read(record.id, Slice(any_lane=True, after=seq - 1, until=seq)) if seq else []
        if not found:
            has = f"it has #1 to #{record.version}" if record.version else "it has none yet"
            raise UnknownEvent(f"#{name}", record.id, has)
        return found[0]
    if exact := await _by_id(store, record, name):
        return exact
    ids = await store.ids(record.id, name, MOST_NAMED + 1) if isinstance(store, Search) else []
    events = await store.read(record.id, Slice(any_lane=True, ids=tuple(ids))) if ids else []
    if not events:
        raise UnknownEvent(name, record.id, "no id begins so; use a number as in #1, or search for it")
    if len(events) > 1:
        raise AmbiguousReference(name, record.id, [reference(event) for event in events[:MOST_NAMED]])
    return events[0]


async def _by_id(store: Log, record: SessionRecord, name: str) -> Event | None:
    found = await store.read(record.id, Slice(any_lane=True, ids=(name,)))
    return found[0] if found else None
