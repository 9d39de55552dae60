"""MemoryStore: sessions in memory, for tests and short-lived agents; the reference implementation of the protocols."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import msgspec

from ..context.events import Event, LaneTip, SessionRecord, lane_key, new_id
from ..errors import InvalidInput, StoreClosed, UnknownSession
from .append import (
    NO_TIP,
    AppendPlan,
    LogEntry,
    check_mark,
    check_names,
    check_record,
    encode_events,
    find_problems,
    plan_append,
    plan_rewrite,
    rewrite_entries,
    with_new_fields,
)
from .base import ANYWHERE, Appended, Hit, LeaseName, LeaseWaiters, Rewrite, Slice, Unchanged, Where
from .search import CALL_LOOKBACK, EventFilter, Match, Query

MAX_SEQ = 2**63 - 1


class _HeldLease(NamedTuple):
    owner: str
    until: float


class MemoryLeases:
    """Leases with owner and expiry; wakes waiters at once, since all are in this process."""

    def __init__(self) -> None:
        self._leases: dict[str, dict[LeaseName, _HeldLease]] = {}
        self._waiters = LeaseWaiters()

    def take(self, session_id: str, name: LeaseName, owner: str, seconds: float) -> bool:
        lease = self._active(session_id, name)
        if lease is not None and lease.owner != owner:
            return False
        self._leases.setdefault(session_id, {})[name] = _HeldLease(owner, time.monotonic() + seconds)
        return True

    def release(self, session_id: str, name: LeaseName, owner: str) -> None:
        lease = self._leases.get(session_id, {}).get(name)
        if lease is not None and lease.owner == owner:
            del self._leases[session_id][name]
            self._waiters.notify(session_id)

    def held(self, session_id: str, name: LeaseName) -> float | None:
        lease = self._active(session_id, name)
        return None if lease is None else max(0.0, lease.until - time.monotonic())

    async def changed(self, session_id: str, name: LeaseName, seconds: float) -> None:
        left = self.held(session_id, name)
        if left is not None:
            await self._waiters.wait(session_id, min(seconds, left))

    def drop(self, session_id: str) -> None:
        self._leases.pop(session_id, None)
        self._waiters.notify(session_id)

    def _active(self, session_id: str, name: LeaseName) -> _HeldLease | None:
        lease = self._leases.get(session_id, {}).get(name)
        return lease if lease is not None and lease.until > time.monotonic() else None


class _MemorySession(msgspec.Struct):
    """One session with its own entries, in order of seq."""

    record: SessionRecord
    entries: list[LogEntry] = []
    by_id: dict[str, LogEntry] = {}
    lanes: dict[str, LaneTip] = {}
    media: dict[str, tuple[int, str]] = {}
    origins: set[str] = set()
    """Deleted sessions of which it has copies of events."""

    @property
    def version(self) -> int:
        return self.entries[-1].event.seq if self.entries else self.record.version

    def add(self, entry: LogEntry) -> None:
        self.entries.append(entry)
        self.by_id[entry.event.id] = entry


class MemoryStore:
    """Stores sessions in this process; nothing is persisted."""

    def __init__(self) -> None:
        self._sessions: dict[str, _MemorySession] = {}
        self._leases = MemoryLeases()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def create(self, record: SessionRecord, *, mark: int | None = None) -> None:
        self._check_open()
        check_names(record)
        parent = None if record.parent is None else self._get(record.parent)
        check_record(record, parent.version if parent else None)
        check_mark(record, mark, parent.lanes if parent else {})
        if record.id in self._sessions:
            raise InvalidInput(f"Session {record.id!r} exists already: use another id.")
        copy = _copy_record(record)
        self._sessions[record.id] = _MemorySession(copy, lanes=dict(copy.lanes))

    async def session(self, session_id: str) -> SessionRecord:
        found = self._get(session_id)
        return _copy_record(msgspec.structs.replace(found.record, version=found.version, lanes=dict(found.lanes)))

    async def sessions(self, owner: str | None = None, limit: int | None = None) -> list[SessionRecord]:
        self._check_open()
        records = [found.record for found in self._sessions.values()]
        chosen = [record for record in records if owner is None or record.owner == owner]
        chosen.sort(key=lambda record: (record.created, record.id), reverse=True)
        return [await self.session(record.id) for record in chosen[: _clamp_limit(limit)]]

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
        session = self._get(session_id)
        entries = encode_events(events, tip)
        known: dict[str, LogEntry] = {}
        for entry in entries:
            found = self._find_entry(session_id, entry.event.id)
            if found is not None:
                known[entry.event.id] = msgspec.structs.replace(found, event=_copy_event(found))
        plan = plan_append(session_id, entries, known, session.version, session.lanes, after, when, tip)
        if not isinstance(plan, AppendPlan):
            return plan
        for entry in plan.entries:
            session.add(entry)
        session.lanes.update(plan.tips)
        for digest, data in (media or {}).items():
            session.media.setdefault(digest, (plan.result.version, data))
        return plan.result

    async def read(self, session_id: str, which: Slice) -> list[Event]:
        self._get(session_id)
        shown = self._visible(session_id, which.after, which.until)
        chosen = [entry for entry in shown if _in_slice(entry.event, which)]
        limit = _clamp_limit(which.limit)
        if limit is not None:
            chosen = chosen[max(0, len(chosen) - limit) :] if which.newest else chosen[:limit]
        return [_copy_event(entry) for entry in chosen]

    async def media(self, session_id: str, digests: Sequence[str]) -> dict[str, str]:
        self._get(session_id)
        found: dict[str, str] = {}
        for session, _ in self._chain(session_id):
            for digest in digests:
                if digest in session.media:
                    found.setdefault(digest, session.media[digest][1])
        return found

    async def forks(self, session_id: str) -> list[SessionRecord]:
        self._get(session_id)
        names = [name for name, found in self._sessions.items() if found.record.parent == session_id]
        return [await self.session(name) for name in names]

    async def rewrite(self, changes: Sequence[Rewrite]) -> bool:
        names = {change.session_id for change in changes}
        plans = []
        for change in changes:
            session = self._get(change.session_id)
            forks = [
                (name, found.record.parent_seq)
                for name, found in self._sessions.items()
                if found.record.parent == change.session_id
            ]
            forks += [(name, MAX_SEQ) for name in self._relatives(change.session_id)]
            plan = plan_rewrite(change, session.version, session.lanes, forks, names)
            if plan is None:
                return False
            plans.append((plan, rewrite_entries(change, change.ids, _with_bodies(session, change.ids))))
        for plan, entries in plans:
            session = self._sessions[plan.change.session_id]
            for entry in entries:
                session.entries[entry.event.seq - session.entries[0].event.seq] = entry
                session.by_id[entry.event.id] = entry
            for digest in plan.change.forget_media:
                session.media.pop(digest, None)
            if plan.change.record is not None:
                session.record = with_new_fields(session.record, _copy_record(plan.change.record))
            session.add(plan.note)
            session.lanes.update(plan.tips)
        return True

    async def relatives(self, session_id: str) -> list[SessionRecord]:
        self._get(session_id)
        return [await self.session(name) for name in self._relatives(session_id)]

    def _relatives(self, session_id: str) -> list[str]:
        own = self._sessions[session_id].origins
        return [name for name, found in self._sessions.items() if name != session_id and own & found.origins]

    async def erase(self) -> list[str]:
        self._check_open()
        return []

    async def delete(self, session_id: str) -> None:
        deleted = self._get(session_id)
        deleted.origins.add(new_id())
        for fork in self._sessions.values():
            if fork.record.parent == session_id:
                self._copy_shared(fork, deleted)
        del self._sessions[session_id]
        self._leases.drop(session_id)

    def _copy_shared(self, fork: _MemorySession, parent: _MemorySession) -> None:
        """Copies the events and media that a fork shares with its parent, and makes the grandparent its parent."""
        until = fork.record.parent_seq
        if until > parent.record.parent_seq:
            fork.origins |= parent.origins
        fork.entries[:0] = [entry for entry in parent.entries if entry.event.seq <= until]
        fork.by_id = {entry.event.id: entry for entry in fork.entries}
        for digest, (seq, data) in parent.media.items():
            if seq <= until:
                fork.media.setdefault(digest, (seq, data))
        fork.record = msgspec.structs.replace(
            fork.record, parent=parent.record.parent, parent_seq=min(until, parent.record.parent_seq)
        )

    async def problems(self, session_id: str) -> list[str]:
        record = await self.session(session_id)
        own = self._get(session_id).entries
        seqs = {entry.event.id: entry.event.seq for entry in self._visible(session_id)}
        return find_problems(record, (msgspec.structs.replace(e, event=_copy_event(e)) for e in own), seqs)

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
        self._check_open()
        event_filter = EventFilter(Query(query), where, self._events_before)
        matches: list[Match] = []
        for name in [session_id] if session_id is not None else list(self._sessions):
            session = self._get(name)
            if owner is not None and session.record.owner != owner:
                continue
            for entry in self._visible(name) if session_id is not None else session.entries:
                start = session.lanes.get(lane_key(entry.event.lane), NO_TIP).start
                if (found := event_filter.match(name, _copy_event(entry), start)) is not None:
                    matches.append(found)
        return event_filter.page(matches, limit, offset)

    def _events_before(self, session_id: str, event: Event, call_id: str) -> Iterator[Event]:
        before = [entry for entry in self._visible(session_id) if entry.event.seq < event.seq]
        return (_copy_event(entry) for entry in reversed(before[-CALL_LOOKBACK:]) if call_id.encode() in entry.body)

    async def ids(self, session_id: str, prefix: str, limit: int) -> list[str]:
        found = {entry.event.id for entry in self._visible(session_id) if entry.event.id.startswith(prefix)}
        return sorted(found)[: max(0, limit)]

    async def take(self, session_id: str, name: LeaseName, owner: str, seconds: float) -> bool:
        self._get(session_id)
        return self._leases.take(session_id, name, owner, seconds)

    async def release(self, session_id: str, name: LeaseName, owner: str) -> None:
        self._leases.release(session_id, name, owner)

    async def held(self, session_id: str, name: LeaseName) -> float | None:
        return self._leases.held(session_id, name)

    async def changed(
        self,
        session_id: str,
        name: LeaseName,
        timeout: float,  # noqa: ASYNC109 - part of the protocol
    ) -> None:
        await self._leases.changed(session_id, name, timeout)

    async def close(self) -> None:
        self._closed = True
        self._sessions.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed

    def _get(self, session_id: str) -> _MemorySession:
        self._check_open()
        if session_id not in self._sessions:
            raise UnknownSession(session_id)
        return self._sessions[session_id]

    def _chain(self, session_id: str) -> Iterator[tuple[_MemorySession, int]]:
        """Yields the session and its ancestors, each with the last seq visible to the session."""
        session, until = self._get(session_id), self._get(session_id).version
        yield session, until
        while session.record.parent is not None:
            until = min(until, session.record.parent_seq)
            session = self._get(session.record.parent)
            yield session, until

    def _visible(self, session_id: str, after: int = 0, last: int | None = None) -> list[LogEntry]:
        """Returns the entries after one seq and up to another; those of a session follow each other without a gap."""
        parts = []
        for session, until in self._chain(session_id):
            first = session.entries[0].event.seq if session.entries else 0
            end = until if last is None else min(until, last)
            parts.append(session.entries[max(0, after + 1 - first) : max(0, end + 1 - first)])
        return [entry for part in reversed(parts) for entry in part]

    def _find_entry(self, session_id: str, event_id: str) -> LogEntry | None:
        for session, until in self._chain(session_id):
            entry = session.by_id.get(event_id)
            if entry is not None and entry.event.seq <= until:
                return entry
        return None


def _in_slice(event: Event, which: Slice) -> bool:
    return (
        (which.any_lane or lane_key(event.lane) == lane_key(which.lane))
        and event.seq > which.after
        and (which.until is None or event.seq <= which.until)
        and (not which.kinds or event.kind in which.kinds)
        and (not which.ids or event.id in which.ids)
    )


def _clamp_limit(limit: int | None) -> int | None:
    return None if limit is None else max(0, limit)


def _copy_event(entry: LogEntry) -> Event:
    """Returns a copy of the stored event that the caller may modify."""
    return msgspec.structs.replace(entry.event, body=msgspec.json.decode(entry.body))


def _with_bodies(session: _MemorySession, ids: Iterable[str]) -> dict[str, LogEntry]:
    found = (session.by_id[name] for name in ids if name in session.by_id)
    return {entry.event.id: msgspec.structs.replace(entry, event=_copy_event(entry)) for entry in found}


def _copy_record(record: SessionRecord) -> SessionRecord:
    try:
        return msgspec.json.decode(msgspec.json.encode(record), type=SessionRecord)
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"Session {record.id!r} cannot be stored as JSON: {error}.") from error
