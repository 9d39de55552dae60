"""Everything that reads a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from ...events import Event, SessionRecord, root_key
from ..admission import NO_TIP, Entry
from ..checks import find_problems
from ..log import Hit, Slice, Where
from ..query import Query
from ..sieve import LOOK_BACK, Catch, Sieve
from .choose import choose
from .folder import Folder
from .index import Known
from .names import file_name
from .scan import Torn


def session(folder: Folder, session_id: str) -> SessionRecord:
    with folder.shared():
        return _session(folder, session_id)


def _session(folder: Folder, session_id: str, locked: bool = False) -> SessionRecord:
    known = folder.level(session_id, locked)
    record = folder.header(session_id)
    return msgspec.structs.replace(record, version=known.version, lanes=folder.index.tips(known))


def sessions(folder: Folder, owner: str | None, limit: int | None) -> list[SessionRecord]:
    with folder.shared():
        chosen = [record for record in folder.headers() if owner is None or record.owner == owner]
        chosen.sort(key=lambda record: (record.created, record.id), reverse=True)
        return [_session(folder, record.id) for record in chosen[: None if limit is None else max(0, limit)]]


def read(folder: Folder, session_id: str, which: Slice) -> list[Event]:
    with folder.shared():
        return list(_events(folder, folder.chain(session_id), which))


def media(folder: Folder, session_id: str, digests: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    with folder.shared():
        for known, _ in folder.chain(session_id):
            for digest in digests:
                path = os.path.join(folder.media_folder(known.id), file_name(digest))
                if digest not in found and os.path.exists(path):
                    with open(path, encoding="utf-8", newline="") as file:
                        found[digest] = file.read()
    return found


def search(
    folder: Folder, query: str, session_id: str | None, owner: str | None, where: Where, limit: int, offset: int
) -> list[Hit]:
    """Reads every file: a folder of JSONL is for people and small collections."""
    caught: list[Catch] = []
    with folder.shared():
        sieve = Sieve(Query(query), where, partial(_earlier, folder))
        records = [folder.header(session_id)] if session_id is not None else list(folder.headers())
        for record in records:
            if owner is None or record.owner == owner:
                caught += _caught(folder, sieve, record.id, inherited=session_id is not None)
        return sieve.page(caught, limit, offset)


def _caught(folder: Folder, sieve: Sieve, session_id: str, inherited: bool) -> Iterator[Catch]:
    chain = folder.chain(session_id) if inherited else folder.chain(session_id)[:1]
    tips = folder.index.tips(chain[0][0])
    for event in _events(folder, chain, Slice(any_lane=True)):
        start = tips.get(root_key(event.lane), NO_TIP).start
        if (found := sieve.catch(session_id, event, start)) is not None:
            yield found


def _earlier(folder: Folder, session_id: str, event: Event, call_id: str) -> Iterator[Event]:
    which = Slice(any_lane=True, until=event.seq - 1, limit=LOOK_BACK, newest=True)
    return reversed(list(_events(folder, folder.chain(session_id), which)))


def _events(folder: Folder, chain: list[tuple[Known, int]], which: Slice) -> Iterator[Event]:
    for known, spots in choose(folder.index, chain, which):
        for entry in folder.entries(known, spots):
            yield entry.event


def ids(folder: Folder, session_id: str, prefix: str, limit: int) -> list[str]:
    with folder.shared():
        found = {
            name for known, until in folder.chain(session_id) for name in folder.index.ids(known, prefix, until, limit)
        }
        return sorted(found)[: max(0, limit)]


def problems(folder: Folder, session_id: str) -> list[str]:
    """Reads the whole file, and does not ask the index."""
    folder.must_hold(session_id)
    found: list[str] = []
    own: list[Entry] = []
    with folder.shared(), folder.locked(session_id, writing=False):
        record = _session(folder, session_id, locked=True)
        for piece in folder.batches(session_id):
            if isinstance(piece, Torn):
                found.append(f"At byte {piece.offset}, {piece.why}: it was passed over.")
            else:
                own.extend(placed.line.entry for placed in piece.lines)
        places = {entry.event.id: entry.event.seq for entry in reversed(own)}
        for known, spots in choose(folder.index, folder.chain(session_id, locked=True)[1:], Slice(any_lane=True)):
            for entry in folder.entries(known, spots):
                places.setdefault(entry.event.id, entry.event.seq)
    return found + find_problems(record, own, places)
