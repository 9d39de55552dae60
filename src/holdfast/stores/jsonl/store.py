"""JSONLStore: one append-only, human-readable file per session, safe against crashes."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Self, TypeVar

import anyio.to_thread
import msgspec

from ...context.events import Event, LaneTip, SessionRecord
from ...errors import CorruptLog, InvalidInput, StoreClosed, StoreError
from ...io import files
from ...io.processes import has_ended
from ...messages.json_text import decodable
from ..append import check_names, encode_events, require_unicode
from ..base import (
    ANYWHERE,
    POLL_SECONDS,
    Appended,
    Hit,
    LeaseName,
    LeaseWaiters,
    ProcessGuard,
    Rewrite,
    Slice,
    Unchanged,
    Where,
    removing,
)
from . import deletion, reads, writes
from .folder import SessionFolder
from .index import StaleIndexError


@decodable
class _StoredLease(msgspec.Struct, frozen=True):
    """A lease file. Not flushed to disk; one that a crash left incomplete counts as released."""

    owner: str
    until: float
    """Seconds since 1970, by this machine's clock."""
    seconds: float
    """Its length. A lease with longer to go was taken before the clock was set back."""

    def left(self) -> float:
        return min(self.until - time.time(), self.seconds)


def take_lease(folder: SessionFolder, session_id: str, name: LeaseName, owner: str, seconds: float) -> bool:
    folder.require_session(session_id)
    with folder.shared_lock(writing=True), folder.session_lock(session_id):
        lease = _active_lease(folder, session_id, name)
        taken = lease is None or lease.owner == owner
        if lease is None or lease.owner == owner:
            lease = _StoredLease(owner, time.time() + seconds, seconds)
        with open(folder.lease_file(session_id, name), "wb") as file:
            file.write(msgspec.json.encode(msgspec.structs.replace(lease, until=time.time() + lease.left())))
        return taken


def release_lease(folder: SessionFolder, session_id: str, name: LeaseName, owner: str) -> None:
    if not os.path.exists(folder.lease_file(session_id, name)):
        return
    with folder.shared_lock(writing=True), folder.session_lock(session_id):
        lease = _read_lease(folder, session_id, name)
        if lease is not None and lease.owner == owner:
            os.unlink(folder.lease_file(session_id, name))


def lease_seconds_left(folder: SessionFolder, session_id: str, name: LeaseName) -> float | None:
    if not os.path.exists(folder.lease_file(session_id, name)):
        return None
    with folder.shared_lock(), folder.session_lock(session_id, writing=False):
        lease = _active_lease(folder, session_id, name)
    return None if lease is None else max(0.0, lease.left())


def _active_lease(folder: SessionFolder, session_id: str, name: LeaseName) -> _StoredLease | None:
    lease = _read_lease(folder, session_id, name)
    return lease if lease is not None and lease.until > time.time() and not has_ended(lease.owner) else None


def _read_lease(folder: SessionFolder, session_id: str, name: LeaseName) -> _StoredLease | None:
    with suppress(FileNotFoundError, msgspec.MsgspecError), open(folder.lease_file(session_id, name), "rb") as file:
        return msgspec.json.decode(file.read(), type=_StoredLease)
    return None


log = logging.getLogger("holdfast.stores.jsonl")
T = TypeVar("T")
INDEX_ATTEMPTS = 3
"""How often an operation is tried while the index is being rebuilt."""


