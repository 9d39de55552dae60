"""How long an append to another session waits while a large session with a fork is deleted."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio

from benchmarks.measure import Options, Ratio
from benchmarks.mixes import chat
from benchmarks.postgres_server import empty_database
from holdfast import JSONLStore, PostgresStore, SQLiteStore
from holdfast.context.events import Event, EventKind, SessionRecord, new_id, now

EVENTS, QUICK_EVENTS = 1_000_000, 20_000
BATCH = 1_000
PAUSE = 0.01
"""Seconds between two appends to the other session."""
BASELINE_SECONDS = 10.0
AIM = 0.1
"""Seconds that an append may wait."""


def run(options: Options) -> Iterator[Ratio]:
    events = QUICK_EVENTS if options.quick else EVENTS
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        yield _ratio("SQLite", events, asyncio.run(_delete(events, lambda: SQLiteStore(place / "s.db"))))
        yield _ratio("JSONL", events, asyncio.run(_delete(events, lambda: JSONLStore(place / "sessions"))))
    yield _ratio("PostgreSQL", events, asyncio.run(_delete_in_postgres(events)))


def _ratio(name: str, events: int, measured: tuple[float, float, float]) -> Ratio:
    longest, baseline, took = measured
    return Ratio(
        f"{name}, deleting {events:,} events with a fork",
        f"longest append to another session meanwhile, as a share of {AIM:g} s",
        longest / AIM,
        1.0,
        seconds={"longest": longest, "without a deletion": baseline, "deletion": took},
    )


async def _delete_in_postgres(events: int) -> tuple[float, float, float]:
    async with empty_database() as url:
        return await _delete(events, lambda: PostgresStore(url, migrate=True))


async def _delete(events: int, open_store: Callable[[], Any]) -> tuple[float, float, float]:
    bodies = [{"message": message} for message in chat(BATCH)]
    async with open_store() as store:
        await store.create(SessionRecord("large", now()))
        await store.create(SessionRecord("other", now()))
        for _ in range(events // BATCH):
            await store.append("large", [Event(new_id(), EventKind.MESSAGE, now(), body) for body in bodies])
        half = events // 2
        await store.create(SessionRecord("fork", now(), parent="large", parent_seq=half, version=half))
    async with open_store() as store, open_store() as second:
        baseline = await _longest_append([store, second], lambda: anyio.sleep(BASELINE_SECONDS))
        started = time.perf_counter()
        longest = await _longest_append([store, second], lambda: store.delete("large"))
        return longest, baseline, time.perf_counter() - started


async def _longest_append(stores: list[Any], work: Callable[[], Any]) -> float:
    """Appends to another session by turns, through this store and another, until the work is done."""
    longest, turn = 0.0, 0
    async with anyio.create_task_group() as group:
        done = anyio.Event()

        async def watch() -> None:
            await work()
            done.set()

        group.start_soon(watch)
        while not done.is_set():
            event = Event(new_id(), EventKind.MESSAGE, now(), {"message": {"role": "user", "content": "go on"}})
            started = time.perf_counter()
            await stores[turn % len(stores)].append("other", [event])
            turn += 1
            longest = max(longest, time.perf_counter() - started)
            await anyio.sleep(PAUSE)
    return longest
