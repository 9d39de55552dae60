"""Fifty sessions that append to one PostgreSQL at once, from more and more processes, until more add nothing.

Then the machine is full, and what matters is who fills it: a server that does the larger part of the work is the
limit, and Holdfast is not. The server shares the cores with the processes that use it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Barrier

import asyncpg
import psutil

from holdfast.events import SessionRecord, now
from holdfast.stores import PostgresStore

from .measure import Options, Ratio
from .postgres_append import APPENDS, CONNECTIONS, append_together
from .postgres_server import empty_database

SESSIONS = 50
MOST = 8
ROUNDS, QUICK_ROUNDS = 24, 8
ENOUGH = 1.1
"""More processes are tried as long as they raise the throughput by this factor."""


def run(options: Options) -> Iterator[Ratio]:
    if "HOLDFAST_TEST_POSTGRES" in os.environ:
        print("PostgreSQL with fifty sessions: skipped, it watches a server of its own.", file=sys.stderr)
        return
    yield asyncio.run(_until_full(QUICK_ROUNDS if options.quick else ROUNDS))


async def _until_full(rounds: int) -> Ratio:
    taken: dict[str, float] = {}
    best, processes, share = float("inf"), 1, 0.0
    async with empty_database() as url:
        async with PostgresStore(url, migrate=True) as store:
            await store.sessions()
        while processes <= MOST:
            seconds, share = await _appending(url, processes, rounds)
            taken[f"from {processes}"] = seconds
            if seconds * ENOUGH > best:
                break
            best, processes = seconds, processes * 2
    return Ratio(
        f"PostgreSQL under {SESSIONS} sessions, machine full",
        "CPU of the server / of Holdfast and its driver; times are of one append, from so many processes",
        share,
        1.0,
        "at least",
        taken,
    )


async def _appending(url: str, processes: int, rounds: int) -> tuple[float, float]:
    """Seconds an append, and what the server works for each second that its users work."""
    connection = await asyncpg.connect(url)
    server = psutil.Process(await connection.fetchval("SELECT pg_backend_pid()")).parent()
    await connection.close()
    spawning = multiprocessing.get_context("spawn")
    ready, done = spawning.Barrier(processes + 1), spawning.Barrier(processes + 1)
    users = [
        spawning.Process(target=_use, args=(url, f"{processes}-{number}", SESSIONS // processes, rounds, ready, done))
        for number in range(processes)
    ]
    for user in users:
        user.start()
    ready.wait()
    started, ours, theirs = time.perf_counter(), _cpu(users), _cpu([server, *server.children()])
    done.wait()
    spent = time.perf_counter() - started
    ours, theirs = _cpu(users) - ours, _cpu([server, *server.children()]) - theirs
    ready.wait()
    for user in users:
        user.join()
    return spent / (processes * rounds * APPENDS), theirs / ours


def _use(url: str, tenant: str, sessions: int, rounds: int, ready: Barrier, done: Barrier) -> None:
    """One application with its sessions; its connections stay open while they are looked at."""

    async def append() -> None:
        async with PostgresStore(url, tenant=tenant, most=CONNECTIONS) as store:
            for number in range(sessions):
                await store.create(SessionRecord(str(number), now()))
            await append_together(store, sessions)
            ready.wait()
            for _ in range(rounds):
                await append_together(store, sessions)
            done.wait()
            ready.wait()

    asyncio.run(append())


def _cpu(processes: list[psutil.Process]) -> float:
    times = [psutil.Process(process.pid).cpu_times() for process in processes]
    return float(sum(each.user + each.system for each in times))
