"""Everything that changes a folder: create and append add to files, rewrite and delete replace them."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ...errors import InvalidInput, StoreClosed, UnknownEvent
from ...events import LaneTip, SessionRecord
from ..admission import Entry, Write, admit, check_record, lanes_needed, rewrite_entry
from ..log import Appended, Unchanged
from . import files
from .folder import Folder
from .index import Known, StaleIndexError
from .lines import TORN, Line, encode_header, encode_line, move_header
from .names import file_name
from .scan import Batch, Placed

log = logging.getLogger("holdfast.stores.jsonl")


def create(folder: Folder, record: SessionRecord, header: bytes) -> None:
    os.makedirs(folder.path, exist_ok=True)
    with folder.shared(writing=True), folder.locked(record.id):
        parent = None if record.parent is None else folder.level(record.parent).version
        check_record(record, parent)
        if os.path.exists(folder.file(record.id)):
            raise InvalidInput(f"Session {record.id!r} exists already: use another id.")
        files.replace(folder.file(record.id), [header])


def header_of(record: SessionRecord) -> bytes:
    """The first line of a session's file, encoded before anything is locked."""
    try:
        return encode_header(record)
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"Session {record.id!r} cannot be stored as JSON: {error}.") from error


def append(
    folder: Folder,
    session_id: str,
    entries: tuple[Entry, ...],
    after: int | None,
    when: Unchanged | None,
    tip: LaneTip | None,
    media: Mapping[str, str],
) -> Appended:
    folder.must_hold(session_id)
    with folder.shared(writing=True), folder.locked(session_id):
        chain = folder.chain(session_id, locked=True)
        known = chain[0][0]
        tips = folder.index.tips(known, lanes_needed(entries, when))
        earlier = folder.find(chain, [entry.event.id for entry in entries])
        decided = admit(session_id, entries, earlier, known.version, tips, after, when, tip)
        if isinstance(decided, Write):
            _keep_media(folder, session_id, media)
            _write(folder, known, decided, tip is not None, list(media))
            return decided.answer
        return decided


def _write(folder: Folder, known: Known, decided: Write, with_tip: bool, media: list[str]) -> None:
    """One write for the whole append; the index follows, and need not survive."""
    last = len(decided.entries) - 1
    lines = [Line(entry, more=number < last) for number, entry in enumerate(decided.entries)]
    tip = decided.tips[lines[-1].entry.event.lane or ""] if with_tip else None
    lines[-1] = Line(decided.entries[-1], tip, media)
    data = TORN if known.size > known.read else b""
    placed: list[Placed] = []
    for line in lines:
        encoded = encode_line(line)
        placed.append(Placed(line, known.size + len(data), len(encoded)))
        data += encoded
    stat = files.append(folder.file(known.id), data)
    try:
        folder.index.add(known, placed, decided.tips, known.size + len(data), stat)
    except StoreClosed:
        log.debug("%s was closed after the append was written.", folder.path)
    except (sqlite3.Error, StaleIndexError) as error:
        log.warning("The index of %s was not brought up to date, and will be made anew: %s", folder.path, error)
        folder.index.restart(error, known.generation)


def _keep_media(folder: Folder, session_id: str, media: Mapping[str, str]) -> None:
    if media:
        os.makedirs(folder.media_folder(session_id), exist_ok=True)
        files.sync_folder(folder.path)
    for digest, data in media.items():
        path = os.path.join(folder.media_folder(session_id), file_name(digest))
        if not os.path.exists(path):
            files.replace(path, [data.encode()])


def rewrite(folder: Folder, session_id: str, entries: Sequence[Entry], forget: Sequence[str]) -> None:
    """Replace the files that hold the events; what a crash left in them goes too, as it may hold the same text."""
    folder.must_hold(session_id)
    with folder.alone():
        chain = folder.chain(session_id)
        stored = folder.find(chain, [entry.event.id for entry in entries])
        for entry in entries:
            if entry.event.id not in stored:
                raise UnknownEvent(entry.event.id, session_id)
        changed = {
            (entry.event.id, stored[entry.event.id].event.seq): rewrite_entry(
                stored[entry.event.id], entry.body, entry.event.body
            )
            for entry in entries
        }
        for known, _ in chain:
            _rewrite_file(folder, known.id, changed)
            for digest in forget:
                path = os.path.join(folder.media_folder(known.id), file_name(digest))
                if os.path.exists(path):
                    os.unlink(path)


def _rewrite_file(folder: Folder, session_id: str, changed: Mapping[tuple[str, int], Entry]) -> None:
    lines = list(_lines(folder, session_id))
    if not any((line.entry.event.id, line.entry.event.seq) in changed for line in lines):
        return
    data = [_first_line(folder, session_id)]
    for line in lines:
        entry = changed.get((line.entry.event.id, line.entry.event.seq), line.entry)
        data.append(encode_line(msgspec.structs.replace(line, entry=entry)))
    folder.index.forget(session_id)
    files.replace(folder.file(session_id), data)


def delete(folder: Folder, session_id: str) -> None:
    """Forks become whole first: a crash in between leaves them whole, and the session still there."""
    folder.must_hold(session_id)
    with folder.alone():
        gone = folder.header(session_id)
        for fork in list(folder.headers()):
            if fork.parent == session_id:
                _adopt(folder, fork, gone)
        folder.index.forget(session_id)
        os.unlink(folder.file(session_id))
        shutil.rmtree(folder.media_folder(session_id), ignore_errors=True)
        for beside in (folder.lock_file(session_id), folder.lease_file(session_id)):
            if os.path.exists(beside):
                os.unlink(beside)
        files.sync_folder(folder.path)


def _adopt(folder: Folder, fork: SessionRecord, gone: SessionRecord) -> None:
    """Give a fork what it shared with its parent, and the parent's own parent."""
    shared = [line for line in _lines(folder, gone.id) if line.entry.event.seq <= fork.parent_seq]
    for digest in {digest for line in shared for digest in line.media}:
        source = os.path.join(folder.media_folder(gone.id), file_name(digest))
        if os.path.exists(source):
            with open(source, encoding="utf-8", newline="") as file:
                _keep_media(folder, fork.id, {digest: file.read()})
    header = move_header(_first_line(folder, fork.id), gone.parent, min(fork.parent_seq, gone.parent_seq))
    whole = [encode_line(msgspec.structs.replace(line, more=False)) for line in shared]
    own = [encode_line(line) for line in _lines(folder, fork.id)]
    folder.index.forget(fork.id)
    files.replace(folder.file(fork.id), [header, *whole, *own])


def _lines(folder: Folder, session_id: str) -> Iterator[Line]:
    for found in folder.batches(session_id):
        if isinstance(found, Batch):
            yield from (placed.line for placed in found.lines)


def _first_line(folder: Folder, session_id: str) -> bytes:
    with open(folder.file(session_id), "rb") as file:
        return file.readline()
