"""The contract of a store: three small protocols over events, `Log`, `Search` and `Lease`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol, runtime_checkable

import anyio
import msgspec

from ..context.events import Event, LaneTip, SessionRecord
from ..context.references import reference
from ..errors import StoreError
from ..messages import Json


class Unchanged(msgspec.Struct, frozen=True):
    """Compare-and-set condition of an append: nothing is written unless it holds."""

    version: int | None = None
    """Strict: the session must still be at this version."""
    lane: str | None = None
    mark: int | None = None
    """Rebase: the lane's mark must be unchanged; plain appends do not move it."""


class Appended(msgspec.Struct, frozen=True):
    """Result of an append."""

    events: tuple[Event, ...]
    """The events as stored, with `seq` and `epoch`; already known ones as first stored."""
    version: int
    """The session's version after the append (the current one in case of a conflict)."""
    conflict: bool = False
    """The condition did not hold: nothing was written."""
    fresh: bool = True
    """False if nothing was written: a retry of known events, or a conflict."""


class Rewrite(msgspec.Struct, frozen=True):
    """What a redaction changes in one session."""

    session_id: str
    version: int
    """The session must still be at this version."""
    note: Event
    """The redaction, appended in the same step. It moves every lane's mark: a compaction made before is refused."""
    ids: Sequence[str] = ()
    """Events of this session itself, not of its ancestors, that get a new body."""
    change: Callable[[Event], Json] = lambda event: event.body
    """Returns the new body of one of these, as it is stored; called within the step, so that not all are in memory."""
    forget_media: tuple[str, ...] = ()
    since: int = 1
    """Forks that share this seq must be changed in the same step."""
    record: SessionRecord | None = None
    """New system prompt, tools and metadata."""


class Slice(msgspec.Struct, frozen=True):
    """Selects events of a session, in order of `seq`."""

    lane: str | None = None
    any_lane: bool = False
    after: int = 0
    until: int | None = None
    """Up to and including this seq."""
    kinds: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    limit: int | None = None
    newest: bool = False
    """With `limit`: the last events instead of the first, still returned oldest first."""


class Where(msgspec.Struct, frozen=True):
    """Conditions of a search; empty and None match everything."""

    kinds: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """Only calls of any of these tools, and their results."""
    exclude_tools: tuple[str, ...] = ()
    """Exclude events about these tools only."""
    lane: str | None = None
    """A sub-agent's lane; "" is the root lane."""
    since: str | None = None
    until: str | None = None
    """Timestamps, both inclusive; events without a timestamp never match since or until."""
    archived: bool | None = None
    """Messages before the live window of their lane (True) or inside it (False)."""
    visible_ids: frozenset[str] = frozenset()
    """Ids of earlier events that count as inside the live window, because the checkpoint's head includes them."""


ANYWHERE = Where()


class Hit(msgspec.Struct, frozen=True):
    """An event found by full-text search."""

    session_id: str
    event: Event
    snippet: str
    role: str | None = None
    """Role of the message; None for other events."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the event calls or returns results of."""
    archived: bool = False
    """True for a message that a compaction removed from the live window."""

    @property
    def reference(self) -> str:
        """Short reference to the event within its session."""
        return reference(self.event)


