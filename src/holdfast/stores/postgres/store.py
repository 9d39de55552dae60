"""PostgresStore: what every store does, by statements that take the tenant first."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

import anyio

from ...errors import InvalidLimit, StoreClosed
from ...events import Event, LaneTip, SessionRecord
from ..admission import check_names, prepare, stored_text
from ..log import ANYWHERE, Appended, Hit, Slice, Unchanged, Where
from ..query import Asked
from . import lease, migrating, reads, search, writes
from .address import Address
from .connections import Connections, Work
from .filling import Filling
from .listening import Listening
from .nul import kept

T = TypeVar("T")


class _Station:
    """What the store has in one event loop: connections belong to the loop that opened them."""

    def __init__(self, connections: Connections, filling: Filling, listening: Listening) -> None:
        self.connections = connections
        self.filling = filling
        self.listening = listening

    async def close(self) -> None:
        await self.filling.stop()
        self.listening.close()
        await self.connections.close()

    def abandon(self) -> None:
        """Without a word to the server: whoever works in this loop hears that the store is closed."""
        self.listening.close()
        self.connections.terminate()


class PostgresStore:
    """Sessions in a PostgreSQL database, of one tenant; any number of processes may use it at once.

    Whose they are, `tenant` says, or `?tenant=NAME` in the address.
    The tables must be there: `holdfast migrate`, or `migrate=True`. `most` connections are opened, as they are
    needed, in each event loop. A statement may take `timeout` seconds; a server that is gone is tried again for
    `patience` seconds. Acknowledged means committed: how durable that is, the server's `synchronous_commit` says.
    """

    def __init__(
        self,
        url: str,
        *,
        tenant: str | None = None,
        migrate: bool = False,
        most: int = 10,
        timeout: float = 60.0,
        patience: float = 15.0,
    ) -> None:
        if most < 1:
            raise InvalidLimit(f"A store needs at least one connection, not {most}.")
        for name, seconds in (("timeout", timeout), ("patience", patience)):
            if not 0 < seconds < math.inf:
                raise InvalidLimit(f"{name} must be a number of seconds above 0, not {seconds}.")
        self._address = Address(url)
        named = self._address.tenant if tenant is None else tenant
        self._tenant = kept(stored_text(named, named))
        self._migrate = migrate
        self._most = most
        self._timeout = timeout
        self._patience = patience
        self._stations: dict[asyncio.AbstractEventLoop, _Station] = {}
        self._ready = False
        self._closed = False

    def __repr__(self) -> str:
        return f"PostgresStore({self._address.public!r}, tenant={self._tenant!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- the log ------------------------------------------------------------------------------------

    async def create(self, record: SessionRecord) -> None:
        check_names(record)
        wide = writes.wide_of(record)
        await self._run(lambda c, unsure: writes.create(c, self._tenant, record, wide, unsure))

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
        for digest, data in (media or {}).items():
            stored_text(session_id, digest + data)
        asked = writes.Append(session_id, entries, after, when, tip, dict(media or {}))
        done = await self._run(lambda c, unsure: writes.append(c, self._tenant, asked, unsure))
        if done.fresh:
            self._station.filling.wake()
        return done

    async def rewrite(self, session_id: str, events: Sequence[Event], forget_media: Sequence[str] = ()) -> None:
        entries = prepare(events)
        await self._run(lambda c, _: writes.rewrite(c, self._tenant, session_id, entries, forget_media))
        self._station.filling.wake()

    async def delete(self, session_id: str) -> None:
        await self._run(lambda c, unsure: writes.delete(c, self._tenant, session_id, unsure))

    async def expire(self, before: datetime | str) -> list[str]:
        """Delete the sessions to which nothing was appended since; forks keep what they share. Says which went."""
        if isinstance(before, datetime):
            moment = before.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        else:
            moment = stored_text("", before)

        async def goes(name: str) -> bool:
            return await self._run(lambda c, _: writes.delete_expired(c, self._tenant, name, moment))

        old = await self._run(lambda c, _: writes.expired(c, self._tenant, moment))
        return [name for name in old if await goes(name)]

    async def session(self, session_id: str) -> SessionRecord:
        return await self._run(lambda c, _: reads.session(c, self._tenant, session_id))

    async def sessions(self, owner: str | None = None, limit: int | None = None) -> list[SessionRecord]:
        return await self._run(lambda c, _: reads.sessions(c, self._tenant, owner, limit))

    async def read(self, session_id: str, which: Slice) -> list[Event]:
        return await self._run(lambda c, _: reads.read(c, self._tenant, session_id, which))

    async def media(self, session_id: str, digests: Sequence[str]) -> dict[str, str]:
        return await self._run(lambda c, _: reads.media(c, self._tenant, session_id, digests))

    async def problems(self, session_id: str) -> list[str]:
        return await self._run(lambda c, _: reads.problems(c, self._tenant, session_id))

    # -- search -------------------------------------------------------------------------------------

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
        asked = Asked(query, session_id, owner, where, limit, offset)
        hits, behind = await self._run(lambda c, _: search.search(c, self._tenant, asked))
        if behind:
            self._station.filling.wake()
        return hits

    async def ids(self, session_id: str, prefix: str, limit: int) -> list[str]:
        return await self._run(lambda c, _: reads.ids(c, self._tenant, session_id, prefix, limit))

    # -- the flag -----------------------------------------------------------------------------------

    async def take(self, session_id: str, owner: str, seconds: float) -> bool:
        return await self._run(lambda c, _: lease.take(c, self._tenant, session_id, owner, seconds))

    async def release(self, session_id: str, owner: str) -> None:
        await self._run(lambda c, _: lease.release(c, self._tenant, session_id, owner))

    async def held(self, session_id: str) -> float | None:
        stands = await self._held(session_id)
        return None if stands is None else stands[1]

    async def changed(self, session_id: str, timeout: float) -> None:  # noqa: ASYNC109 - whoever waits says how long
        stands = await self._held(session_id)
        if stands is None:
            return
        listening = self._station.listening
        with listening.word_of(stands[0]) as word:
            wise = await listening.hears()
            stands = await self._held(session_id)  # it may have gone down before anybody listened
            if stands is not None:
                with anyio.move_on_after(min(timeout, stands[1], wise)):
                    await word.wait()

    async def _held(self, session_id: str) -> tuple[int, float] | None:
        return await self._run(lambda c, _: lease.held(c, self._tenant, session_id))

    # -- connections --------------------------------------------------------------------------------

    async def close(self) -> None:
        self._closed = True
        here = asyncio.get_running_loop()
        for loop, station in list(self._stations.items()):
            del self._stations[loop]
            if loop is here:
                await station.close()
            elif loop.is_running():
                loop.call_soon_threadsafe(station.abandon)

    async def _run(self, work: Work[T]) -> T:
        if self._closed:
            raise StoreClosed
        return await self._station.connections.run(work)

    @property
    def _station(self) -> _Station:
        """That of the event loop that is running; those of loops that have ended are forgotten."""
        here = asyncio.get_running_loop()
        if here not in self._stations:
            for ended in [loop for loop in self._stations if loop.is_closed()]:
                del self._stations[ended]
            connections = Connections(self._address, self._connect, self._most, self._patience)
            filling = Filling(connections, self._tenant)
            self._stations[here] = _Station(connections, filling, Listening(self._connect))
        return self._stations[here]

    async def _connect(self) -> Any:
        """The first connection sees that the tables are there and that they are ours."""
        connection = await self._address.connect(self._timeout)
        if not self._ready:
            try:
                look = migrating.migrate if self._migrate else migrating.check
                await look(connection, self._address.public)
            except BaseException:
                connection.terminate()
                raise
            self._ready = True
        return connection
