"""The full-text index: filled by a background task after the commit; a search scans events not indexed yet.

Indexing in the same statement would make an append several times slower: an event has about a hundred words, each with
its own index entry.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Literal, TypeVar

import anyio.lowlevel
import anyio.to_thread
import msgspec

from ...context.events import Event
from ...errors import CorruptLog, StoreClosed
from ..search import CALL_LOOKBACK, SearchDocument, find_called_tool, search_document
from . import deletion
from .connections import ConnectionPool
from .fts_tokens import BLOCK_ROWS, event_tags, index_tokens, row_tags
from .rows import escape_nul, event_from_row, load_statements, unescape_nul

BATCH_EVENTS = 300
"""Events indexed in one transaction."""
BATCH_SESSIONS = 20
"""Sessions indexed in one transaction, so that other processes can index other sessions."""
YIELD_CHARACTERS, THREAD_CHARACTERS = 5_000, 100_000
"""Characters after which the event loop gets a turn, and the length above which a text goes to a thread."""
T = TypeVar("T")
R = TypeVar("R")
_INDEX_SQL = load_statements("search.sql")


class ToolCallLookup(msgspec.Struct, frozen=True):
    """A tool call to find in a session and lane, before this seq."""

    session: int
    lane: str
    seq: int
    call_id: str


async def fill_index(connection: Any, tenant: str, batch: int = BATCH_EVENTS) -> Literal["more", "busy", "done"]:
    """Indexes the next batch of sessions that no other process is indexing; "busy" while another holds the lock."""
    async with connection.transaction():
        if not await connection.fetchval(_INDEX_SQL["try_shared_lock"]):
            return "busy"
        rows = await connection.fetch(_INDEX_SQL["next"], tenant, batch, BATCH_SESSIONS)
        if not rows:
            return "done"
        await index_events(connection, tenant, rows)
        last = {row["session"]: row["seq"] for row in rows}
        await connection.execute(_INDEX_SQL["done"], tenant, list(last), list(last.values()))
    return "more"


async def index_events(connection: Any, tenant: str, rows: list[Any]) -> None:
    """Adds events to the index, of sessions locked by the caller; keeps those already indexed."""
    if not rows:
        return
    documents = await _map_cooperatively(_read_document, rows, rows)
    lookups = [
        _lookup_from_row(row, call_id)
        for row, (_, document) in zip(rows, documents, strict=True)
        for call_id in document.unnamed_results
    ]
    calls = await events_with_calls(connection, tenant, lookups)
    numbers = [row[0] for row in await connection.fetch(_INDEX_SQL["rows"], len(rows))]

    def tokens_at(place: int) -> str:
        row, (event, document) = rows[place], documents[place]
        tags = row_tags(numbers[place])
        if event is not None:
            called = (
                find_called_tool(calls[_lookup_from_row(row, call_id)], call_id) for call_id in document.unnamed_results
            )
            tools = {*document.tools, *filter(None, called)}
            tags += event_tags(event, document, tools, row["session"], unescape_nul(row["owner"]), tenant)
        return index_tokens(document, tags)

    tokens = await _map_cooperatively(tokens_at, range(len(rows)), rows)
    keys, lanes, seqs = ([row[name] for row in rows] for name in ("session", "lane", "seq"))
    await connection.execute(_INDEX_SQL["add"], numbers, keys, lanes, seqs, tokens)
    await connection.execute(_INDEX_SQL["span"], [row // BLOCK_ROWS for row in numbers], [row["time"] for row in rows])


async def _map_cooperatively(work: Callable[[T], R], items: Iterable[T], rows: list[Any]) -> list[R]:
    """Applies a function to each row, yielding to the event loop in between.

    Only huge texts go to a thread, because a thread holds the interpreter for milliseconds at a time.
    """
    done, since = [], 0
    for one, row in zip(items, rows, strict=True):
        size = len(row["body"])
        done.append(await anyio.to_thread.run_sync(work, one) if size > THREAD_CHARACTERS else work(one))
        since += size
        if since > YIELD_CHARACTERS:
            since = 0
            await anyio.lowlevel.checkpoint()
    return done


def _read_document(row: Any) -> tuple[Event | None, SearchDocument]:
    """Returns an event and its document; an unreadable one has none (`verify` reports it)."""
    try:
        event = event_from_row(row)
        return event, search_document(event)
    except CorruptLog:
        return None, SearchDocument()


def _lookup_from_row(row: Any, call_id: str) -> ToolCallLookup:
    return ToolCallLookup(row["session"], row["lane"], row["seq"], call_id)


async def events_with_calls(
    connection: Any, tenant: str, wanted: Iterable[ToolCallLookup]
) -> dict[ToolCallLookup, list[Event]]:
    """Returns for each call the events shortly before that contain it, nearest first."""
    lookups = list(dict.fromkeys(wanted))
    found: dict[ToolCallLookup, list[Event]] = {each: [] for each in lookups}
    if not lookups:
        return found
    rows = await connection.fetch(
        _INDEX_SQL["earlier"],
        tenant,
        list(range(len(lookups))),
        [each.session for each in lookups],
        [each.lane for each in lookups],
        [each.seq for each in lookups],
        [msgspec.json.encode(each.call_id).decode() for each in lookups],
        CALL_LOOKBACK,
    )
    for place, *row in rows:
        found[lookups[place]].append(event_from_row(row))
    return found


def call_lookup(session: int, event: Event, call_id: str) -> ToolCallLookup:
    return ToolCallLookup(session, escape_nul(event.lane or ""), event.seq, call_id)


log = logging.getLogger("holdfast.stores.postgres")
IDLE_SECONDS = 0.05
"""How long no append must happen before the index is filled."""
MAX_UNINDEXED_APPENDS = 2_000
"""Appends after which the index is filled even if appends never pause."""
LOCK_RETRY_SECONDS = 0.2
"""Pause while another process holds the exclusive lock."""


class SearchIndexer:
    """Background task of one event loop that fills the index after appends, and completes deletions."""

    def __init__(self, connections: ConnectionPool, tenant: str) -> None:
        self._connections = connections
        self._tenant = tenant
        self._task: asyncio.Task[None] | None = None
        self._appended = 0

    def wake(self) -> None:
        """Starts the task after an append, or when unindexed events were found."""
        self._appended += 1
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._fill(), name="holdfast-index")

    async def _fill(self) -> None:
        try:
            while self._appended:
                await self._wait_until_idle()
                while await self._connections.run(lambda c, _: deletion.remove_hidden(c, self._tenant)):
                    pass
                while (left := await self._connections.run(lambda c, _: fill_index(c, self._tenant))) != "done":
                    if left == "busy":
                        await asyncio.sleep(LOCK_RETRY_SECONDS)
        except StoreClosed:
            pass
        except Exception as error:
            log.warning("The search index could not be updated and will be retried: %s", error)

    async def _wait_until_idle(self) -> None:
        seen = 0
        while seen < self._appended < MAX_UNINDEXED_APPENDS:
            seen = self._appended
            await asyncio.sleep(IDLE_SECONDS)
        self._appended = 0

    async def stop(self) -> None:
        """Cancels the task; the next append or search continues where it stopped."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
