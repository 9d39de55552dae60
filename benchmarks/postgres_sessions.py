"""Fifty sessions append to one PostgreSQL at once, from a growing number of processes until throughput stops rising.

The server is pinned to one core and the client processes to another, which shows which of the two is saturated. The
measurement includes everything an append causes, also indexing.
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

from benchmarks.measure import Options, Ratio
from benchmarks.postgres_append import BODIES, CONNECTIONS
from benchmarks.postgres_server import empty_database
from holdfast.context.events import Event, EventKind, SessionRecord, new_id, now
from holdfast.stores import PostgresStore

SESSIONS = 50
MAX_PROCESSES = 8
SECONDS, QUICK_SECONDS, WARM_UP = 10.0, 3.0, 3.0
MIN_SPEEDUP = 1.1
"""Minimum throughput gain to try more processes."""
START_TIMEOUT = 60.0
"""Seconds for a process to start, in case it died."""
LOOPS = {"asyncio": None, "uvloop": 1.2}
"""Event loops, and the aim for each."""


class Load(msgspec.Struct, frozen=True):
    """Throughput and core utilisation under one load."""

    appends: float
    """Per second."""
    server: float
    """Utilisation of the server's core, 0 to 1."""
    users: float
    """Utilisation of the clients' core, 0 to 1."""


def run(options: Options) -> Iterator[Ratio]:
    if "HOLDFAST_TEST_POSTGRES" in os.environ or not hasattr(os, "sched_setaffinity"):
        print("PostgreSQL with fifty sessions: skipped, it must pin its own server to a core.", file=sys.stderr)
        return
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        print("PostgreSQL with fifty sessions: skipped, it needs two cores.", file=sys.stderr)
        return
    for loop, aim in LOOPS.items():
        if importlib.util.find_spec(loop) is None:
            print(f"PostgreSQL with fifty sessions: skipped, pip install {loop}.", file=sys.stderr)
            continue
        loads = asyncio.run(_load_until_saturated(loop, cores, QUICK_SECONDS if options.quick else SECONDS))
        full = loads[max(loads)]
        yield Ratio(
            f"PostgreSQL under {SESSIONS} sessions, {loop}",
            f"utilisation of the server's core ({full.server:.2f}) / of the clients' core ({full.users:.2f}); "
            "times are per append, by number of processes",
            full.server / full.users,
            aim,
            "at least",
            {f"from {processes}": 1 / load.appends for processes, load in loads.items()},
        )


async def _load_until_saturated(loop: str, cores: list[int], seconds: float) -> dict[int, Load]:
    """Loads from one, two, four processes …, until more add nothing."""
    loads: dict[int, Load] = {}
    best, processes = 0.0, 1
    async with empty_database() as url:
        async with PostgresStore(url, migrate=True) as store:
            await store.sessions()
        await _give_core(url, cores[0])
        while processes <= MAX_PROCESSES:
            loads[processes] = load = _run_load(url, loop, processes, cores, seconds)
            if load.appends < best * MIN_SPEEDUP:
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


def _run_load(url: str, loop: str, processes: int, cores: list[int], seconds: float) -> Load:
    spawning = multiprocessing.get_context("spawn")
    together = spawning.Barrier(processes + 1)
    users, counts = [], []
    for number in range(processes):
        count, sender = spawning.Pipe(duplex=False)
        given = (url, loop, cores[1], f"{loop}-{processes}-{number}", SESSIONS // processes, seconds, together, sender)
        users.append(spawning.Process(target=_run_application, args=given))
        users[-1].start()
        sender.close()  # so that the receiver sees the end of the pipe
        counts.append(count)
    together.wait(START_TIMEOUT)
    time.sleep(WARM_UP)
    before = _core_seconds(cores)
    time.sleep(seconds)
    server, others = (after - earlier for after, earlier in zip(_core_seconds(cores), before, strict=True))
    appends = sum(count.recv() for count in counts)
    for user in users:
        user.join()
    return Load(appends / seconds, server / seconds, others / seconds)


def _core_seconds(cores: list[int]) -> list[float]:
    """Busy seconds of each core."""
    all_cores = psutil.cpu_times(percpu=True)
    return [float(t.user + t.nice + t.system + t.irq + t.softirq) for t in (all_cores[core] for core in cores)]


def _run_application(
    url: str, loop: str, core: int, tenant: str, sessions: int, seconds: float, together: Barrier, sender: Connection
) -> None:
    """One application process: sends the number of appends acknowledged after the warm-up."""
    os.sched_setaffinity(0, {core})

    async def append() -> None:
        async with PostgresStore(url, tenant=tenant, max_connections=CONNECTIONS) as store:
            for number in range(sessions):
                await store.create(SessionRecord(str(number), now()))
            together.wait(START_TIMEOUT)
            start = time.perf_counter() + WARM_UP
            counts = await asyncio.gather(*(_write(store, number, start, seconds) for number in range(sessions)))
            sender.send(sum(counts))

    importlib.import_module(loop).run(append())


async def _write(store: PostgresStore, number: int, start: float, seconds: float) -> int:
    done, place = 0, number
    while (since := time.perf_counter() - start) < seconds:
        await store.append(str(number), [Event(new_id(), EventKind.MESSAGE, now(), BODIES[place % len(BODIES)])])
        done += since >= 0
        place += SESSIONS
    return done
