"""Finding the best ten of a million events in SQLite: with the index, and with LIKE over every row.

The texts are pieces of the bundled sessions, in sessions of a thousand events, with a few planted words that occur
nowhere else. Each kind of query is run with many different words.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from benchmarks.measure import Options, Ratio
from holdfast import SQLiteStore
from holdfast.context.events import Event, SessionRecord, now
from holdfast.stores import Search, Where
from holdfast.stores.search import search_document
from holdfast.stores.sqlite import index
from holdfast.transcripts import read_transcript
from holdfast.transcripts.examples import EXAMPLES, example_path

EVENTS, QUICK = 1_000_000, 50_000
SESSION = 1_000
"""Events per session."""
PIECE = 5_000
LIMIT = 10
AIM = 5
RARE = ("quixotry", "zanzibar", "kumquat", "obelisk", "vellum", "yggdrasil", "xylem", "wyvern", "fjordside", "jacquard")
PLANTED = 5
"""Events that contain each rare word."""
COMMON = ("the", "import", "from", "return", "test", "line", "none", "self", "assert", "that")
PAIRS = ("the import", "from none", "return test", "booking berth", "tide harbour", "assert none", "error line")
PARTS = ("ering", "ation", "tionst", "sertin", "entere", "stringer", "nested_t", "restin", "reation", "interes")
"""Parts of words made of common trigrams: the hardest case for a trigram index."""

_INSERT = (
    "INSERT INTO events (session, seq, id, lane, kind, time, v, digest, body) VALUES (?, ?, ?, '', ?, ?, 1, '', ?)"
)
_LIKE = """
SELECT row, body FROM events
WHERE (?3 IS NULL OR session = ?3) AND (?4 IS NULL OR time <= ?4) AND body LIKE ?1 AND body LIKE ?2
ORDER BY length(body) LIMIT ?5
"""
_LIKE_IN_SESSION = _LIKE.replace("(?3 IS NULL OR session = ?3)", "session = ?3")
"""Lets SQLite use its session index."""


class QueryKind(NamedTuple):
    """One kind of query, with its filters."""

    name: str
    queries: tuple[str, ...]
    aim: float | None = AIM
    session: int | None = None
    until: str | None = None


def run(options: Options) -> Iterator[Ratio]:
    size = QUICK if options.quick else EVENTS
    kinds = (
        QueryKind("rare word", RARE),
        QueryKind("common word", COMMON),
        QueryKind("two words", PAIRS),
        QueryKind("part of a word", PARTS),
        QueryKind("common word until the first evening", COMMON, until="2026-01-01T18"),
        QueryKind(f"common word in a session of {SESSION:,}", COMMON, None, session=size // SESSION // 2),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "search.db"
        asyncio.run(_build(path, size))
        for kind in kinds:
            ours, scan = asyncio.run(_time_store(path, kind)), _scan(path, kind)
            yield Ratio(
                f"search {size:,}, {kind.name}",
                f"LIKE over every candidate row / search, best {LIMIT}",
                median(scan) / median(ours),
                None if options.quick else kind.aim,
                "at least",
                {"median": median(ours), "p95": ours[int(len(ours) * 0.95)], "LIKE": median(scan)},
            )


async def _time_store(path: Path, kind: QueryKind) -> list[float]:
    async with SQLiteStore(path) as store:
        return await time_queries(store, kind)


async def time_queries(store: Search, kind: QueryKind) -> list[float]:
    """Sorted times of all queries, several rounds."""
    times = []
    session_id = None if kind.session is None else f"s{kind.session}"
    await store.search("warm")
    for _ in range(5):
        for query in kind.queries:
            started = time.perf_counter()
            await store.search(query, session_id=session_id, where=Where(until=kind.until), limit=LIMIT)
            times.append(time.perf_counter() - started)
    return sorted(times)


def _scan(path: Path, kind: QueryKind) -> list[float]:
    """The same without a word index: to find the best ten, every row must be read."""
    times = []
    connection = sqlite3.connect(path)
    key = None if kind.session is None else kind.session + 1
    for query in kind.queries[:3]:
        first, second = (*(f"%{word}%" for word in query.split()), "%")[:2]
        started = time.perf_counter()
        statement = _LIKE if key is None else _LIKE_IN_SESSION
        connection.execute(statement, (first, second, key, kind.until, LIMIT)).fetchall()
        times.append(time.perf_counter() - started)
    connection.close()
    return times


async def _build(path: Path, size: int) -> None:
    """Bulk load: sessions through the store, events and index directly."""
    texts = _texts()
    async with SQLiteStore(path, synchronous="NORMAL") as store:
        for number in range(size // SESSION):
            await store.create(SessionRecord(f"s{number}", now()))

        def fill(connection: sqlite3.Connection) -> None:
            rng = random.Random(7)
            connection.execute("COMMIT")
            planted = {place: word for word in RARE for place in rng.sample(range(size), PLANTED)}
            for start in range(0, size, PIECE):
                connection.execute("BEGIN")
                rows = [_row(rng, texts, place, planted.get(place)) for place in range(start, start + PIECE)]
                connection.executemany(_INSERT, rows)
                connection.execute("COMMIT")
                index.fill_index(connection, PIECE)
            connection.execute("BEGIN")

        await store._writer.run(fill)


def _row(rng: random.Random, texts: list[list[str]], place: int, planted: str | None) -> tuple[object, ...]:
    """One event: some lines of a text, ten seconds after the previous one."""
    lines = rng.choice(texts)
    first = rng.randrange(len(lines))
    content = "\n".join(lines[first : first + 6])[:600] + (f" {planted}" if planted else "")
    body = {"message": {"role": "user" if place % 2 else "assistant", "content": content}}
    days, seconds = divmod(place * 10, 86_400)
    months, day = divmod(days, 28)
    when = f"2026-{months + 1:02d}-{day + 1:02d}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.000Z"
    session, seq = divmod(place, SESSION)
    return session + 1, seq + 1, f"e{place}", "message", when, msgspec.json.encode(body).decode()


def _texts() -> list[list[str]]:
    """Texts of the bundled sessions, as lines."""
    texts = []
    for name in EXAMPLES:
        transcript = read_transcript(example_path(name))
        for entry in transcript.entries:
            event = Event("", "message", "", {"message": entry.message, "format": transcript.format})
            texts.append(search_document(event).text.splitlines() or [""])
    return texts
