"""Appending to PostgreSQL through the store, and inserting the same rows with asyncpg alone.

The store's append moves the session's version by compare-and-set, looks at its lane, and tells the search index; the
bare insert does nothing of it. Both are durable: the server syncs before it answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import asyncpg
import msgspec

from holdfast.events import Event, Kind, SessionRecord, new_id, now
from holdfast.stores import PostgresStore

from .measure import Options, Ratio, awaited
from .mixes import chat
from .postgres_server import empty_database

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
        found = [await _compared(url, 1, AIM), await _compared(url, WRITERS, None)]
        return [*found, await _growth(url, QUICK_LENGTHS if options.quick else LENGTHS)]


async def _compared(url: str, writers: int, aim: float | None) -> Ratio:
    ours = bare = float("inf")
    async with PostgresStore(url, migrate=True, most=CONNECTIONS, tenant=f"{writers}") as store:
        for number in range(writers):
            await store.create(SessionRecord(str(number), now()))
        hands = [await asyncpg.connect(url) for _ in range(min(writers, CONNECTIONS))]
        await hands[0].execute("DROP TABLE IF EXISTS bare")
        await hands[0].execute(_BARE)
        for turn in range(ROUNDS):
            ours = min(ours, await awaited(partial(append_together, store, writers)))
            await settled(hands[0])
            bare = min(bare, await awaited(partial(_by_hand, hands, turn)))
        for hand in hands:
            await hand.close()
    return Ratio(
        f"PostgreSQL append, {writers} session{'s' * (writers > 1)}",
        f"appends a second of the store / of a bare asyncpg insert, {len(hands)} connection{'s' * (len(hands) > 1)}",
        bare / ours,
        aim,
        "at least",
        seconds={"store": ours / APPENDS, "driver": bare / APPENDS},
    )


async def settled(hand: Any) -> None:
    """The index is filled when it is quiet: not while something else is measured."""
    while await hand.fetchval("SELECT EXISTS (SELECT FROM holdfast.unindexed)"):
        await hand.execute("SELECT pg_sleep(0.05)")


async def append_together(store: PostgresStore, writers: int) -> None:
    async def write(number: int) -> None:
        for body in BODIES[number::writers]:
            await store.append(str(number), [Event(new_id(), Kind.MESSAGE, now(), body)])

    await asyncio.gather(*map(write, range(writers)))


async def _by_hand(hands: list[Any], turn: int) -> None:
    """As many at once as there are connections: more would only wait."""

    async def write(number: int, hand: Any) -> None:
        for place, body in enumerate(BODIES[number :: len(hands)], turn * APPENDS):
            text = msgspec.json.encode(body).decode()
            await hand.execute(_INSERT, number, place + 1, new_id(), Kind.MESSAGE, now(), text)

    await asyncio.gather(*(write(number, hand) for number, hand in enumerate(hands)))


async def _growth(url: str, lengths: tuple[int, ...]) -> Ratio:
    """What one append takes in sessions of several lengths, each in turn."""
    best = dict.fromkeys(lengths, float("inf"))
    async with PostgresStore(url, tenant="growth") as store:
        await store.sessions()
        store._station.filling.wake = _nothing  # type: ignore[method-assign]
        for length in lengths:
            await _build(store, length)
        for _ in range(ROUNDS):
            for length in lengths:
                best[length] = min(best[length], await awaited(_appends(store, length)) / APPENDS)
    return Ratio(
        f"PostgreSQL append after {lengths[-1]:,} events",
        f"append to a session of {lengths[-1]:,} events / of {lengths[0]:,}",
        best[lengths[-1]] / best[lengths[0]],
        GROWTH,
        seconds={f"{length:,}": seconds for length, seconds in best.items()},
    )


def _nothing() -> None:
    """The index is not filled here: with a million events, that would go on through all that is measured."""


def _appends(store: PostgresStore, length: int) -> Callable[[], Awaitable[None]]:
    async def write() -> None:
        for body in BODIES:
            await store.append(f"of {length}", [Event(new_id(), Kind.MESSAGE, now(), body)])

    return write


async def _build(store: PostgresStore, length: int) -> None:
    await store.create(SessionRecord(f"of {length}", now()))
    for first in range(0, length, BATCH):
        bodies = (BODIES[place % APPENDS] for place in range(first, min(first + BATCH, length)))
        await store.append(f"of {length}", [Event(new_id(), Kind.MESSAGE, now(), body) for body in bodies])
