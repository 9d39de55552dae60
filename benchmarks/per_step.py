"""One agent step (append, then evaluate the trigger) in a short and a very long session."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from pathlib import Path

from benchmarks.measure import Options, Ratio, time_awaitable
from benchmarks.mixes import Json, agent, chat
from holdfast import MemoryStore, SessionService, SlidingWindow, SQLiteStore, TokenCount
from holdfast.stores import Log

SIZES = (100, 10_000, 100_000)
AIM = 1.3
STEPS = 20
"""Steps in one timing."""
ROUNDS = 30
BATCH = 1_000


def run(options: Options) -> Iterator[Ratio]:
    sizes = SIZES[:2] if options.quick else SIZES
    yield from asyncio.run(_compare("memory", MemoryStore(), sizes))
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(Path(folder) / "s.db", synchronous="NORMAL")
        yield from asyncio.run(_compare("SQLite", store, sizes))


async def _compare(name: str, store: Log, sizes: tuple[int, ...]) -> list[Ratio]:
    async with SessionService(store, estimator="chars/4") as service:
        for size in sizes[1:]:
            await _build(service, str(size), size)
        for turn in range(ROUNDS):  # one per round, since it grows
            await _build(service, f"{sizes[0]}-{turn}", sizes[0])
        best = dict.fromkeys(sizes, float("inf"))
        steps = cycle(agent(1_000))
        for turn in range(ROUNDS):
            for size in sizes:
                session = f"{size}-{turn}" if size == sizes[0] else str(size)
                best[size] = min(best[size], await time_awaitable(partial(_steps, service, session, steps)))
    shortest = best[sizes[0]]
    return [
        Ratio(
            f"step at {size:,} messages, {name}",
            f"append + trigger at {size:,} / at {sizes[0]:,} live messages",
            best[size] / shortest,
            AIM,
            seconds={f"at {size}": best[size] / STEPS, f"at {sizes[0]}": shortest / STEPS},
        )
        for size in sizes[1:]
    ]


async def _build(service: SessionService, session: str, size: int) -> None:
    await service.create(id=session, format="openai-chat")
    messages = chat(size)
    for start in range(0, size, BATCH):
        await service.append(session, messages[start : start + BATCH])


async def _steps(service: SessionService, session: str, messages: Iterator[Json]) -> None:
    for _ in range(STEPS):
        await service.append(session, next(messages))
        result = await service.compact(session, TokenCount(10**9), SlidingWindow(20))
        assert result.outcome == "not_needed"
