"""Opening a session with a long history, compared with a short one with the same live window."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import Options, Ratio, time_awaitable
from benchmarks.mixes import chat
from holdfast import SessionService, SlidingWindow, SQLiteStore
from holdfast.context.events import Event, EventKind, new_id, now
from holdfast.triggers import always

SHORT, LONG, QUICK = 1_000, 1_000_000, 100_000
AT_ONCE = 100_000
"""Events of a session compacted only once: its checkpoint lists all archived ids."""
WINDOW = 200
RHYTHM = 1_000
"""Events between two compactions, in the other sessions."""
AIM = 1.5
ROUNDS = 40


def run(options: Options) -> Iterator[Ratio]:
    long = QUICK if options.quick else LONG
    with tempfile.TemporaryDirectory() as folder:
        times = asyncio.run(_open_each(Path(folder) / "s.db", long))
    both = f"both with {WINDOW} live, SQLite"
    yield Ratio(
        f"opening {long:,} events",
        f"context of a session of {long:,} events / of {SHORT:,}, {both}",
        times["long"] / times["short"],
        AIM,
        seconds=times,
    )
    yield Ratio(
        f"opening {AT_ONCE:,} events compacted at once",
        f"context of a session with a single compaction, of {AT_ONCE:,} events / of {SHORT:,}, {both}",
        times["at once"] / times["short"],
        seconds=times,
    )


async def _open_each(path: Path, long: int) -> dict[str, float]:
    async with SessionService(SQLiteStore(path, synchronous="NORMAL"), estimator="chars/4") as service:
        await _build(service, "short", SHORT, RHYTHM)
        await _build(service, "long", long, RHYTHM)
        await _build(service, "at once", AT_ONCE, AT_ONCE)
    best = dict.fromkeys(("short", "long", "at once"), float("inf"))
    async with SQLiteStore(path) as store:
        for _ in range(ROUNDS):
            for session in best:
                fresh = SessionService(store, estimator="chars/4")
                best[session] = min(best[session], await time_awaitable(partial(fresh.context, session)))
                assert len(await fresh.context(session)) == WINDOW
    return best


async def _build(service: SessionService, session: str, size: int, rhythm: int) -> None:
    """Appends directly to the store in batches, with compactions through the service in between."""
    await service.create(id=session)
    messages = chat(RHYTHM)
    for written in range(RHYTHM, size + 1, RHYTHM):
        bodies = [{"message": m, "units": 2 - (-len(m["content"]) // 4), "counter": "chars/4"} for m in messages]
        await service.store.append(session, [Event(new_id(), EventKind.MESSAGE, now(), body) for body in bodies])
        if written % rhythm == 0:
            done = await service.compact(session, always, SlidingWindow(WINDOW))
            assert done.outcome == "compacted", done
