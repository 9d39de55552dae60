"""A folder of logs: finding files, keeping the index level with them, and reading events where they stand."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

import msgspec

from ...errors import CorruptLog, UnknownSession
from ...events import LaneTip, SessionRecord, root_key
from ..admission import NO_TIP, Entry
from . import files, locks
from .choose import NO_END
from .index import Index, Known, Spot, StaleIndexError
from .lines import decode_header, decode_line
from .names import file_name
from .scan import Batch, Placed, Torn, scan

log = logging.getLogger("holdfast.stores.jsonl")

FOLDER_LOCK = ".folder.lock"
"""A name that no session's files can have."""
RUN = 1_000_000
"""About how many bytes are read in one go."""
PIECE = 5000
"""Lines that are indexed in one transaction while catching up."""


class Folder:
    """One directory of session files with its index."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.abspath(directory)
        self.index = Index(os.path.join(self.path, ".index.db"))

    def file(self, session_id: str) -> str:
        return os.path.join(self.path, file_name(session_id) + ".jsonl")

    def media_folder(self, session_id: str) -> str:
        return os.path.join(self.path, file_name(session_id) + ".media")

    def lock_file(self, session_id: str) -> str:
        return os.path.join(self.path, file_name(session_id) + ".lock")

    def lease_file(self, session_id: str) -> str:
        return os.path.join(self.path, file_name(session_id) + ".lease")

    @contextmanager
    def locked(self, session_id: str, writing: bool = True) -> Iterator[None]:
        """Nobody else appends to this session."""
        with self._held(self.lock_file(session_id), writing):
            yield

    @contextmanager
    def shared(self, writing: bool = False) -> Iterator[None]:
        """No file is replaced or removed meanwhile."""
        with self._held(os.path.join(self.path, FOLDER_LOCK), writing, shared=True):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else uses the folder: for redaction and deletion."""
        with self._held(os.path.join(self.path, FOLDER_LOCK), writing=True):
            yield

    @contextmanager
    def _held(self, path: str, writing: bool, shared: bool = False) -> Iterator[None]:
        """Hold a lock. To read a folder that cannot be written, none is needed."""
        with ExitStack() as stack:
            try:
                stack.enter_context(locks.hold(path, shared))
            except OSError as error:
                if writing or not (files.cannot_write(error) or isinstance(error, FileNotFoundError)):
                    raise
            yield

    def header(self, session_id: str) -> SessionRecord:
        """The session as it was created."""
        try:
            with open(self.file(session_id), "rb") as file:
                return decode_header(file.readline(), file.name)
        except FileNotFoundError:
            raise UnknownSession(session_id) from None

    def must_hold(self, session_id: str) -> None:
        """Asked before locking, so that no lock file is left behind for a session that there is not."""
        if not os.path.exists(self.file(session_id)):
            raise UnknownSession(session_id)

    def headers(self) -> Iterator[SessionRecord]:
        """All sessions of the folder as they were created; files that are none are passed over."""
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
            if self.file(record.id) == path:
                yield record

    def level(self, session_id: str, locked: bool = False) -> Known:
        """What the index knows of the file, once it has caught up with it."""
        path = self.file(session_id)
        try:
            stat = os.stat(path)
            known = self.index.get(session_id)
            if known is not None and known.describes(stat):
                return known
            if locked:
                return self._catch_up(session_id, path, known)
            with self.locked(session_id, writing=False):
                return self._catch_up(session_id, path, self.index.get(session_id))
        except FileNotFoundError:
            raise UnknownSession(session_id) from None

    def _catch_up(self, session_id: str, path: str, known: Known | None) -> Known:
        """Read what was added since, or everything if the file is not the one that was indexed."""
        with open(path, "rb") as file:
            stat = os.fstat(file.fileno())
            if known is not None and known.describes(stat):
                return known  # another process was faster
            head = file.readline()
            record = decode_header(head, path)
            if known is None or not self._continues(known, file, stat, len(head)):
                known = self.index.begin(record, len(head))
            tips = self.index.tips(known)
            lines: list[Placed] = []
            read = known.read
            for found in scan(file, known.read):
                if isinstance(found, Torn):
                    log.warning("%s: %s at byte %d; it was passed over.", path, found.why, found.offset)
                    continue
                for placed in found.lines:
                    if placed.seq > record.version:
                        _apply(tips, placed)
                lines.extend(found.lines)
                read = found.end
                if len(lines) >= PIECE:
                    known, lines = self.index.add(known, lines, tips, read, stat), []
            return self.index.add(known, lines, tips, read, stat)

    def _continues(self, known: Known, file: BinaryIO, stat: os.stat_result, head: int) -> bool:
        """Whether the file is the indexed one with something added: same inode, same last event."""
        if known.inode != stat.st_ino or stat.st_size < known.read or stat.st_size <= known.size:
            return False
        last = self.index.last(known)
        try:
            return known.read == head if last is None else bool(list(_read(file, [last])))
        except StaleIndexError:
            return False

    def chain(self, session_id: str, locked: bool = False) -> list[tuple[Known, int]]:
        """The session and its ancestors, each with the last seq that the session sees of it."""
        known = self.level(session_id, locked)
        chain = [(known, NO_END)]
        while known.parent is not None:
            until = min(chain[-1][1], known.parent_seq)
            known = self.level(known.parent)
            chain.append((known, until))
        return chain

    def entries(self, known: Known, spots: list[Spot]) -> Iterator[Entry]:
        """Read events where the index says they stand."""
        if not spots:
            return
        with open(self.file(known.id), "rb") as file:
            for run in _runs(spots):
                yield from _read(file, run)

    def find(self, chain: list[tuple[Known, int]], ids: list[str]) -> dict[str, Entry]:
        """Those of the events that exist, by id."""
        found: dict[str, Entry] = {}
        for known, until in chain:
            spots = [spot for spot in self.index.find(known, ids) if spot.seq <= until]
            for entry in self.entries(known, spots):
                found.setdefault(entry.event.id, entry)
        return found

    def batches(self, session_id: str) -> Iterator[Batch | Torn]:
        """The whole file, without the index."""
        with open(self.file(session_id), "rb") as file:
            yield from scan(file, len(file.readline()))


def _runs(spots: list[Spot]) -> Iterator[list[Spot]]:
    """Spots that follow each other are read in one go."""
    run, end, size = [spots[0]], spots[0].offset + spots[0].length, spots[0].length
    for spot in spots[1:]:
        if spot.offset != end or size > RUN:
            yield run
            run, size = [], 0
        run.append(spot)
        end, size = spot.offset + spot.length, size + spot.length
    yield run


def _read(file: BinaryIO, run: list[Spot]) -> Iterator[Entry]:
    start = run[0].offset
    file.seek(start)
    data = file.read(run[-1].offset + run[-1].length - start)
    for spot in run:
        at = spot.offset - start
        try:
            entry = decode_line(data[at : at + spot.length]).entry
        except (msgspec.DecodeError, UnicodeError):
            raise StaleIndexError from None
        if (entry.event.seq, entry.event.id) != (spot.seq, spot.id):
            raise StaleIndexError
        yield entry


def _apply(tips: dict[str, LaneTip], placed: Placed) -> None:
    """Carry the tips over one event, as the append that wrote it did."""
    event = placed.line.entry.event
    lane = root_key(event.lane)
    if lane and lane not in tips:
        tips[lane] = LaneTip(base=event.seq - 1, base_epoch=tips.get("", NO_TIP).epoch)
    if placed.line.tip is not None:
        tips[lane] = placed.line.tip
