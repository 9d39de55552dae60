"""Fifty sessions that append to one PostgreSQL at once, from more and more processes, until more add nothing.

The server has a core for itself and the processes that use it have another: then it is plain to see which of the two
is full. All that an append leads to is in it, the filling of the search index too.
"""

from __future__ import annotations

import asyncio
import importlib.util
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

import asyncpg
import msgspec
import psutil

from holdfast.events import Event, Kind, SessionRecord, new_id, now
from holdfast.stores import PostgresStore

from .measure import Options, Ratio
from .postgres_append import BODIES, CONNECTIONS
from .postgres_server import empty_database

SESSIONS = 50
MOST = 8
SECONDS, QUICK_SECONDS, WARM_UP = 10.0, 3.0, 3.0
ENOUGH = 1.1
"""More processes are tried as long as they raise the throughput by this factor."""
PATIENCE = 60.0
"""Seconds that a process may take to start; one that died would never be ready."""
LOOPS = {"asyncio": None, "uvloop": 1.2}
"""Whose event loop runs the appends, and what is promised with it."""


class Load(msgspec.Struct, frozen=True):
    """What was seen under one load."""

    appends: float
    """A second."""
    server: float
    """How busy the server's core was, of 1."""
    users: float
    """How busy the core of all the others was."""


def run(options: Options) -> Iterator[Ratio]:
    if "HOLDFAST_TEST_POSTGRES" in os.environ or not hasattr(os, "sched_setaffinity"):
        print("PostgreSQL with fifty sessions: skipped, it gives cores to a server of its own.", file=sys.stderr)
        return
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        print("PostgreSQL with fifty sessions: skipped, it needs two cores.", file=sys.stderr)
        return
    for loop, aim in LOOPS.items():
        if importlib.util.find_spec(loop) is None:
            print(f"PostgreSQL with fifty sessions: skipped, pip install {loop}.", file=sys.stderr)
            continue
        loads = asyncio.run(_until_full(loop, cores, QUICK_SECONDS if options.quick else SECONDS))
        full = loads[max(loads)]
        yield Ratio(
            f"PostgreSQL under {SESSIONS} sessions, {loop}",
            f"how busy the server's core is ({full.server:.2f}) / that of Holdfast and its driver ({full.users:.2f}); "
            "times are of one append, from so many processes",
            full.server / full.users,
            aim,
            "at least",
            {f"from {processes}": 1 / load.appends for processes, load in loads.items()},
        )


async def _until_full(loop: str, cores: list[int], seconds: float) -> dict[int, Load]:
    """What was seen from one, two, four processes …, until twice as many did no more."""
    loads: dict[int, Load] = {}
    best, processes = 0.0, 1
    async with empty_database() as url:
        async with PostgresStore(url, migrate=True) as store:
            await store.sessions()
        await _give_core(url, cores[0])
        while processes <= MOST:
            loads[processes] = load = _loaded(url, loop, processes, cores, seconds)
            if load.appends < best * ENOUGH:
                break
            best, processes = load.appends, processes * 2
    return loads


async def _give_core(url: str, core: int) -> None:
    connection = await asyncpg.connect(url)
    server = psutil.Process(await connection.fetchval("SELECT pg_backend_pid()")).parent()
    await connection.close()
    for process in (server, *server.children()):
        try:
            process.cpu_affinity([core])
        except psutil.NoSuchProcess:
            continue


def _loaded(url: str, loop: str, processes: int, cores: list[int], seconds: float) -> Load:
    spawning = multiprocessing.get_context("spawn")
    together = spawning.Barrier(processes + 1)
    users, counts = [], []
    for number in range(processes):
        count, tell = spawning.Pipe(duplex=False)
        given = (url, loop, cores[1], f"{loop}-{processes}-{number}", SESSIONS // processes, seconds, together, tell)
        users.append(spawning.Process(target=_use, args=given))
        users[-1].start()
        tell.close()  # so that whoever listens hears of its end
        counts.append(count)
    together.wait(PATIENCE)
    time.sleep(WARM_UP)
    before = _busy(cores)
    time.sleep(seconds)
    server, others = (after - earlier for after, earlier in zip(_busy(cores), before, strict=True))
    appends = sum(count.recv() for count in counts)
    for user in users:
        user.join()
    return Load(appends / seconds, server / seconds, others / seconds)


def _busy(cores: list[int]) -> list[float]:
    """Seconds that each of these cores has worked."""
    all_cores = psutil.cpu_times(percpu=True)
    return [float(t.user + t.nice + t.system + t.irq + t.softirq) for t in (all_cores[core] for core in cores)]


def _use(
    url: str, loop: str, core: int, tenant: str, sessions: int, seconds: float, together: Barrier, tell: Connection
) -> None:
    """One application with its sessions: it tells how many appends were acknowledged in the time that counts."""
    os.sched_setaffinity(0, {core})

    async def append() -> None:
        async with PostgresStore(url, tenant=tenant, most=CONNECTIONS) as store:
            for number in range(sessions):
                await store.create(SessionRecord(str(number), now()))
            together.wait(PATIENCE)
            start = time.perf_counter() + WARM_UP
            counts = await asyncio.gather(*(_write(store, number, start, seconds) for number in range(sessions)))
            tell.send(sum(counts))

    importlib.import_module(loop).run(append())


async def _write(store: PostgresStore, number: int, start: float, seconds: float) -> int:
    done, place = 0, number
    while (since := time.perf_counter() - start) < seconds:
        await store.append(str(number), [Event(new_id(), Kind.MESSAGE, now(), BODIES[place % len(BODIES)])])
        done += since >= 0
        place += SESSIONS
    return done
