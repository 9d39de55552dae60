"""Appends to PostgreSQL through the store, compared with bare asyncpg inserts of the same rows.

The store's append updates the session's version by compare-and-set, checks its lane, and notifies the search index; the
bare insert does none of it. Both are durable: the server syncs before it answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import asyncpg
import msgspec

from benchmarks.measure import Options, Ratio, time_awaitable
from benchmarks.mixes import chat
from benchmarks.postgres_server import empty_database
from holdfast.context.events import Event, EventKind, SessionRecord, new_id, now
from holdfast.stores import PostgresStore

WRITERS = 50
CONNECTIONS = 10
APPENDS = 500
"""In one timing."""
ROUNDS = 24
AIM = 0.6
LENGTHS, QUICK_LENGTHS = (10, 10_000, 1_000_000), (10, 1_000, 20_000)
GROWTH = 1.5
BATCH = 1_000

_BARE = """
CREATE TABLE bare (LIKE holdfast.events INCLUDING ALL)
"""
_INSERT = """
INSERT INTO bare (session, seq, v, id, lane, kind, time, epoch, digest, body)
VALUES ($1, $2, 1, $3, '', $4, $5, NULL, '0123456789abcdef0123456789abcdef', $6)
"""
BODIES = [{"message": message} for message in chat(APPENDS)]


def run(options: Options) -> Iterator[Ratio]:
    yield from asyncio.run(_all(options))


async def _all(options: Options) -> list[Ratio]:
    async with empty_database() as url:
        found = [await _compare(url, 1, AIM), await _compare(url, WRITERS, None)]
        return [*found, await _growth(url, QUICK_LENGTHS if options.quick else LENGTHS)]


async def _compare(url: str, writers: int, aim: float | None) -> Ratio:
    ours = bare = float("inf")
    async with PostgresStore(url, migrate=True, max_connections=CONNECTIONS, tenant=f"{writers}") as store:
        for number in range(writers):
            await store.create(SessionRecord(str(number), now()))
        connections = [await asyncpg.connect(url) for _ in range(min(writers, CONNECTIONS))]
        await connections[0].execute("DROP TABLE IF EXISTS bare")
        await connections[0].execute(_BARE)
        for turn in range(ROUNDS):
            ours = min(ours, await time_awaitable(partial(append_concurrently, store, writers)))
            await wait_for_index(connections[0])
            bare = min(bare, await time_awaitable(partial(_insert_directly, connections, turn)))
        for connection in connections:
            await connection.close()
    return Ratio(
        f"PostgreSQL append, {writers} session{'s' * (writers > 1)}",
        f"appends a second of the store / of a bare asyncpg insert, connections: {len(connections)}",
        bare / ours,
        aim,
        "at least",
        seconds={"store": ours / APPENDS, "driver": bare / APPENDS},
    )


async def wait_for_index(connection: Any) -> None:
    """Waits until the search index is up to date, so that indexing does not disturb the next timing."""
    while await connection.fetchval("SELECT EXISTS (SELECT FROM holdfast.unindexed)"):
        await connection.execute("SELECT pg_sleep(0.05)")


async def append_concurrently(store: PostgresStore, writers: int) -> None:
    async def write(number: int) -> None:
        for body in BODIES[number::writers]:
            await store.append(str(number), [Event(new_id(), EventKind.MESSAGE, now(), body)])

    await asyncio.gather(*map(write, range(writers)))


async def _insert_directly(connections: list[Any], turn: int) -> None:
    """One writer per connection: more would only wait."""

    async def write(number: int, connection: Any) -> None:
        for place, body in enumerate(BODIES[number :: len(connections)], turn * APPENDS):
            text = msgspec.json.encode(body).decode()
            await connection.execute(_INSERT, number, place + 1, new_id(), EventKind.MESSAGE, now(), text)

    await asyncio.gather(*(write(number, connection) for number, connection in enumerate(connections)))


async def _growth(url: str, lengths: tuple[int, ...]) -> Ratio:
    """Time of an append in sessions of several lengths, in turns."""
    best = dict.fromkeys(lengths, float("inf"))
    async with PostgresStore(url, tenant="growth") as store:
        await store.sessions()
        store._loop_resources.indexer.wake = _skip_indexing  # type: ignore[method-assign]
        for length in lengths:
            await _build(store, length)
        for _ in range(ROUNDS):
            for length in lengths:
                best[length] = min(best[length], await time_awaitable(_appends(store, length)) / APPENDS)
    return Ratio(
        f"PostgreSQL append after {lengths[-1]:,} events",
        f"append to a session of {lengths[-1]:,} events / of {lengths[0]:,}",
        best[lengths[-1]] / best[lengths[0]],
        GROWTH,
        seconds={f"{length:,}": seconds for length, seconds in best.items()},
    )


def _skip_indexing() -> None:
    """Disables indexing: with a million events it would run through the whole measurement."""


def _appends(store: PostgresStore, length: int) -> Callable[[], Awaitable[None]]:
    async def write() -> None:
        for body in BODIES:
            await store.append(f"of {length}", [Event(new_id(), EventKind.MESSAGE, now(), body)])

    return write


async def _build(store: PostgresStore, length: int) -> None:
    await store.create(SessionRecord(f"of {length}", now()))
    for first in range(0, length, BATCH):
        bodies = (BODIES[place % APPENDS] for place in range(first, min(first + BATCH, length)))
        await store.append(f"of {length}", [Event(new_id(), EventKind.MESSAGE, now(), body) for body in bodies])
