"""JSONLStore: one append-only file a session, written so that a person can read it and a crash cannot hurt it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Self, TypeVar

import anyio.to_thread

from ...errors import InvalidInput, StoreClosed, StoreError
from ...events import Event, LaneTip, SessionRecord
from ..admission import check_names, prepare, stored_text
from ..log import ANYWHERE, Appended, Hit, Slice, Unchanged, Where
from ..waiting import A_MOMENT, Waiting
from . import changes, files, lease, lookups
from .folder import Folder
from .index import StaleIndexError

T = TypeVar("T")

ATTEMPTS = 3
"""How often an operation is tried while the index is made anew under it."""


class JSONLStore:
    """Sessions as `<id>.jsonl` in a folder, with media beside them in `<id>.media/`.

    Several processes may use the folder at once. Its index (`.index.db`) can be deleted at any time.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._folder = Folder(os.fspath(directory))
        self._waiting = Waiting()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def create(self, record: SessionRecord) -> None:
        check_names(record)
        header = changes.header_of(record)
        await self._do(lambda folder: changes.create(folder, record, header))

    async def session(self, session_id: str) -> SessionRecord:
        return await self._do(lambda folder: lookups.session(folder, session_id))

    async def sessions(self, owner: str | None = None, limit: int | None = None) -> list[SessionRecord]:
        return await self._do(lambda folder: lookups.sessions(folder, owner, limit))

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
        entries = prepare(events, tip)
        kept = dict(media) if media else {}
        for digest, data in kept.items():
            stored_text(session_id, digest + data)
        return await self._do(lambda folder: changes.append(folder, session_id, entries, after, when, tip, kept))

    async def read(self, session_id: str, which: Slice) -> list[Event]:
        return await self._do(lambda folder: lookups.read(folder, session_id, which))

    async def media(self, session_id: str, digests: Sequence[str]) -> dict[str, str]:
        return await self._do(lambda folder: lookups.media(folder, session_id, digests))

    async def rewrite(self, session_id: str, events: Sequence[Event], forget_media: Sequence[str] = ()) -> None:
        entries = prepare(events)
        await self._do(lambda folder: changes.rewrite(folder, session_id, entries, forget_media))

    async def delete(self, session_id: str) -> None:
        await self._do(lambda folder: changes.delete(folder, session_id))

    async def problems(self, session_id: str) -> list[str]:
        return await self._do(lambda folder: lookups.problems(folder, session_id))

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
        return await self._do(lambda folder: lookups.search(folder, query, session_id, owner, where, limit, offset))

    async def ids(self, session_id: str, prefix: str, limit: int) -> list[str]:
        return await self._do(lambda folder: lookups.ids(folder, session_id, prefix, limit))

    async def take(self, session_id: str, owner: str, seconds: float) -> bool:
        return await self._do(lambda folder: lease.take(folder, session_id, owner, seconds))

    async def release(self, session_id: str, owner: str) -> None:
        await self._do(lambda folder: lease.release(folder, session_id, owner))
        self._waiting.tell(session_id)

    async def held(self, session_id: str) -> float | None:
        return await self._do(lambda folder: lease.held(folder, session_id))

    async def changed(self, session_id: str, timeout: float) -> None:  # noqa: ASYNC109 - whoever waits says how long
        await self._waiting.told(session_id, min(timeout, A_MOMENT))

    async def close(self) -> None:
        self._closed = True
        await anyio.to_thread.run_sync(self._folder.index.close)

    async def _do(self, work: Callable[[Folder], T]) -> T:
        if self._closed:
            raise StoreClosed
        return await anyio.to_thread.run_sync(self._attempt, work)

    def _attempt(self, work: Callable[[Folder], T]) -> T:
        """Do the work; where the index stood in the way, again with a new one."""
        index, path = self._folder.index, self._folder.path
        failure: Exception | None = None
        try:
            for _ in range(ATTEMPTS):
                generation = index.generation
                try:
                    return work(self._folder)
                except (StaleIndexError, sqlite3.Error) as error:
                    failure = error
                    index.restart(error, generation)
            raise StoreError(f"The index of {path} cannot be used: delete it, then retry.") from failure
        except UnicodeEncodeError as error:
            raise InvalidInput(f"This is not Unicode text and cannot be in a log: {error}.") from error
        except OSError as error:
            raise files.translate(error, self._folder.path) from error
