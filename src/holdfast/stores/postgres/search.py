"""Full-text search: the index, newest rows first, and a scan of events not indexed yet.

Whole words and prefixes are found anywhere. Other substrings (`ploy` in `deployed`) are found only in the newest
`MAX_SCANNED_EVENTS` candidates: a trigram index would be ten times as large as the text and take longer to fill than
all appends together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import anyio.to_thread

from ...context.events import Event, lane_key
from ...errors import UnknownSession
from .. import search as shared_search
from ..base import Hit
from ..search import EventFilter, Match, Query, SearchRequest
from .fts_tokens import (
    BLOCK_ROWS,
    GROUP_ROWS,
    build_tsquery,
    condition_terms,
    prefix_terms,
    tag_token,
    whole_word_terms,
)
from .index import ToolCallLookup, call_lookup, events_with_calls
from .rows import escape_nul, event_from_row, load_statements, unescape_nul

MAX_SCANNED_EVENTS = 2_000
"""Candidates that are scanned for substrings."""
FETCH_ROWS = 200
"""Rows fetched at once from a cursor."""
SEARCH_WINDOWS = (("b", BLOCK_ROWS, 2), ("g", GROUP_ROWS, 1), ("g", GROUP_ROWS, 4))
"""Windows of blocks or groups that are searched one after the other, newest first; then all the rest at once."""
T = TypeVar("T")
_SEARCH_SQL = load_statements("search.sql")
_JSON_ESCAPED = frozenset('"\\')


async def search_events(connection: Any, tenant: str, request: SearchRequest) -> tuple[list[Hit], bool]:
    """Returns the hits, and whether some events are not indexed yet.

    Runs on one snapshot, so that an event that is being indexed meanwhile is found once.
    """
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.execute(_SEARCH_SQL["plainly"])
        run = _SearchRun(connection, tenant, request)
        if not await run.prepare():
            return [], False
        behind: bool = await connection.fetchval(_SEARCH_SQL["behind"], tenant)
        return await run.hits(), behind


class _SearchRun:
    """One search on one snapshot of the database."""

    def __init__(self, connection: Any, tenant: str, request: SearchRequest) -> None:
        self._connection = connection
        self._tenant = tenant
        self._request = request
        self._query = Query(request.query)
        self._filter = EventFilter(self._query, request.where, self._events_before)
        self._chain: list[tuple[int, int]] = []
        self._starts: dict[str, int] | None = None
        self._owner = request.owner
        self._keys: dict[str, int] = {}
        """Key of each session of which events were read, by id."""
        self._calls: dict[ToolCallLookup, list[Event]] = {}
        self._missing_calls: list[ToolCallLookup] = []

    async def prepare(self) -> bool:
        """Looks up the session, if one is named; False if nothing can match."""
        request = self._request
        if request.session_id is not None:
            rows = await self._connection.fetch(_SEARCH_SQL["scope"], self._tenant, escape_nul(request.session_id))
            if not rows:
                raise UnknownSession(request.session_id)
            if request.owner is not None and unescape_nul(rows[0]["owner"]) != request.owner:
                return False
            self._chain = [(row["key"], row["until"]) for row in rows]
            starts = await self._connection.fetch(_SEARCH_SQL["starts"], self._tenant, escape_nul(request.session_id))
            self._starts = {unescape_nul(lane): start for lane, start in starts}
            self._owner = None
        return bool(self._query.words) and request.limit > 0

    async def hits(self) -> list[Hit]:
        """Returns a page: whole-word matches first, if the words have boundaries; reads no more than needed."""
        limit, offset = self._request.limit, max(0, self._request.offset)
        needed = -(-(offset + limit) // shared_search.RANKING_POOL) * shared_search.RANKING_POOL
        tail = await self._unindexed_matches()
        first, last = await self._row_range()
        whole = [match for match in tail if match.score.whole_words]
        if terms := whole_word_terms(self._query):
            await self._collect(whole, needed, terms, first, last, whole=True)
        parts = [match for match in tail if not match.score.whole_words]
        if len(whole) < offset + limit:
            edge = await self._scan_start(first, last)
            await self._collect(parts, needed, [], edge, last, whole=False)
            if terms := prefix_terms(self._query):
                await self._collect(parts, needed, terms, first, edge - 1, whole=False)
        return await self._run_with_calls(lambda: self._filter.page_of_tiers([whole, parts], limit, offset))

    async def _unindexed_matches(self) -> list[Match]:
        """Returns matches that are not indexed yet, newest first: by seq in one session, by time across several."""
        matches = await self._match_rows(await self._connection.fetch(_SEARCH_SQL["tail"], *self._conditions()))
        if self._request.session_id is not None:
            return sorted(matches, key=lambda each: -each.event.seq)
        return sorted(matches, key=lambda each: (each.event.time, each.session_id, each.event.seq), reverse=True)

    async def _row_range(self) -> tuple[int, int]:
        """Returns the first and last index row of the time range; (1, 0) if there are none."""
        since, until = self._request.where.since, self._request.where.until
        last = await self._connection.fetchval(_SEARCH_SQL["last_row"])
        if since is None and until is None:
            return 0, last
        low, high = await self._connection.fetchrow(_SEARCH_SQL["blocks"], escape_nul(since), escape_nul(until))
        return (1, 0) if low is None else (low * BLOCK_ROWS, min(last, high * BLOCK_ROWS + BLOCK_ROWS - 1))

    async def _scan_start(self, first: int, last: int) -> int:
        """Returns the row at which the newest `MAX_SCANNED_EVENTS` candidates begin."""
        left = MAX_SCANNED_EVENTS
        for low, high, among in _row_windows(first, last):
            arguments = (build_tsquery([], self._tags, among), low, high, left)
            count, lowest = await self._connection.fetchrow(_SEARCH_SQL["edge"], *arguments)
            if count == left:
                return int(lowest)
            left -= count
        return first

    async def _collect(
        self, into: list[Match], needed: int, terms: Sequence[str], first: int, last: int, whole: bool
    ) -> None:
        """Adds matches of the index, with or without whole words, newest first, until there are enough."""
        for low, high, among in _row_windows(first, last):
            arguments = (*self._conditions(), build_tsquery(terms, self._tags, among), low, high)
            rows = await self._connection.cursor(_SEARCH_SQL["found"], *arguments)
            while len(into) < needed and (some := await rows.fetch(FETCH_ROWS)):
                into += [match for match in await self._match_rows(some) if match.score.whole_words is whole]
            if len(into) >= needed:
                return

    @property
    def _tags(self) -> list[str]:
        return condition_terms(self._request.where, [key for key, _ in self._chain], self._owner, self._tenant)

    def _conditions(self) -> tuple[Any, ...]:
        """Parameters of the conditions on events; words without escapes can be searched in the encoded JSON."""
        where, chain = self._request.where, self._chain
        plain = [word for word in self._query.words if word.isascii() and not _JSON_ESCAPED & set(word)]
        return (
            self._tenant,
            [key for key, _ in chain] or None,
            [until for _, until in chain] or None,
            escape_nul(self._owner),
            [escape_nul(kind) for kind in where.kinds] or None,
            escape_nul(where.lane),
            escape_nul(where.since),
            escape_nul(where.until),
            plain,
        )

    async def _match_rows(self, rows: list[Any]) -> list[Match]:
        if not rows:
            return []

        def match_all() -> list[Match]:
            return [match for row in rows if (match := self._match_row(row)) is not None]

        return await self._run_with_calls(match_all)

    def _match_row(self, row: Any) -> Match | None:
        event, name = event_from_row(row), unescape_nul(row["name"])
        if self._request.session_id is not None:
            name = self._request.session_id
        start = row["start"] if self._starts is None else self._starts.get(lane_key(event.lane))
        self._keys[name] = row["session"]
        return self._filter.match(name, event, start or 0)

    async def _run_with_calls(self, work: Callable[[], T]) -> T:
        """Runs the function; runs it again after fetching the tool calls that it was missing."""
        result = await anyio.to_thread.run_sync(work)
        if self._missing_calls:
            self._calls |= await events_with_calls(self._connection, self._tenant, self._missing_calls)
            self._missing_calls.clear()
            result = await anyio.to_thread.run_sync(work)
        return result

    def _events_before(self, session_id: str, event: Event, call_id: str) -> Iterator[Event]:
        for key in [key for key, _ in self._chain] or [self._keys[session_id]]:
            wanted = call_lookup(key, event, call_id)
            if wanted not in self._calls:
                self._missing_calls.append(wanted)
            yield from self._calls.get(wanted, ())


def _row_windows(first: int, last: int) -> Iterator[tuple[int, int, list[str]]]:
    """Yields ranges of rows, newest first and growing, with the tags of their blocks or groups."""
    for kind, size, count in SEARCH_WINDOWS:
        if last < first:
            return
        newest = last // size
        low = max(first, (newest - count + 1) * size)
        yield low, last, [tag_token(kind, place) for place in range(low // size, newest + 1)]
        last = low - 1
    if last >= first:
        yield first, last, []
