"""Full-text search: the index, the newest part of it first, and a scan of what it does not have yet.

Whole words and beginnings of words are found wherever they are. What stands only inside a word (`ploy` in `deployed`)
is found in the newest `SCANNED` events that may be meant: an index of all parts of all words would be ten times as
large as what was said, and take longer to fill than all appends together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import anyio.to_thread

from ...errors import UnknownSession
from ...events import Event, root_key
from .. import sieve as sieves
from ..log import Hit
from ..query import Asked, Query
from ..sieve import Catch, Sieve
from .index import Sought, earlier, sought
from .nul import given, kept
from .rows import event_of
from .statements import blocks
from .words import BLOCK, GROUP, condition_terms, expression, part_terms, tag, whole_terms

SCANNED = 2_000
"""Events that are looked at one by one for parts of words."""
AT_ONCE = 200
"""Rows fetched together."""
WINDOWS = (("b", BLOCK, 2), ("g", GROUP, 1), ("g", GROUP, 4))
"""So many blocks or groups are asked one after the other, from the newest on; then all the rest at once."""

T = TypeVar("T")
_SQL = blocks("search.sql")
_ESCAPED = frozenset('"\\')


async def search(connection: Any, tenant: str, asked: Asked) -> tuple[list[Hit], bool]:
    """The hits, and whether the index is behind.

    All of it on one snapshot: what moves from the tail to the index meanwhile is found once.
    """
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.execute(_SQL["plainly"])
        looking = _Search(connection, tenant, asked)
        if not await looking.prepare():
            return [], False
        behind: bool = await connection.fetchval(_SQL["behind"], tenant)
        return await looking.hits(), behind


class _Search:
    """One search on one snapshot of the database."""

    def __init__(self, connection: Any, tenant: str, asked: Asked) -> None:
        self._connection = connection
        self._tenant = tenant
        self._asked = asked
        self._query = Query(asked.query)
        self._sieve = Sieve(self._query, asked.where, self._earlier)
        self._chain: list[tuple[int, int]] = []
        self._starts: dict[str, int] | None = None
        self._owner = asked.owner
        self._keys: dict[str, int] = {}
        """The key of the session that each event looked at is of, by its id."""
        self._calls: dict[Sought, list[Event]] = {}
        self._missing: list[Sought] = []

    async def prepare(self) -> bool:
        """Look up the session, if one is named; False if there is nothing to find."""
        asked = self._asked
        if asked.session_id is not None:
            rows = await self._connection.fetch(_SQL["scope"], self._tenant, kept(asked.session_id))
            if not rows:
                raise UnknownSession(asked.session_id)
            if asked.owner is not None and given(rows[0]["owner"]) != asked.owner:
                return False
            self._chain = [(row["key"], row["until"]) for row in rows]
            starts = await self._connection.fetch(_SQL["starts"], self._tenant, kept(asked.session_id))
            self._starts = {given(lane): start for lane, start in starts}
            self._owner = None
        return bool(self._query.words) and asked.limit > 0

    async def hits(self) -> list[Hit]:
        """Whole words first, if these are words; no more is looked at than the page takes."""
        limit, offset = self._asked.limit, max(0, self._asked.offset)
        needed = -(-(offset + limit) // sieves.POOL) * sieves.POOL
        tail = await self._tail()
        first, last = await self._rows()
        whole = [caught for caught in tail if caught.match.whole]
        if terms := whole_terms(self._query):
            await self._draw(whole, needed, terms, first, last, whole=True)
        parts = [caught for caught in tail if not caught.match.whole]
        if len(whole) < offset + limit:
            edge = await self._edge(first, last)
            await self._draw(parts, needed, [], edge, last, whole=False)
            if terms := part_terms(self._query):
                await self._draw(parts, needed, terms, first, edge - 1, whole=False)
        return await self._twice(lambda: self._sieve.hits([whole, parts], limit, offset))

    async def _tail(self) -> list[Catch]:
        """What the index does not know yet, the newest first: of a session by seq, of several by time."""
        caught = await self._catch(await self._connection.fetch(_SQL["tail"], *self._conditions()))
        if self._asked.session_id is not None:
            return sorted(caught, key=lambda each: -each.event.seq)
        return sorted(caught, key=lambda each: (each.event.time, each.session_id, each.event.seq), reverse=True)

    async def _rows(self) -> tuple[int, int]:
        """The rows of the index between which all events of the span of time lie."""
        since, until = self._asked.where.since, self._asked.where.until
        last = await self._connection.fetchval(_SQL["last_row"])
        if since is None and until is None:
            return 0, last
        low, high = await self._connection.fetchrow(_SQL["blocks"], kept(since), kept(until))
        return (1, 0) if low is None else (low * BLOCK, min(last, high * BLOCK + BLOCK - 1))

    async def _edge(self, first: int, last: int) -> int:
        """Where the newest `SCANNED` rows begin that may be meant."""
        left = SCANNED
        for low, high, among in _windows(first, last):
            asked = (expression([], self._tags, among), low, high, left)
            count, lowest = await self._connection.fetchrow(_SQL["edge"], *asked)
            if count == left:
                return int(lowest)
            left -= count
        return first

    async def _draw(
        self, into: list[Catch], needed: int, terms: Sequence[str], first: int, last: int, whole: bool
    ) -> None:
        """Take from the index what is caught whole, or not whole, the newest first, until there is enough."""
        for low, high, among in _windows(first, last):
            asked = (*self._conditions(), expression(terms, self._tags, among), low, high)
            rows = await self._connection.cursor(_SQL["found"], *asked)
            while len(into) < needed and (some := await rows.fetch(AT_ONCE)):
                into += [caught for caught in await self._catch(some) if caught.match.whole is whole]
            if len(into) >= needed:
                return

    @property
    def _tags(self) -> list[str]:
        return condition_terms(self._asked.where, [key for key, _ in self._chain], self._owner, self._tenant)

    def _conditions(self) -> tuple[Any, ...]:
        """What both statements ask of an event; words that any JSON shows as they are can be looked for in it."""
        where, chain = self._asked.where, self._chain
        plain = [word for word in self._query.words if word.isascii() and not _ESCAPED & set(word)]
        return (
            self._tenant,
            [key for key, _ in chain] or None,
            [until for _, until in chain] or None,
            kept(self._owner),
            [kept(kind) for kind in where.kinds] or None,
            kept(where.lane),
            kept(where.since),
            kept(where.until),
            plain,
        )

    async def _catch(self, rows: list[Any]) -> list[Catch]:
        if not rows:
            return []

        def catch() -> list[Catch]:
            return [caught for row in rows if (caught := self._caught(row)) is not None]

        return await self._twice(catch)

    def _caught(self, row: Any) -> Catch | None:
        event, name = event_of(row), given(row["name"])
        if self._asked.session_id is not None:
            name = self._asked.session_id
        start = row["start"] if self._starts is None else self._starts.get(root_key(event.lane))
        self._keys[name] = row["session"]
        return self._sieve.catch(name, event, start or 0)

    async def _twice(self, work: Callable[[], T]) -> T:
        """Do it, and again once the calls are at hand that it looked for."""
        done = await anyio.to_thread.run_sync(work)
        if self._missing:
            self._calls |= await earlier(self._connection, self._tenant, self._missing)
            self._missing.clear()
            done = await anyio.to_thread.run_sync(work)
        return done

    def _earlier(self, session_id: str, event: Event, call_id: str) -> Iterator[Event]:
        for key in [key for key, _ in self._chain] or [self._keys[session_id]]:
            wanted = sought(key, event, call_id)
            if wanted not in self._calls:
                self._missing.append(wanted)
            yield from self._calls.get(wanted, ())


def _windows(first: int, last: int) -> Iterator[tuple[int, int, list[str]]]:
    """Runs of rows, the newest first and each longer than the one before, with the tags of where they are."""
    for kind, size, count in WINDOWS:
        if last < first:
            return
        newest = last // size
        low = max(first, (newest - count + 1) * size)
        yield low, last, [tag(kind, place) for place in range(low // size, newest + 1)]
        last = low - 1
    if last >= first:
        yield first, last, []
