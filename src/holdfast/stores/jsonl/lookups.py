"""Everything that reads a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import msgspec

from ...events import Event, SessionRecord
from ..admission import Entry
from ..checks import find_problems
from ..log import Hit, Slice
from ..ranking import Ranking
from .choose import choose
from .folder import Folder
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
        parts = choose(folder.index, folder.chain(session_id), which)
        return [entry.event for known, spots in parts for entry in folder.entries(known, spots)]


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


def search(folder: Folder, query: str, session_id: str | None, owner: str | None, limit: int) -> list[Hit]:
    """Reads every file: a folder of JSONL is for people and small collections."""
    ranking = Ranking(query, limit)
    with folder.shared():
        if session_id is not None:
            records = [folder.header(session_id)]
            folder.level(session_id)
        else:
            records = list(folder.headers())
        for record in records:
            if owner is None or record.owner == owner:
                for event in _searched(folder, record.id, inherited=session_id is not None):
                    ranking.consider(record.id, event)
    return ranking.hits()


def _searched(folder: Folder, session_id: str, inherited: bool) -> Iterator[Event]:
    chain = folder.chain(session_id) if inherited else folder.chain(session_id)[:1]
    for known, spots in choose(folder.index, chain, Slice(any_lane=True)):
        for entry in folder.entries(known, spots):
            yield entry.event


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
