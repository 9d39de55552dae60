"""The contract of a store: three small protocols that know events and nothing of compaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from ..events import Event, LaneTip, SessionRecord
from ..references import reference


class Unchanged(msgspec.Struct, frozen=True):
    """A condition on an append: it happens only if nothing relevant moved since it was prepared."""

    version: int | None = None
    """Strict: the session is still at this version."""
    lane: str | None = None
    mark: int | None = None
    """Rebase: the lane's last mark is still this one; plain appends do not matter."""


class Appended(msgspec.Struct, frozen=True):
    """What an append did."""

    events: tuple[Event, ...]
    """The events as stored, with `seq` and `epoch`; known ones as they were stored the first time."""
    version: int
    """The session's version afterwards (the current one, where the condition did not hold)."""
    conflict: bool = False
    """The condition did not hold: nothing was written."""
    fresh: bool = True
    """False where nothing was written: every event was known already (a retry), or there was a conflict."""


class Slice(msgspec.Struct, frozen=True):
    """Which events of a session to read, in order of `seq`."""

    lane: str | None = None
    any_lane: bool = False
    after: int = 0
    until: int | None = None
    """Up to and including this seq."""
    kinds: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    limit: int | None = None
    newest: bool = False
    """With `limit`: the last ones instead of the first; they still come oldest first."""


class Where(msgspec.Struct, frozen=True):
    """Which events a search looks at; what is empty or None asks for nothing."""

    kinds: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """Calls of any of these tools, and their results."""
    but_tools: tuple[str, ...] = ()
    """Nothing that is about these tools alone."""
    lane: str | None = None
    """A sub-agent's lane; "" is the root alone."""
    since: str | None = None
    until: str | None = None
    """Times as events have them, both included; an event without one lies neither after nor before."""
    archived: bool | None = None
    """Messages before the live window of their lane (True) or inside it (False)."""
    shown: frozenset[str] = frozenset()
    """Events that count as inside the live window though they stand before it: a checkpoint shows them first."""


ANYWHERE = Where()


class Hit(msgspec.Struct, frozen=True):
    """An event found by full-text search."""

    session_id: str
    event: Event
    snippet: str
    role: str | None = None
    """Who speaks, in neutral words; None for what is no message."""
    tools: tuple[str, ...] = ()
    """The tools that it calls or answers for."""
    archived: bool = False
    """It is a message that a compaction took out of the live window."""

    @property
    def reference(self) -> str:
        """Its short name in its session."""
        return reference(self.event)


@runtime_checkable
class Log(Protocol):
    """Append-only logs of many sessions. Acknowledged means durable."""

    async def create(self, record: SessionRecord) -> None:
        """Add a session; InvalidInput if the id is taken. A fork's `version` and `lanes` come with it."""
        ...

    async def session(self, session_id: str) -> SessionRecord:
        """The session with its version and tips; UnknownSession if there is none."""
        ...

    async def sessions(self, owner: str | None = None, limit: int | None = None) -> list[SessionRecord]:
        """Sessions, newest first; of one owner if named."""
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
        """Append events atomically, together with the tip of their lane if one is given.

        Known ids are looked up first: all known with equal content is a retry (`fresh=False`); other
        content is DuplicateEvent. Then `after` is compared (StaleVersion), then `when` (`conflict`).
        Of a batch that is known in part, the rest is written. With a tip, the lane's mark becomes the
        seq of the last event; its epoch and start are the tip's. The first append to a lane other than
        the root notes the root's version and epoch as its base, which stays.
        """
        ...

    async def read(self, session_id: str, which: Slice) -> list[Event]:
        """Events of the session, a fork's inherited ones included."""
        ...

    async def media(self, session_id: str, digests: Sequence[str]) -> dict[str, str]:
        """Media that was appended with events of this session or of those it was forked from."""
        ...

    async def rewrite(self, session_id: str, events: Sequence[Event], forget_media: Sequence[str] = ()) -> None:
        """Replace the bodies of stored events, for redaction alone; the search index is scrubbed too."""
        ...

    async def delete(self, session_id: str) -> None:
        """Remove a session for good; forks of it first get a copy of what they share, and its parent."""
        ...

    async def problems(self, session_id: str) -> list[str]:
        """What is wrong with the stored log, in words; empty if nothing."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Search(Protocol):
    """Full-text search over everything in a log, tool arguments and results included."""

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
        """Events that hold all words of the query. The query is data, never syntax; one without words finds nothing.

        First those in which every word stands whole, then those that hold some only inside longer words; of
        each kind the newest `POOL` with the best of them first, then the next newest, and so on.
        """
        ...

    async def ids(self, session_id: str, prefix: str, limit: int) -> list[str]:
        """Ids of events of the session that begin so, in order."""
        ...


@runtime_checkable
class Lease(Protocol):
    """A flag on a session: somebody is at work on it. It is owned, and goes by itself if its owner dies (W13)."""

    async def take(self, session_id: str, owner: str, seconds: float) -> bool:
        """Raise the flag, or keep it up for so much longer; False while somebody else has it."""
        ...

    async def release(self, session_id: str, owner: str) -> None:
        """Lower it, if it is still this owner's; whoever waits is told."""
        ...

    async def held(self, session_id: str) -> float | None:
        """Seconds for which it still stands unless it is renewed; None where it is down."""
        ...

    async def changed(self, session_id: str, timeout: float) -> None:  # noqa: ASYNC109 - whoever waits says how long
        """Wait until it may be down, or so many seconds: told by the store where it can tell, else after a moment."""
        ...
