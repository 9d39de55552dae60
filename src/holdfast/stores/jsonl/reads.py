"""Reads: sessions, slices, media, ids, search, and the integrity check."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from ...context.events import Event, SessionRecord, lane_key
from ..append import NO_TIP, LogEntry, find_problems
from ..base import Hit, Slice, Where
from ..search import CALL_LOOKBACK, EventFilter, Match, Query
from .folder import SessionFolder, file_name
from .format import TornBytes
from .index import IndexedFile, locate_slice

SCAN_EVENTS = 500
"""Events in memory at once during a search."""


def read_session(folder: SessionFolder, session_id: str) -> SessionRecord:
    with folder.shared_lock():
        return _read_session(folder, session_id)


def _read_session(folder: SessionFolder, session_id: str, locked: bool = False) -> SessionRecord:
    indexed = folder.sync_index(session_id, locked)
    record = folder.read_header(session_id)
    return msgspec.structs.replace(record, version=indexed.version, lanes=folder.index.lane_tips(indexed))


def list_sessions(folder: SessionFolder, owner: str | None, limit: int | None) -> list[SessionRecord]:
    with folder.shared_lock():
        chosen = [record for record in folder.read_headers() if owner is None or record.owner == owner]
        chosen.sort(key=lambda record: (record.created, record.id), reverse=True)
        return [_read_session(folder, record.id) for record in chosen[: None if limit is None else max(0, limit)]]


def list_forks(folder: SessionFolder, session_id: str) -> list[SessionRecord]:
    folder.require_session(session_id)
    with folder.shared_lock():
        forks = [record for record in folder.read_headers() if record.parent == session_id]
        forks.sort(key=lambda record: (record.created, record.id))
        return [_read_session(folder, record.id) for record in forks]


def list_relatives(folder: SessionFolder, session_id: str) -> list[SessionRecord]:
    folder.require_session(session_id)
    with folder.shared_lock():
        return [_read_session(folder, record.id) for record in folder.relatives(session_id)]


def read_events(folder: SessionFolder, session_id: str, which: Slice) -> list[Event]:
    with folder.shared_lock():
        return list(_read_slice(folder, folder.chain(session_id), which))


def read_media(folder: SessionFolder, session_id: str, digests: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    with folder.shared_lock():
        for indexed, _ in folder.chain(session_id):
            for digest in digests:
                path = os.path.join(folder.media_folder(indexed.id), file_name(digest))
                if digest not in found and os.path.exists(path):
                    with open(path, encoding="utf-8", newline="") as file:
                        found[digest] = file.read()
    return found


def search_events(
    folder: SessionFolder, query: str, session_id: str | None, owner: str | None, where: Where, limit: int, offset: int
) -> list[Hit]:
    """Scans every file; there is no full-text index."""
    matches: list[Match] = []
    with folder.shared_lock():
        event_filter = EventFilter(Query(query), where, partial(_events_before, folder))
        records = [folder.read_header(session_id)] if session_id is not None else list(folder.read_headers())
        for record in records:
            if owner is None or record.owner == owner:
                matches += _matches_in_session(folder, event_filter, record.id, inherited=session_id is not None)
        return event_filter.page(matches, limit, offset)


def _matches_in_session(
    folder: SessionFolder, event_filter: EventFilter, session_id: str, inherited: bool
) -> Iterator[Match]:
    chain = folder.chain(session_id) if inherited else folder.chain(session_id)[:1]
    tips = folder.index.lane_tips(chain[0][0])
    after = 0
    while page := list(_read_slice(folder, chain, Slice(any_lane=True, after=after, limit=SCAN_EVENTS))):
        for event in page:
            start = tips.get(lane_key(event.lane), NO_TIP).start
            if (found := event_filter.match(session_id, event, start)) is not None:
                yield found
        after = page[-1].seq


def _events_before(folder: SessionFolder, session_id: str, event: Event, call_id: str) -> Iterator[Event]:
    which = Slice(any_lane=True, until=event.seq - 1, limit=CALL_LOOKBACK, newest=True)
    return reversed(list(_read_slice(folder, folder.chain(session_id), which)))


def _read_slice(folder: SessionFolder, chain: list[tuple[IndexedFile, int]], which: Slice) -> Iterator[Event]:
    for indexed, locations in locate_slice(folder.index, chain, which):
        for entry in folder.read_entries(indexed, locations):
            yield entry.event


def ids_with_prefix(folder: SessionFolder, session_id: str, prefix: str, limit: int) -> list[str]:
    with folder.shared_lock():
        found = {
            name
            for indexed, until in folder.chain(session_id)
            for name in folder.index.ids_with_prefix(indexed, prefix, until, limit)
        }
        return sorted(found)[: max(0, limit)]


def check_session(folder: SessionFolder, session_id: str) -> list[str]:
    """Reads the whole file, without the index."""
    folder.require_session(session_id)
    found: list[str] = []
    own: list[LogEntry] = []
    with folder.shared_lock(), folder.session_lock(session_id, writing=False):
        record = _read_session(folder, session_id, locked=True)
        for piece in folder.scan_file(session_id):
            if isinstance(piece, TornBytes):
                found.append(f"At byte {piece.offset}, {piece.why}: it was skipped.")
            else:
                own.extend(located.line.entry for located in piece.lines)
        seqs = {entry.event.id: entry.event.seq for entry in reversed(own)}
        inherited: list[LogEntry] = []
        for indexed, locations in locate_slice(
            folder.index, folder.chain(session_id, locked=True)[1:], Slice(any_lane=True)
        ):
            for entry in folder.read_entries(indexed, locations):
                seqs.setdefault(entry.event.id, entry.event.seq)
                if entry.event.seq > record.parent_seq:  # of a parent that is being deleted
                    inherited.append(entry)
        own[:0] = inherited
    return found + find_problems(record, own, seqs)
