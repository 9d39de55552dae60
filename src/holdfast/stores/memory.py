"""Sessions in memory: for tests, for short-lived agents, and as the plainest reading of the contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import msgspec

from ..errors import InvalidInput, StoreClosed, UnknownEvent, UnknownSession
from ..events import Event, LaneTip, SessionRecord, root_key
from .admission import NO_TIP, Entry, Write, admit, check_names, check_record, prepare, rewrite_entry
from .checks import find_problems
from .log import ANYWHERE, Appended, Hit, Slice, Unchanged, Where
from .memory_lease import MemoryLease
from .query import Query
from .sieve import LOOK_BACK, Catch, Sieve


class _Session(msgspec.Struct):
    """One session: what it owns itself, in order of seq."""

    record: SessionRecord
    entries: list[Entry] = []
    by_id: dict[str, Entry] = {}
    lanes: dict[str, LaneTip] = {}
    media: dict[str, tuple[int, str]] = {}

    @property
    def version(self) -> int:
        return self.entries[-1].event.seq if self.entries else self.record.version

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.by_id[entry.event.id] = entry


class MemoryStore:
    """Keeps every session in this process; nothing outlives it."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._lease = MemoryLease()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def create(self, record: SessionRecord) -> None:
        self._open()
        check_names(record)
        parent = None if record.parent is None else self._get(record.parent).version
        check_record(record, parent)
        if record.id in self._sessions:
            raise InvalidInput(f"Session {record.id!r} exists already: use another id.")
        copy = _copy(record)
        self._sessions[record.id] = _Session(copy, lanes=dict(copy.lanes))

    async def session(self, session_id: str) -> SessionRecord:
        found = self._get(session_id)
        return _copy(msgspec.structs.replace(found.record, version=found.version, lanes=dict(found.lanes)))

    async def sessions(self, owner: str | None = None, limit: int | None = None) -> list[SessionRecord]:
        self._open()
        records = [found.record for found in self._sessions.values()]
        chosen = [record for record in records if owner is None or record.owner == owner]
        chosen.sort(key=lambda record: (record.created, record.id), reverse=True)
        return [await self.session(record.id) for record in chosen[: _bound(limit)]]

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
        into = self._get(session_id)
        entries = prepare(events, tip)
        known: dict[str, Entry] = {}
        for entry in entries:
            found = self._find(session_id, entry.event.id)
            if found is not None:
                known[entry.event.id] = msgspec.structs.replace(found, event=_event(found))
        decided = admit(session_id, entries, known, into.version, into.lanes, after, when, tip)
        if not isinstance(decided, Write):
            return decided
        for entry in decided.entries:
            into.add(entry)
        into.lanes.update(decided.tips)
        for digest, data in (media or {}).items():
            into.media.setdefault(digest, (decided.answer.version, data))
        return decided.answer

    async def read(self, session_id: str, which: Slice) -> list[Event]:
        self._get(session_id)
        chosen = [entry for entry in self._visible(session_id) if _chosen(entry.event, which)]
        limit = _bound(which.limit)
        if limit is not None:
            chosen = chosen[max(0, len(chosen) - limit) :] if which.newest else chosen[:limit]
        return [_event(entry) for entry in chosen]

    async def media(self, session_id: str, digests: Sequence[str]) -> dict[str, str]:
        self._get(session_id)
        found: dict[str, str] = {}
        for session, _ in self._chain(session_id):
            for digest in digests:
                if digest in session.media:
                    found.setdefault(digest, session.media[digest][1])
        return found

    async def rewrite(self, session_id: str, events: Sequence[Event], forget_media: Sequence[str] = ()) -> None:
        self._get(session_id)
        changed: list[Entry] = []
        for entry in prepare(events):
            stored = self._find(session_id, entry.event.id)
            if stored is None:
                raise UnknownEvent(entry.event.id, session_id)
            changed.append(rewrite_entry(stored, entry.body, entry.event.body))
        for session, _ in self._chain(session_id):
            for entry in changed:
                own = session.by_id.get(entry.event.id)
                if own is not None and own.event.seq == entry.event.seq:
                    session.entries[own.event.seq - session.entries[0].event.seq] = entry
                    session.by_id[entry.event.id] = entry
            for digest in forget_media:
                session.media.pop(digest, None)

    async def delete(self, session_id: str) -> None:
        gone = self._get(session_id)
        for fork in self._sessions.values():
            if fork.record.parent == session_id:
                self._adopt(fork, gone)
        del self._sessions[session_id]
        self._lease.forget(session_id)

    def _adopt(self, fork: _Session, gone: _Session) -> None:
        """Give a fork what it shared with its parent, and the parent's own parent."""
        until = fork.record.parent_seq
        fork.entries[:0] = [entry for entry in gone.entries if entry.event.seq <= until]
        fork.by_id = {entry.event.id: entry for entry in fork.entries}
        for digest, (seq, data) in gone.media.items():
            if seq <= until:
                fork.media.setdefault(digest, (seq, data))
        fork.record = msgspec.structs.replace(
            fork.record, parent=gone.record.parent, parent_seq=min(until, gone.record.parent_seq)
        )

    async def problems(self, session_id: str) -> list[str]:
        record = await self.session(session_id)
        own = self._get(session_id).entries
        places = {entry.event.id: entry.event.seq for entry in self._visible(session_id)}
        return find_problems(record, (msgspec.structs.replace(e, event=_event(e)) for e in own), places)

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
        self._open()
        sieve = Sieve(Query(query), where, self._earlier)
        caught: list[Catch] = []
        for name in [session_id] if session_id is not None else list(self._sessions):
            session = self._get(name)
            if owner is not None and session.record.owner != owner:
                continue
            for entry in self._visible(name) if session_id is not None else session.entries:
                start = session.lanes.get(root_key(entry.event.lane), NO_TIP).start
                if (found := sieve.catch(name, _event(entry), start)) is not None:
                    caught.append(found)
        return sieve.page(caught, limit, offset)

    def _earlier(self, session_id: str, event: Event, call_id: str) -> Iterator[Event]:
        before = [entry for entry in self._visible(session_id) if entry.event.seq < event.seq]
        return (_event(entry) for entry in reversed(before[-LOOK_BACK:]) if call_id.encode() in entry.body)

    async def ids(self, session_id: str, prefix: str, limit: int) -> list[str]:
        found = {entry.event.id for entry in self._visible(session_id) if entry.event.id.startswith(prefix)}
        return sorted(found)[: max(0, limit)]

    async def take(self, session_id: str, owner: str, seconds: float) -> bool:
        self._get(session_id)
        return self._lease.take(session_id, owner, seconds)

    async def release(self, session_id: str, owner: str) -> None:
        self._lease.release(session_id, owner)

    async def held(self, session_id: str) -> float | None:
        return self._lease.held(session_id)

    async def changed(self, session_id: str, timeout: float) -> None:  # noqa: ASYNC109 - whoever waits says how long
        await self._lease.changed(session_id, timeout)

    async def close(self) -> None:
        self._closed = True
        self._sessions.clear()

    def _open(self) -> None:
        if self._closed:
            raise StoreClosed

    def _get(self, session_id: str) -> _Session:
        self._open()
        if session_id not in self._sessions:
            raise UnknownSession(session_id)
        return self._sessions[session_id]

    def _chain(self, session_id: str) -> Iterator[tuple[_Session, int]]:
        """The session and its ancestors, each with the last seq that is seen of it."""
        session, until = self._get(session_id), self._get(session_id).version
        yield session, until
        while session.record.parent is not None:
            until = min(until, session.record.parent_seq)
            session = self._get(session.record.parent)
            yield session, until

    def _visible(self, session_id: str) -> list[Entry]:
        parts = [
            [entry for entry in session.entries if entry.event.seq <= until]
            for session, until in self._chain(session_id)
        ]
        return [entry for part in reversed(parts) for entry in part]

    def _find(self, session_id: str, event_id: str) -> Entry | None:
        for session, until in self._chain(session_id):
            entry = session.by_id.get(event_id)
            if entry is not None and entry.event.seq <= until:
                return entry
        return None


def _chosen(event: Event, which: Slice) -> bool:
    return (
        (which.any_lane or root_key(event.lane) == root_key(which.lane))
        and event.seq > which.after
        and (which.until is None or event.seq <= which.until)
        and (not which.kinds or event.kind in which.kinds)
        and (not which.ids or event.id in which.ids)
    )


def _bound(limit: int | None) -> int | None:
    return None if limit is None else max(0, limit)


def _event(entry: Entry) -> Event:
    """A copy of the stored event that its reader may do anything with."""
    return msgspec.structs.replace(entry.event, body=msgspec.json.decode(entry.body))


def _copy(record: SessionRecord) -> SessionRecord:
    try:
        return msgspec.json.decode(msgspec.json.encode(record), type=SessionRecord)
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"Session {record.id!r} cannot be stored as JSON: {error}.") from error
