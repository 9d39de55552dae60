"""A folder of logs: file names, locks, keeping the index in sync, and reading events by their offsets."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from typing import BinaryIO, get_args

import msgspec

from ...context.events import EventKind, LaneTip, SessionRecord, lane_key
from ...errors import CorruptLog, UnknownSession
from ...io import files
from ..append import NO_TIP, LogEntry
from ..base import LeaseName
from .format import (
    MAX_SEQ,
    CompleteAppend,
    LocatedLine,
    LogLine,
    TornBytes,
    decode_header,
    decode_line,
    header_origins,
    is_line_of,
    scan_log,
    skip_repeats,
)
from .index import EventLocation, IndexedFile, LogFileIndex, StaleIndexError

_SAFE_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_")
_MAX_NAME_LENGTH = 150
_DEVICE_NAMES = frozenset(
    ["con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))]
)
"""Names that some systems reserve for devices in every folder."""


@lru_cache(maxsize=4096)
def file_name(identifier: str) -> str:
    """Returns a unique, safe file name for an id: percent-encoded, capitals too, for case-insensitive file systems.

    A long id is cut and ends in a digest; the file's first line contains the full id.
    """
    raw = identifier.encode()
    plain = "".join(chr(byte) if byte in _SAFE_BYTES else f"%{byte:02x}" for byte in raw)
    if plain in _DEVICE_NAMES:
        plain = f"%{raw[0]:02x}{plain[1:]}"
    if len(plain) <= _MAX_NAME_LENGTH:
        return plain
    return f"{plain[: _MAX_NAME_LENGTH - 40]}~{hashlib.sha256(raw).hexdigest()[:32]}"


log = logging.getLogger("holdfast.stores.jsonl")
FOLDER_LOCK, JOURNAL = ".folder.lock", ".rewrite.json"
"""Names that no session's files can have."""
HIDDEN = ".deleted"
"""End of the name of a log whose session is being deleted."""
READ_BYTES = 1_000_000
"""Approximate number of bytes per read."""
BATCH_LINES = 500
"""Lines indexed in one transaction while catching up."""


