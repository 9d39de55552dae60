"""Finding ten events of a million in PostgreSQL, the best first: with the index, and with LIKE over every row.

The events and the queries are those of the SQLite benchmark. Every look-up is checked to use the index of words.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from statistics import median
from typing import Any

import asyncpg

from holdfast.events import SessionRecord, now
from holdfast.stores import PostgresStore, Where
from holdfast.stores.postgres import index, search
from holdfast.stores.postgres.words import condition_terms, expression

from .measure import Options, Ratio
from .postgres_server import empty_database
from .search import COMMON, EVENTS, LIMIT, PAIRS, PARTS, PLANTED, QUICK, RARE, SESSION, Kind, _row, _texts, timed

PIECE = 5_000
_LIKE = """
SELECT id, body FROM holdfast.events
WHERE ($3::bigint IS NULL OR session = $3) AND ($4::text IS NULL OR time <= $4) AND lower(body) LIKE $1
  AND lower(body) LIKE $2
ORDER BY length(body) LIMIT $5
"""
_EVENT_COLUMNS = ("session", "seq", "v", "id", "lane", "kind", "time", "digest", "body")


def run(options: Options) -> Iterator[Ratio]:
    yield from asyncio.run(_all(options))


async def _all(options: Options) -> list[Ratio]:
    size = QUICK if options.quick else EVENTS
    kinds = (
        Kind("rare word", RARE),
        Kind("common word", COMMON),
        Kind("two words", PAIRS),
        Kind("part of a word", PARTS, None),
        Kind("common word until the first evening", COMMON, until="2026-01-01T18"),
        Kind(f"common word in a session of {SESSION:,}", COMMON, None, session=size // SESSION // 2),
    )
    found = []
    async with empty_database() as url, PostgresStore(url, migrate=True) as store:
        connection = await asyncpg.connect(url, command_timeout=3600)
        await _build(store, connection, size)
        await _must_use_the_index(connection)
        for kind in kinds:
            ours, scan = await timed(store, kind), await _scan(connection, kind)
            found.append(
                Ratio(
                    f"PostgreSQL search {size:,}, {kind.name}",
                    f"LIKE over every row that may be meant / search, best {LIMIT}",
                    median(scan) / median(ours),
                    None if options.quick else kind.aim,
                    "at least",
                    {"median": median(ours), "p95": ours[int(len(ours) * 0.95)], "LIKE": median(scan)},
                )
            )
        await connection.close()
    return found


async def _scan(connection: Any, kind: Kind) -> list[float]:
    """What the same would take without an index of words: to know the best ten, every row must be looked at."""
    times = []
    key = None if kind.session is None else kind.session + 1
    for query in kind.queries[:3]:
        first, second = (*(f"%{word}%" for word in query.split()), "%")[:2]
        started = time.perf_counter()
        await connection.fetch(_LIKE, first, second, key, kind.until, LIMIT)
        times.append(time.perf_counter() - started)
    return times


async def _must_use_the_index(connection: Any) -> None:
    """Both look-ups, as they are planned for any words at all, and the events that they lead to."""
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    asked = expression(["'the'"], condition_terms(Where(), [], None, ""), ["b1"])
    for name, values, used in (
        ("edge", f"$q${asked}$q$, 0, 9, 10", ("search_by_words",)),
        ("found", f"'', {'NULL, ' * 8}$q${asked}$q$, 0, 9", ("search_by_words", "events_pkey")),
    ):
        await connection.execute(f"PREPARE {name} AS {search._SQL[name]}")
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE {name} ({values})"))
        assert all(index in plan for index in used), plan


@asynccontextmanager
async def _without_index(connection: Any) -> AsyncIterator[None]:
    """An index is built faster than it is filled."""
    statement = await connection.fetchval("SELECT pg_get_indexdef('holdfast.search_by_words'::regclass)")
    await connection.execute("DROP INDEX holdfast.search_by_words")
    yield
    await connection.execute("SET maintenance_work_mem = '1GB'")
    await connection.execute(statement)


async def _build(store: PostgresStore, connection: Any, size: int) -> None:
    """In bulk: sessions through the store, events and index by hand, many in one transaction."""
    for number in range(size // SESSION):
        await store.create(SessionRecord(f"s{number}", now()))
    chance, said = random.Random(7), _texts()
    planted = {place: word for word in RARE for place in chance.sample(range(size), PLANTED)}
    async with _without_index(connection):
        for start in range(0, size, PIECE):
            rows: list[Any] = [_row(chance, said, place, planted.get(place)) for place in range(start, start + PIECE)]
            records = [(key, seq, 1, id, "", kind, when, "", body) for key, seq, id, kind, when, body in rows]
            await connection.copy_records_to_table(
                "events", schema_name="holdfast", records=records, columns=_EVENT_COLUMNS
            )
            names = ("id", "kind", "time", "body", "lane", "seq", "epoch", "v", "session", "owner")
            values = ((id, kind, when, body, "", seq, None, 1, key, None) for key, seq, id, kind, when, body in rows)
            await index.put(connection, "", [_Row(zip(names, each, strict=True)) for each in values])
    await connection.execute("UPDATE holdfast.sessions SET version = $1", SESSION)
    await connection.execute("VACUUM ANALYZE")


class _Row(dict[str, Any]):
    """What a query would have given: by name, and by place."""

    def __getitem__(self, key: Any) -> Any:
        return list(self.values())[key] if isinstance(key, int) else super().__getitem__(key)
