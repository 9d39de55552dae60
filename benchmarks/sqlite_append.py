"""Appends to SQLite through the store, compared with the bare driver."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec

from benchmarks.measure import Options, Ratio, seconds, time_awaitable
from benchmarks.mixes import chat
from holdfast import SQLiteStore
from holdfast.context.events import Event, EventKind, SessionRecord, new_id, now

WRITERS = 50
APPENDS = 500
"""In one timing."""
ROUNDS = 16
"""Many short timings: the disk's commit time varies by a factor of twenty."""
AIM = 0.6

_SET_VERSION = "UPDATE sessions SET version = ? WHERE key = ? AND version = ?"
_INSERT = (
    "INSERT INTO events (session, seq, id, lane, kind, time, v, digest, body) VALUES (?, ?, ?, '', ?, ?, 1, '', ?)"
)
_BODIES = [{"message": message} for message in chat(APPENDS)]


def run(options: Options) -> Iterator[Ratio]:
    for synchronous in ("FULL", "NORMAL"):
        for writers, aim in ((WRITERS, AIM), (1, None)):
            ours, bare = asyncio.run(_compare(synchronous, writers))
            yield Ratio(
                f"SQLite append, {writers} writer{'s' * (writers > 1)}, {synchronous}",
                "appends a second of the store / of the bare driver, one commit each, same synchronous",
                bare / ours,
                aim,
                "at least",
                seconds={"store": ours / APPENDS, "driver": bare / APPENDS},
            )


async def _compare(synchronous: Literal["FULL", "NORMAL"], writers: int) -> tuple[float, float]:
    ours = bare = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        connection = _open(Path(folder) / "bare.db", synchronous, writers)
        async with SQLiteStore(Path(folder) / "ours.db", synchronous=synchronous) as store:
            for number in range(writers):
                await store.create(SessionRecord(str(number), now()))
            for turn in range(ROUNDS):
                ours = min(ours, await time_awaitable(partial(_append_concurrently, store, writers)))
                bare = min(bare, seconds(partial(_insert_directly, connection, writers, turn)))
        connection.close()
    return ours, bare


async def _append_concurrently(store: SQLiteStore, writers: int) -> None:
    async def write(number: int) -> None:
        for body in _BODIES[number::writers]:
            await store.append(str(number), [Event(new_id(), EventKind.MESSAGE, now(), body)])

    await asyncio.gather(*map(write, range(writers)))


def _open(path: Path, synchronous: str, writers: int) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    schema = resources.files("holdfast.stores.sqlite") / "migrations" / "0001.sql"
    connection.executescript(schema.read_text(encoding="utf-8"))
    for number in range(writers):
        row = (number, str(number), now())
        connection.execute("INSERT INTO sessions (key, id, version, parent_seq, created) VALUES (?, ?, 0, 0, ?)", row)
    return connection


def _insert_directly(connection: sqlite3.Connection, writers: int, turn: int) -> None:
    """Writers take turns on one connection: the fastest a driver can be with one commit each."""
    for place, body in enumerate(_BODIES, turn * APPENDS):
        session, version = place % writers, place // writers
        connection.execute("BEGIN IMMEDIATE")
        assert connection.execute(_SET_VERSION, (version + 1, session, version)).rowcount == 1
        text = msgspec.json.encode(body).decode()
        connection.execute(_INSERT, (session, version + 1, new_id(), EventKind.MESSAGE, now(), text))
        connection.execute("COMMIT")