class SessionFolder:
    """A directory of session files with its index."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.abspath(directory)
        self.index = LogFileIndex(os.path.join(self.path, ".index.db"))

    def log_file(self, session_id: str) -> str:
        return os.path.join(self.path, file_name(session_id) + ".jsonl")

    def hidden_file(self, session_id: str) -> str:
        return os.path.join(self.path, file_name(session_id) + HIDDEN)

    def has_hidden(self) -> bool:
        """Whether sessions are being deleted, or their deletion was interrupted."""
        return os.path.isdir(self.path) and any(name.endswith(HIDDEN) for name in os.listdir(self.path))

    def media_folder(self, session_id: str) -> str:
        return os.path.join(self.path, file_name(session_id) + ".media")

    def lock_file(self, session_id: str) -> str:
        return os.path.join(self.path, file_name(session_id) + ".lock")

    def lease_file(self, session_id: str, name: LeaseName) -> str:
        return os.path.join(self.path, f"{file_name(session_id)}.{name}.lease")

    def lease_files(self, session_id: str) -> list[str]:
        return [self.lease_file(session_id, name) for name in get_args(LeaseName)]

    @contextmanager
    def session_lock(self, session_id: str, writing: bool = True) -> Iterator[None]:
        """Exclusive lock on one session."""
        with self._lock(self.lock_file(session_id), writing):
            yield

    @contextmanager
    def shared_lock(self, writing: bool = False) -> Iterator[None]:
        """Shared lock on the folder: no file is replaced or removed while it is held."""
        while True:
            with self._lock(os.path.join(self.path, FOLDER_LOCK), writing, shared=True):
                if not os.path.exists(self._journal) or not os.access(self.path, os.W_OK):
                    yield
                    return
            with self.exclusive_lock():  # which finishes what a killed process began
                pass

    @contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """Exclusive lock on the folder, for redaction and deletion."""
        with self._lock(os.path.join(self.path, FOLDER_LOCK), writing=True):
            self._finish_replacing()
            yield

    @property
    def _journal(self) -> str:
        return os.path.join(self.path, JOURNAL)

    def replace_together(self, contents: Mapping[str, Iterable[bytes]], unlink: Sequence[str]) -> None:
        """Replaces several files and removes others, under the exclusive lock: all of it, whenever the process dies.

        The journal is the moment of decision: with it, the next holder of the lock goes on to the end; without it,
        nothing has happened.
        """
        try:
            for path, pieces in contents.items():
                files.write_durably(f"{path}.new", pieces)
            names = (
                [os.path.basename(path) for path in contents],
                [os.path.relpath(path, self.path) for path in unlink],
            )
            files.replace_durably(self._journal, [msgspec.json.encode(names)])
        except BaseException:
            for path in contents:
                with suppress(FileNotFoundError):
                    os.unlink(f"{path}.new")
            raise
        self._finish_replacing()

    def _finish_replacing(self) -> None:
        """Completes a replacement whose journal is there; removes new files that were never decided on."""
        if os.path.exists(self._journal):
            with open(self._journal, "rb") as file:
                replaced, removed = msgspec.json.decode(file.read(), type=tuple[list[str], list[str]])
            for name in replaced:
                path = os.path.join(self.path, name)
                with suppress(FileNotFoundError):
                    os.replace(f"{path}.new", path)
            for name in removed:
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.path, name))
            files.sync_folder(self.path)
            os.unlink(self._journal)
        for name in os.listdir(self.path):
            if name.endswith(".jsonl.new"):
                os.unlink(os.path.join(self.path, name))

    @contextmanager
    def _lock(self, path: str, writing: bool, shared: bool = False) -> Iterator[None]:
        """Holds a file lock; reading a folder that cannot be written needs none."""
        with ExitStack() as stack:
            try:
                stack.enter_context(files.file_lock(path, shared))
            except OSError as error:
                if writing or not (files.is_permission_error(error) or isinstance(error, FileNotFoundError)):
                    raise
            yield

    def read_header(self, session_id: str) -> SessionRecord:
        """Returns the session record as created, or as the deletion of its parent has left it."""
        try:
            with open(self.log_file(session_id), "rb") as file:
                return self._with_visible_parent(decode_header(file.readline(), file.name))
        except FileNotFoundError:
            raise UnknownSession(session_id) from None

    def _with_visible_parent(self, record: SessionRecord) -> SessionRecord:
        """Returns the record with its nearest ancestor that is not being deleted."""
        while record.parent is not None and not os.path.exists(self.log_file(record.parent)):
            path = self.hidden_file(record.parent)
            try:
                with open(path, "rb") as file:
                    hidden = decode_header(file.readline(), path)
            except FileNotFoundError:
                break
            shared = min(record.parent_seq, hidden.parent_seq)
            record = msgspec.structs.replace(record, parent=hidden.parent, parent_seq=shared)
        return record

    def require_session(self, session_id: str) -> None:
        """Raises UnknownSession; called before locking, so that no lock file is created for an unknown session."""
        if not os.path.exists(self.log_file(session_id)):
            raise UnknownSession(session_id)

    def read_headers(self) -> Iterator[SessionRecord]:
        """Yields the records of all sessions as `read_header` does; skips other files."""
        for name in sorted(os.listdir(self.path)) if os.path.isdir(self.path) else ():
            if not name.endswith(".jsonl"):
                continue
            path = os.path.join(self.path, name)
            with open(path, "rb") as file:
                try:
                    record = decode_header(file.readline(), path)
                except CorruptLog as error:
                    log.warning("%s", error)
                    continue
            if self.log_file(record.id) == path:
                yield self._with_visible_parent(record)

    def relatives(self, session_id: str) -> list[SessionRecord]:
        """Returns the other sessions that have copies of the same events."""
        own = self._origins(session_id)
        return [r for r in self.read_headers() if own and r.id != session_id and own & self._origins(r.id)]

    def _origins(self, session_id: str) -> set[str]:
        with open(self.log_file(session_id), "rb") as file:
            return header_origins(file.readline())

    def sync_index(self, session_id: str, locked: bool = False, ancestor: bool = False) -> IndexedFile:
        """Brings the index up to date with the file and returns its entry; an ancestor may be hidden."""
        path = self._data_file(session_id) if ancestor else self.log_file(session_id)
        try:
            stat = os.stat(path)
            indexed = self.index.get_file(session_id)
            if indexed is not None and indexed.matches(stat):
                return indexed
            if locked:
                return self._catch_up(session_id, path, indexed)
            with self.session_lock(session_id, writing=False):
                return self._catch_up(session_id, path, self.index.get_file(session_id))
        except FileNotFoundError:
            raise UnknownSession(session_id) from None

    def _data_file(self, session_id: str) -> str:
        path = self.log_file(session_id)
        return path if os.path.exists(path) else self.hidden_file(session_id)

    def _catch_up(self, session_id: str, path: str, indexed: IndexedFile | None) -> IndexedFile:
        """Indexes the lines added since, or the whole file if it is not the one that was indexed."""
        with open(path, "rb") as file:
            stat = os.fstat(file.fileno())
            if indexed is not None and indexed.matches(stat):
                return indexed  # another process has indexed it
            head = file.readline()
            record = decode_header(head, path)
            if indexed is None or not self._was_only_appended(indexed, file, stat, len(head)):
                indexed = self.index.add_file(record, len(head))
            tips = self.index.lane_tips(indexed)
            lines: list[LocatedLine] = []
            indexed_size = indexed.indexed_size
            newest, key = self.index.last_location(indexed), indexed.key

            def earlier(seq: int) -> LogLine | None:
                near = next((located.line for located in lines if located.seq == seq), None)
                location = None if near is not None else self.index.locate_seq(key, seq)
                return near if location is None else decode_line(_read_at(path, location))

            scanned = scan_log(file, indexed.indexed_size)
            for found in skip_repeats(scanned, newest.seq if newest else 0, earlier, path):
                if isinstance(found, TornBytes):
                    log.warning("%s: %s at byte %d; it was skipped.", path, found.why, found.offset)
                    continue
                for located in found.lines:
                    if located.seq > record.version:
                        _apply_tip(tips, located)
                lines.extend(found.lines)
                indexed_size = found.end
                if len(lines) >= BATCH_LINES:
                    indexed, lines = self.index.add_lines(indexed, lines, tips, indexed_size, stat), []
            return self.index.add_lines(indexed, lines, tips, indexed_size, stat)

    def _was_only_appended(self, indexed: IndexedFile, file: BinaryIO, stat: os.stat_result, head: int) -> bool:
        """Whether the file is the indexed one with lines appended: same inode, same last event."""
        if indexed.inode != stat.st_ino or stat.st_size < indexed.indexed_size or stat.st_size <= indexed.size:
            return False
        last = self.index.last_location(indexed)
        try:
            return indexed.indexed_size == head if last is None else bool(list(_read_entries(file, [last])))
        except StaleIndexError:
            return False

    def chain(self, session_id: str, locked: bool = False) -> list[tuple[IndexedFile, int]]:
        """Returns the session and its ancestors, each with the last seq visible to the session."""
        indexed = self.sync_index(session_id, locked)
        chain = [(indexed, MAX_SEQ)]
        while indexed.parent is not None:
            until = min(chain[-1][1], indexed.parent_seq)
            indexed = self.sync_index(indexed.parent, ancestor=True)
            chain.append((indexed, until))
        return chain

    def read_entries(self, indexed: IndexedFile, locations: list[EventLocation]) -> Iterator[LogEntry]:
        """Reads the events at these locations."""
        if not locations:
            return
        with open(self._data_file(indexed.id), "rb") as file:
            for run in _adjacent_locations(locations):
                yield from _read_entries(file, run)

    def find_entries(self, chain: list[tuple[IndexedFile, int]], ids: list[str]) -> dict[str, LogEntry]:
        """Returns those of the events that exist, by id."""
        found: dict[str, LogEntry] = {}
        for indexed, until in chain:
            locations = [location for location in self.index.locate_ids(indexed, ids) if location.seq <= until]
            for entry in self.read_entries(indexed, locations):
                found.setdefault(entry.event.id, entry)
        return found

    def store_media(self, session_id: str, media: Mapping[str, bytes]) -> None:
        """Writes media files, each synced to disk; keeps those that are there."""
        if media:
            os.makedirs(self.media_folder(session_id), exist_ok=True)
            files.sync_folder(self.path)
        for digest, data in media.items():
            path = os.path.join(self.media_folder(session_id), file_name(digest))
            if not os.path.exists(path):
                files.replace_durably(path, [data])

    def read_lines(self, indexed: IndexedFile) -> Iterator[tuple[str, bytes]]:
        """Yields the id and the bytes of each event of a file, without the torn bytes between them."""
        after = 0
        with open(self.log_file(indexed.id), "rb") as file:
            while locations := self.index.locate_next(indexed, after, BATCH_LINES):
                for run in _adjacent_locations(locations):
                    file.seek(run[0].offset)
                    for location in run:
                        line = file.read(location.length)
                        if not is_line_of(line, location.seq, location.id):
                            raise StaleIndexError
                        yield location.id, line
                after = locations[-1].seq

    def scan_file(self, session_id: str) -> Iterator[CompleteAppend | TornBytes]:
        """Scans the whole file without the index."""
        path, offsets = self.log_file(session_id), dict[int, int]()

        def earlier(seq: int) -> LogLine | None:
            if seq not in offsets:
                return None
            with open(path, "rb") as file:
                file.seek(offsets[seq])
                return decode_line(file.readline())

        with open(path, "rb") as file:
            for found in skip_repeats(scan_log(file, len(file.readline())), MAX_SEQ, earlier, path):
                if isinstance(found, CompleteAppend):
                    offsets.update((located.seq, located.offset) for located in found.lines)
                yield found


def _adjacent_locations(locations: list[EventLocation]) -> Iterator[list[EventLocation]]:
    """Groups adjacent locations, which are read together."""
    run, end, size = [locations[0]], locations[0].offset + locations[0].length, locations[0].length
    for location in locations[1:]:
        if location.offset != end or size > READ_BYTES:
            yield run
            run, size = [], 0
        run.append(location)
        end, size = location.offset + location.length, size + location.length
    yield run


def _read_at(path: str, location: EventLocation) -> bytes:
    with open(path, "rb") as file:
        file.seek(location.offset)
        return file.read(location.length)


def _read_entries(file: BinaryIO, run: list[EventLocation]) -> Iterator[LogEntry]:
    start = run[0].offset
    file.seek(start)
    data = file.read(run[-1].offset + run[-1].length - start)
    for location in run:
        at = location.offset - start
        try:
            entry = decode_line(data[at : at + location.length]).entry
        except (msgspec.DecodeError, UnicodeError):
            raise StaleIndexError from None
        if (entry.event.seq, entry.event.id) != (location.seq, location.id):
            raise StaleIndexError
        yield entry


def _apply_tip(tips: dict[str, LaneTip], located: LocatedLine) -> None:
    """Updates the tips by one event, as the append that wrote it did."""
    event = located.line.entry.event
    lane = lane_key(event.lane)
    if lane and lane not in tips:
        tips[lane] = LaneTip(base=event.seq - 1, base_epoch=tips.get("", NO_TIP).epoch)
    if located.line.tip is not None:
        tips[lane] = located.line.tip
    if event.kind == EventKind.REDACTION:
        tips.update({lane: msgspec.structs.replace(tip, mark=event.seq) for lane, tip in tips.items()})
