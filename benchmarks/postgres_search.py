"""Finding the best ten of a million events in PostgreSQL: with the index, and with LIKE over every row.

The events and the queries are those of the SQLite benchmark. Every query is checked to use the word index.
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

from benchmarks.measure import Options, Ratio
from benchmarks.postgres_server import empty_database
from benchmarks.search import (
    COMMON,
    EVENTS,
    LIMIT,
    PAIRS,
    PARTS,
    PLANTED,
    QUICK,
    RARE,
    SESSION,
    QueryKind,
    _row,
    _texts,
    time_queries,
)
from holdfast.context.events import SessionRecord, now
from holdfast.stores import PostgresStore, Where
from holdfast.stores.postgres import index, search
from holdfast.stores.postgres.fts_tokens import build_tsquery, condition_terms

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
        QueryKind("rare word", RARE),
        QueryKind("common word", COMMON),
        QueryKind("two words", PAIRS),
        QueryKind("part of a word", PARTS, None),
        QueryKind("common word until the first evening", COMMON, until="2026-01-01T18"),
        QueryKind(f"common word in a session of {SESSION:,}", COMMON, None, session=size // SESSION // 2),
    )
    found = []
    async with empty_database() as url, PostgresStore(url, migrate=True) as store:
        connection = await asyncpg.connect(url, command_timeout=3600)
        await _build(store, connection, size)
        await _check_index_is_used(connection)
        for kind in kinds:
            ours, scan = await time_queries(store, kind), await _scan(connection, kind)
            found.append(
                Ratio(
                    f"PostgreSQL search {size:,}, {kind.name}",
                    f"LIKE over every candidate row / search, best {LIMIT}",
                    median(scan) / median(ours),
                    None if options.quick else kind.aim,
                    "at least",
                    {"median": median(ours), "p95": ours[int(len(ours) * 0.95)], "LIKE": median(scan)},
                )
            )
        await connection.close()
    return found


async def _scan(connection: Any, kind: QueryKind) -> list[float]:
    """The same without a word index: to find the best ten, every row must be read."""
    times = []
    key = None if kind.session is None else kind.session + 1
    for query in kind.queries[:3]:
        first, second = (*(f"%{word}%" for word in query.split()), "%")[:2]
        started = time.perf_counter()
        await connection.fetch(_LIKE, first, second, key, kind.until, LIMIT)
        times.append(time.perf_counter() - started)
    return times


async def _check_index_is_used(connection: Any) -> None:
    """Checks the generic plans of both queries."""
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    tsquery = build_tsquery(["'the'"], condition_terms(Where(), [], None, ""), ["b1"])
    for name, values, used in (
        ("edge", f"$q${tsquery}$q$, 0, 9, 10", ("search_by_words",)),
        ("found", f"'', {'NULL, ' * 8}$q${tsquery}$q$, 0, 9", ("search_by_words", "events_pkey")),
    ):
        await connection.execute(f"PREPARE {name} AS {search._SEARCH_SQL[name]}")
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE {name} ({values})"))
        assert all(index in plan for index in used), plan


@asynccontextmanager
async def _without_index(connection: Any) -> AsyncIterator[None]:
    """Drops the index and rebuilds it at the end, which is faster than filling it."""
    statement = await connection.fetchval("SELECT pg_get_indexdef('holdfast.search_by_words'::regclass)")
    await connection.execute("DROP INDEX holdfast.search_by_words")
    yield
    await connection.execute("SET maintenance_work_mem = '1GB'")
    await connection.execute(statement)


async def _build(store: PostgresStore, connection: Any, size: int) -> None:
    """Bulk load: sessions through the store, events and index directly."""
    for number in range(size // SESSION):
        await store.create(SessionRecord(f"s{number}", now()))
    rng, texts = random.Random(7), _texts()
    planted = {place: word for word in RARE for place in rng.sample(range(size), PLANTED)}
    async with _without_index(connection):
        for start in range(0, size, PIECE):
            rows: list[Any] = [_row(rng, texts, place, planted.get(place)) for place in range(start, start + PIECE)]
            records = [(key, seq, 1, id, "", kind, when, "", body) for key, seq, id, kind, when, body in rows]
            await connection.copy_records_to_table(
                "events", schema_name="holdfast", records=records, columns=_EVENT_COLUMNS
            )
            names = ("id", "kind", "time", "body", "lane", "seq", "epoch", "v", "session", "owner")
            values = ((id, kind, when, body, "", seq, None, 1, key, None) for key, seq, id, kind, when, body in rows)
            await index.index_events(connection, "", [_Row(zip(names, each, strict=True)) for each in values])
    await connection.execute("UPDATE holdfast.sessions SET version = $1", SESSION)
    await connection.execute("VACUUM ANALYZE")


class _Row(dict[str, Any]):
    """What a query would have given: by name, and by place."""

    def __getitem__(self, key: Any) -> Any:
        return list(self.values())[key] if isinstance(key, int) else super().__getitem__(key)
