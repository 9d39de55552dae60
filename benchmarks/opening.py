"""Opening a session with a long history and a short one, with the same live window."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from holdfast import SessionService, SlidingWindow, SQLiteStore, always
from holdfast.events import Event, Kind, new_id, now

from .measure import Options, Ratio, awaited
from .mixes import chat

SHORT, LONG, QUICK = 1_000, 1_000_000, 100_000
WINDOW = 200
RHYTHM = 1_000
"""Events between two compactions, in both sessions."""
AIM = 1.5
ROUNDS = 40


def run(options: Options) -> Iterator[Ratio]:
    long = QUICK if options.quick else LONG
    with tempfile.TemporaryDirectory() as folder:
        short_time, long_time = asyncio.run(_compare(Path(folder) / "s.db", long))
    yield Ratio(
        f"opening {long:,} events",
        f"context of a session of {long:,} events / of {SHORT:,}, both with {WINDOW} live, SQLite",
        long_time / short_time,
        AIM,
        seconds={f"{long} events": long_time, f"{SHORT} events": short_time},
    )


async def _compare(path: Path, long: int) -> tuple[float, float]:
    sizes = (SHORT, long)
    async with SessionService(SQLiteStore(path, synchronous="NORMAL"), estimator="chars/4") as service:
        for size in sizes:
            await _build(service, str(size), size)
    best = dict.fromkeys(sizes, float("inf"))
    async with SQLiteStore(path) as store:
        for _ in range(ROUNDS):
            for size in sizes:
                fresh = SessionService(store, estimator="chars/4")
                best[size] = min(best[size], await awaited(partial(fresh.context, str(size))))
                assert len(await fresh.context(str(size))) == WINDOW
    return best[SHORT], best[long]


async def _build(service: SessionService, session: str, size: int) -> None:
    """Straight into the store, batch by batch, with a compaction through the service after each."""
    await service.create(id=session)
    messages = chat(RHYTHM)
    for _ in range(size // RHYTHM):
        bodies = [{"message": m, "units": 2 - (-len(m["content"]) // 4), "counter": "chars/4"} for m in messages]
        await service.store.append(session, [Event(new_id(), Kind.MESSAGE, now(), body) for body in bodies])
        done = await service.compact(session, always, SlidingWindow(WINDOW))
        assert done.outcome == "compacted", done