class ProcessGuard:
    """Binds a store or service to the process that used it first: its threads, connections and locks stay there."""

    def __init__(self) -> None:
        self._process: int | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether this is a forked child of the process that used it first."""
        return self._process not in (None, os.getpid())

    def enter(self) -> None:
        """Binds to this process; raises StoreError in a forked child of the bound one."""
        if self.is_elsewhere:
            raise StoreError("This store was opened before the process forked: open it again in the child process.")
        self._process = os.getpid()


@runtime_checkable
class Log(Protocol):
    """Append-only logs of sessions. An append that has returned is durable."""

    async def create(self, record: SessionRecord, *, mark: int | None = None) -> None:
        """Adds a session; raises InvalidInput if the id is taken. A fork's record carries its `version` and `lanes`.

        With `mark`, Conflict is raised unless it is still the mark of the parent's root lane: a redaction moves it,
        and the record may have what was redacted.
        """
        ...

    async def session(self, session_id: str) -> SessionRecord:
        """Returns the session with its version and lane tips; raises UnknownSession."""
        ...

    async def sessions(self, owner: str | None = None, limit: int | None = None) -> list[SessionRecord]:
        """Lists sessions, newest first, optionally of one owner."""
        ...

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
        """Appends events atomically, together with the tip of their lane if one is given.

        Known ids are looked up first: if all are known with equal content, it is a retry (`fresh=False`);
        a known id with other content raises DuplicateEvent. Then `after` is compared (StaleVersion), then
        `when` (`conflict`). Of a partly known batch, the new events are written. With a tip, the lane's mark
        becomes the seq of the last event; its epoch and start are the tip's. The first append to a lane other
        than the root records the root's version and epoch as the lane's base, which never changes.
        """
        ...

    async def read(self, session_id: str, which: Slice) -> list[Event]:
        """Returns events of the session, including those a fork inherits."""
        ...

    async def media(self, session_id: str, digests: Sequence[str]) -> dict[str, str]:
        """Returns media appended to this session or its ancestors, by digest."""
        ...

    async def forks(self, session_id: str) -> list[SessionRecord]:
        """Lists the sessions forked from this one, oldest first."""
        ...

    async def relatives(self, session_id: str) -> list[SessionRecord]:
        """Lists the other sessions that have copies of the same events, since the session of them all was deleted."""
        ...

    async def rewrite(self, changes: Sequence[Rewrite]) -> bool:
        """Replaces bodies, for redaction only: all changes or none, search index included.

        False, with nothing written, if a session has another version, or a fork or relative that is not among the
        changes.
        """
        ...

    async def erase(self) -> list[str]:
        """Erases the bytes of rewritten and deleted events; returns where some of them still are, and what to do."""
        ...

    async def delete(self, session_id: str) -> None:
        """Deletes a session permanently; its forks first receive a copy of the shared events, and its parent."""
        ...

    async def problems(self, session_id: str) -> list[str]:
        """Checks the stored log; returns a description of each problem."""
        ...

    async def close(self) -> None:
        """Closes the store; later calls raise StoreClosed."""
        ...


@runtime_checkable
class Search(Protocol):
    """Full-text search over all events, including tool arguments and results."""

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
        """Returns events that contain all words of the query. A query has no syntax; without words it matches nothing.

        Events with every word as a whole word come first, then those with some only inside longer words. In
        each group the newest `RANKING_POOL` are ranked by score, then the next newest, and so on.
        """
        ...

    async def ids(self, session_id: str, prefix: str, limit: int) -> list[str]:
        """Returns the ids of the session's events that start with `prefix`, sorted."""
        ...


LeaseName = Literal["turn", "compaction"]
"""What a lease on a session is for; those of one session are independent of each other."""


@runtime_checkable
class Lease(Protocol):
    """Leases on a session, one of each name. A lease has an owner and expires if it is not renewed.

    `take` is also called from the event loop of another thread, which renews leases.
    """

    async def take(self, session_id: str, name: LeaseName, owner: str, seconds: float) -> bool:
        """Takes or renews the lease for `seconds`; False while another owner holds it."""
        ...

    async def release(self, session_id: str, name: LeaseName, owner: str) -> None:
        """Releases the lease if `owner` holds it, and wakes waiters."""
        ...

    async def held(self, session_id: str, name: LeaseName) -> float | None:
        """Returns the seconds until the lease expires; None if nobody holds it."""
        ...

    async def changed(
        self,
        session_id: str,
        name: LeaseName,
        timeout: float,  # noqa: ASYNC109 - part of the protocol
    ) -> None:
        """Waits until the lease may be free, or for `timeout` seconds; may return early, so check again."""
        ...


@contextmanager
def removing(session_id: str) -> Iterator[None]:
    """Tells in an error what a deletion has done: the session is gone, and what it leaves is removed later."""
    try:
        yield
    except StoreError as problem:
        raise StoreError(
            f"Session {session_id!r} is deleted, but not all of its data is removed yet: {problem} The next deletion, "
            "or the next process that writes to the store, continues it."
        ) from problem


POLL_SECONDS = 0.1
"""Interval at which a waiter checks again, where another process may release the lease without notification."""


class LeaseWaiters:
    """Waiters by session id, for leases of any name; only releases in this process are notified."""

    def __init__(self) -> None:
        self._waiters: dict[str, list[anyio.Event]] = {}

    def notify(self, session_id: str) -> None:
        for waiter in self._waiters.pop(session_id, ()):
            waiter.set()

    async def wait(self, session_id: str, seconds: float) -> None:
        """Waits until a lease of the session is released in this process, or for `seconds`."""
        waiter = anyio.Event()
        self._waiters.setdefault(session_id, []).append(waiter)
        try:
            with anyio.move_on_after(seconds):
                await waiter.wait()
        finally:
            others = self._waiters.get(session_id, [])
            if waiter in others:
                others.remove(waiter)
                if not others:
                    del self._waiters[session_id]


class DoctorCheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """One check with its state, a message and, if it failed, advice."""

    name: str
    state: Literal["ok", "warning", "problem"]
    message: str = msgspec.field(name="said")
    advice: str | None = None
    """How to fix it."""
