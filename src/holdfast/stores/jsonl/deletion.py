"""Deletion in pieces: a session disappears at once, its files are removed step by step.

Hiding renames the session's file; its forks still read the events they share from it. Each fork's file is then written
anew, with these events in front, while the fork is in use; the folder is locked only to add what was appended
meanwhile and to replace the file. A process that dies leaves hidden files to the next.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

import msgspec

from ...context.events import SessionRecord, digest_of
from ...errors import CorruptLog
from ...io import files
from ..base import Slice
from .folder import HIDDEN, SessionFolder, file_name
from .format import change_header, decode_header, decode_line, encode_line, header_origins
from .index import EventLocation, locate_slice

STEP_EVENTS = 500
"""Events copied between two pauses."""
STEP_BYTES = 4_000_000
"""Bytes copied between two pauses, and before they are synced: the disk would otherwise stall appends."""
STEP_ROWS, INDEX_PAUSES = 200, 4
"""Rows of the index removed between two pauses, which are so many times as long as that took: other processes wait for
its lock with growing intervals, so that it has to be free most of the time."""
PAUSE = 0.001
"""Seconds between two steps, in which other threads and processes go first."""
BUSY_PAUSE = 0.05
"""Seconds between two looks while another process removes the same files."""
_COPY, _LOCK = ".copy", ".deletion.lock"


def hide_session(folder: SessionFolder, session_id: str) -> None:
    """Hides a session; raises UnknownSession if there is none, unless an earlier deletion of it goes on."""
    if not os.path.exists(folder.log_file(session_id)) and os.path.exists(folder.hidden_file(session_id)):
        return
    folder.require_session(session_id)
    with folder.exclusive_lock():
        folder.read_header(session_id)
        os.rename(folder.log_file(session_id), folder.hidden_file(session_id))
        for lease in folder.lease_files(session_id):
            with suppress(FileNotFoundError):
                os.unlink(lease)
        files.sync_folder(folder.path)


def remove_hidden(folder: SessionFolder) -> Iterator[float]:
    """Removes hidden sessions, one process at a time; yields the pause before each further step."""
    removed = False
    while folder.has_hidden():
        try:
            with files.file_lock(os.path.join(folder.path, _LOCK), wait=False):
                yield from _remove_all(folder)
                removed = True
        except BlockingIOError:
            yield BUSY_PAUSE
    more = removed
    while more:
        started = time.monotonic()
        more = folder.index.remove_orphans(STEP_ROWS)
        yield max(PAUSE, INDEX_PAUSES * (time.monotonic() - started))


def _remove_all(folder: SessionFolder) -> Iterator[float]:
    """Forks before their parents: a fork that is deleted as well needs no copies."""
    while hidden := _hidden_records(folder):
        parents = {record.parent for record in hidden}
        record = next(record for record in hidden if record.id not in parents)
        for fork in _forks(folder, record.id):
            yield from _copy_to_fork(folder, record, fork)
        yield from _remove_files(folder, record.id)
    for name in os.listdir(folder.path):
        if name.endswith(_COPY):
            os.unlink(os.path.join(folder.path, name))


def _hidden_records(folder: SessionFolder) -> list[SessionRecord]:
    found = []
    for name in os.listdir(folder.path):
        if name.endswith(HIDDEN):
            path = os.path.join(folder.path, name)
            with open(path, "rb") as file:
                found.append(decode_header(file.readline(), path))
    return found


def _forks(folder: SessionFolder, session_id: str) -> list[str]:
    found = []
    for name in os.listdir(folder.path):
        path = os.path.join(folder.path, name)
        if name.endswith(".jsonl"):
            with suppress(CorruptLog, FileNotFoundError), open(path, "rb") as file:
                record = decode_header(file.readline(), path)
                if record.parent == session_id:
                    found.append(record.id)
    return found


def _copy_to_fork(folder: SessionFolder, parent: SessionRecord, fork_id: str) -> Iterator[float]:
    """Copies the events and media that a fork shares with its parent, and makes the grandparent its parent."""
    path = folder.log_file(fork_id)
    done = False
    while not done:
        with suppress(FileNotFoundError), open(path, "rb") as own, open(path + _COPY, "wb") as copy:
            header = own.readline()
            fork = decode_header(header, path)
            shared = min(fork.parent_seq, parent.parent_seq)
            origins = header_origins(header)
            if shared < fork.parent_seq:
                origins |= _origins_after_deletion(folder, parent)
            about = {
                "parent": parent.parent,
                "parent_seq": shared if parent.parent else None,
                "origins": sorted(origins) or None,
            }
            copy.write(change_header(header, **about))
            yield from _copy_shared(folder, parent, fork, copy)
            yield from _copy_bytes(own, copy)
            with folder.exclusive_lock():
                if not os.path.exists(path):
                    return  # deleted meanwhile
                if os.fstat(own.fileno()).st_ino == os.stat(path).st_ino:  # else redacted meanwhile
                    for _ in _copy_bytes(own, copy):
                        pass
                    folder.index.remove_file(fork_id)
                    os.replace(path + _COPY, path)
                    files.sync_folder(folder.path)
                    done = True
        if not os.path.exists(path):
            return


def _origins_after_deletion(folder: SessionFolder, parent: SessionRecord) -> set[str]:
    """Returns the origins of what forks copy from a hidden session; it stands among them under its own name."""
    with open(folder.hidden_file(parent.id), "rb") as file:
        written = os.fstat(file.fileno()).st_mtime_ns
        return header_origins(file.readline()) | {digest_of([parent.id, parent.created, written])}


def _copy_shared(folder: SessionFolder, parent: SessionRecord, fork: SessionRecord, copy: BinaryIO) -> Iterator[float]:
    """Copies complete events by their offsets; torn bytes, which may have other text, are left behind."""
    at, unsynced = parent.parent_seq, 0
    while at < fork.parent_seq:
        which = Slice(any_lane=True, after=at, until=min(at + STEP_EVENTS, fork.parent_seq))
        with folder.shared_lock():
            indexed = folder.sync_index(parent.id, ancestor=True)
            [(_, locations)] = locate_slice(folder.index, [(indexed, fork.parent_seq)], which)
            data = b"".join(_read_lines(folder.hidden_file(parent.id), locations))
        at = which.until or at
        if at == fork.parent_seq and locations:  # the fork may begin within an append
            last = locations[-1].length
            ended = msgspec.structs.replace(decode_line(data[-last:]), more=False)
            data = data[:-last] + encode_line(ended)
        if b'"media":[' in data:
            _copy_media(folder, parent.id, fork.id, data)
        copy.write(data)
        unsynced += len(data)
        if unsynced > STEP_BYTES:
            files.sync_file(copy)
            unsynced = 0
        yield PAUSE


def _read_lines(path: str, locations: list[EventLocation]) -> Iterator[bytes]:
    with open(path, "rb") as file:
        for location in locations:
            file.seek(location.offset)
            yield file.read(location.length)


def _copy_media(folder: SessionFolder, parent_id: str, fork_id: str, lines: bytes) -> None:
    for line in lines.splitlines():
        for digest in decode_line(line).media if b'"media":[' in line else ():
            source = os.path.join(folder.media_folder(parent_id), file_name(digest))
            if os.path.exists(source):
                with open(source, "rb") as file:
                    folder.store_media(fork_id, {digest: file.read()})


def _copy_bytes(source: BinaryIO, copy: BinaryIO) -> Iterator[float]:
    """Copies the rest of a file to the end of another, which is synced."""
    while data := source.read(STEP_BYTES):
        copy.write(data)
        files.sync_file(copy)
        yield PAUSE
    files.sync_file(copy)


def _remove_files(folder: SessionFolder, session_id: str) -> Iterator[float]:
    """Removes the hidden file last: until then, the deletion goes on after a crash."""
    media, path = folder.media_folder(session_id), folder.hidden_file(session_id)
    for name in os.listdir(media) if os.path.isdir(media) else ():
        os.unlink(os.path.join(media, name))
        yield PAUSE
    shutil.rmtree(media, ignore_errors=True)
    with open(path, "rb"), folder.exclusive_lock():  # open, so that the system frees it after the lock is released
        folder.index.remove_file(session_id)
        for each in (folder.lock_file(session_id), *folder.lease_files(session_id), path):
            with suppress(FileNotFoundError):
                os.unlink(each)
        files.sync_folder(folder.path)
    yield PAUSE