class JSONLStore:
    """Sessions as `<id>.jsonl` in a folder, with their media in `<id>.media/`.

    Several processes may use the folder at once. Its index (`.index.db`) is rebuilt if it is deleted.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._folder = SessionFolder(os.fspath(directory))
        self._waiters = LeaseWaiters()
        self._process = ProcessGuard()
        self._closed = False
        self._opened = False
        self._cleaner: threading.Thread | None = None
        """Removes what an interrupted deletion has left behind; started with the first operation, if it finds any."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def create(self, record: SessionRecord, *, mark: int | None = None) -> None:
        check_names(record)
        header = writes.encode_new_header(record)
        if await self._run(lambda folder: os.path.exists(folder.hidden_file(record.id))):
            await self._remove_hidden()
        await self._run(lambda folder: writes.create_session(folder, record, header, mark))

    async def session(self, session_id: str) -> SessionRecord:
        return await self._run(lambda folder: reads.read_session(folder, session_id))

    async def sessions(self, owner: str | None = None, limit: int | None = None) -> list[SessionRecord]:
        return await self._run(lambda folder: reads.list_sessions(folder, owner, limit))

    async def append(
        self,
        session_id: str,
        events: Sequence[Event],
        *,
        after: int | None = None,
        when: Unchanged | None = None,
        tip: LaneTip | None = None,
        media: Mapping[str, str] | None = None,
    ) -> Appended:
        entries = encode_events(events, tip)
        kept = dict(media) if media else {}
        for digest, data in kept.items():
            require_unicode(session_id, digest + data)
        return await self._run(lambda folder: writes.append_events(folder, session_id, entries, after, when, tip, kept))

    async def read(self, session_id: str, which: Slice) -> list[Event]:
        return await self._run(lambda folder: reads.read_events(folder, session_id, which))

    async def media(self, session_id: str, digests: Sequence[str]) -> dict[str, str]:
        return await self._run(lambda folder: reads.read_media(folder, session_id, digests))

    async def forks(self, session_id: str) -> list[SessionRecord]:
        return await self._run(lambda folder: reads.list_forks(folder, session_id))

    async def relatives(self, session_id: str) -> list[SessionRecord]:
        return await self._run(lambda folder: reads.list_relatives(folder, session_id))

    async def rewrite(self, changes: Sequence[Rewrite]) -> bool:
        while (done := await self._run(lambda folder: writes.rewrite_sessions(folder, changes))) is None:
            await self._remove_hidden()
        return done

    async def erase(self) -> list[str]:
        await self._remove_hidden()
        return []

    async def delete(self, session_id: str) -> None:
        await self._run(lambda folder: deletion.hide_session(folder, session_id))
        with removing(session_id):
            await self._remove_hidden()

    async def _remove_hidden(self) -> None:
        """Removes deleted sessions in steps; others have their turn between two."""
        steps: Iterator[float] | None = None

        def step(folder: SessionFolder) -> float | None:
            nonlocal steps
            steps = steps or deletion.remove_hidden(folder)
            try:
                return next(steps, None)
            except BaseException:
                steps = None
                raise

        try:
            while (pause := await self._run(step)) is not None:  # noqa: ASYNC110 - a pause for other threads
                await anyio.sleep(pause)
        finally:
            steps = None  # which releases its lock

    async def problems(self, session_id: str) -> list[str]:
        return await self._run(lambda folder: reads.check_session(folder, session_id))

    async def search(
        self,
        query: str,
        *,
        session_id: str | None = None,
        owner: str | None = None,
        where: Where = ANYWHERE,
        limit: int = 20,
        offset: int = 0,
    ) -> list[Hit]:
        return await self._run(
            lambda folder: reads.search_events(folder, query, session_id, owner, where, limit, offset)
        )

    async def ids(self, session_id: str, prefix: str, limit: int) -> list[str]:
        return await self._run(lambda folder: reads.ids_with_prefix(folder, session_id, prefix, limit))

    async def take(self, session_id: str, name: LeaseName, owner: str, seconds: float) -> bool:
        return await self._run(lambda folder: take_lease(folder, session_id, name, owner, seconds))

    async def release(self, session_id: str, name: LeaseName, owner: str) -> None:
        await self._run(lambda folder: release_lease(folder, session_id, name, owner))
        self._waiters.notify(session_id)

    async def held(self, session_id: str, name: LeaseName) -> float | None:
        return await self._run(lambda folder: lease_seconds_left(folder, session_id, name))

    async def changed(
        self,
        session_id: str,
        name: LeaseName,
        timeout: float,  # noqa: ASYNC109 - part of the protocol
    ) -> None:
        await self._waiters.wait(session_id, min(timeout, POLL_SECONDS))

    async def close(self) -> None:
        if self._process.is_elsewhere:
            return
        self._closed = True
        if self._cleaner is not None:
            await anyio.to_thread.run_sync(self._cleaner.join)
        await anyio.to_thread.run_sync(self._folder.index.close)

    async def _run(self, work: Callable[[SessionFolder], T]) -> T:
        if self._closed:
            raise StoreClosed
        self._process.enter()
        return await anyio.to_thread.run_sync(self._run_with_retry, work)

    def _clean_up(self) -> None:
        try:
            for pause in deletion.remove_hidden(self._folder):
                if self._closed:
                    return
                time.sleep(pause)
        except Exception as error:
            log.warning("%s: an interrupted deletion could not be completed: %s", self._folder.path, error)

    def _run_with_retry(self, work: Callable[[SessionFolder], T]) -> T:
        """Runs the function; retries with a rebuilt index if the index was stale or broken."""
        index, path = self._folder.index, self._folder.path
        if not self._opened:
            self._opened = True
            if self._folder.has_hidden():
                self._cleaner = threading.Thread(target=self._clean_up, name="holdfast-cleaner", daemon=True)
                self._cleaner.start()
        failure: Exception | None = None
        try:
            for _ in range(INDEX_ATTEMPTS):
                generation = index.generation
                try:
                    return work(self._folder)
                except (StaleIndexError, sqlite3.Error) as error:
                    failure = error
                    index.reset(error, generation)
            raise StoreError(f"The index of {path} cannot be used: delete its file .index.db, then retry.") from failure
        except OverflowError as error:
            raise CorruptLog(f"A file in {path} has a number that no log can have: restore a backup of it.") from error
        except UnicodeEncodeError as error:
            raise InvalidInput(f"The text is not valid Unicode and cannot be stored: {error}.") from error
        except OSError as error:
            raise files.translate_os_error(error, self._folder.path) from error
