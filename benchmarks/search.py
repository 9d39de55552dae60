"""Finding ten events of a million in SQLite, the best first: with the index, and with LIKE over every row.

The texts are pieces of the sessions that ship with the project, in sessions of a thousand events; a few
words that occur nowhere else are put in by hand. Each kind of query is asked with many different words.
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

from holdfast import SQLiteStore
from holdfast.events import Event, SessionRecord, now
from holdfast.examples import EXAMPLES, example_path
from holdfast.stores import Search, Where
from holdfast.stores.said import said_in
from holdfast.stores.sqlite import index
from holdfast.transcripts import read_transcript

from .measure import Options, Ratio

EVENTS, QUICK = 1_000_000, 50_000
SESSION = 1_000
"""Events of one session."""
PIECE = 5_000
LIMIT = 10
AIM = 5
RARE = ("quixotry", "zanzibar", "kumquat", "obelisk", "vellum", "yggdrasil", "xylem", "wyvern", "fjordside", "jacquard")
PLANTED = 5
"""Events that hold each of the rare words."""
COMMON = ("the", "import", "from", "return", "test", "line", "none", "self", "assert", "that")
PAIRS = ("the import", "from none", "return test", "booking berth", "tide harbour", "assert none", "error line")
PARTS = ("ering", "ation", "tionst", "sertin", "entere", "stringer", "nested_t", "restin", "reation", "interes")
"""Parts of words, of which each three letters are common: what an index of threes finds hardest."""

_INSERT = (
    "INSERT INTO events (session, seq, id, lane, kind, time, v, digest, body) VALUES (?, ?, ?, '', ?, ?, 1, '', ?)"
)
_LIKE = """
SELECT row, body FROM events
WHERE (?3 IS NULL OR session = ?3) AND (?4 IS NULL OR time <= ?4) AND body LIKE ?1 AND body LIKE ?2
ORDER BY length(body) LIMIT ?5
"""
_LIKE_IN_SESSION = _LIKE.replace("(?3 IS NULL OR session = ?3)", "session = ?3")
"""So that SQLite may use its index of sessions."""


class Kind(NamedTuple):
    """One kind of query, and what it is asked within."""

    name: str
    queries: tuple[str, ...]
    aim: float | None = AIM
    session: int | None = None
    until: str | None = None


def run(options: Options) -> Iterator[Ratio]:
    size = QUICK if options.quick else EVENTS
    kinds = (
        Kind("rare word", RARE),
        Kind("common word", COMMON),
        Kind("two words", PAIRS),
        Kind("part of a word", PARTS),
        Kind("common word until the first evening", COMMON, until="2026-01-01T18"),
        Kind(f"common word in a session of {SESSION:,}", COMMON, None, session=size // SESSION // 2),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "search.db"
        asyncio.run(_build(path, size))
        for kind in kinds:
            ours, scan = asyncio.run(_opened_and_timed(path, kind)), _scan(path, kind)
            yield Ratio(
                f"search {size:,}, {kind.name}",
                f"LIKE over every row that may be meant / search, best {LIMIT}",
                median(scan) / median(ours),
                None if options.quick else kind.aim,
                "at least",
                {"median": median(ours), "p95": ours[int(len(ours) * 0.95)], "LIKE": median(scan)},
            )


async def _opened_and_timed(path: Path, kind: Kind) -> list[float]:
    async with SQLiteStore(path) as store:
        return await timed(store, kind)


async def timed(store: Search, kind: Kind) -> list[float]:
    """The time of each query in turn, several times over, the shortest first."""
    times = []
    session_id = None if kind.session is None else f"s{kind.session}"
    await store.search("warm")
    for _ in range(5):
        for query in kind.queries:
            started = time.perf_counter()
            await store.search(query, session_id=session_id, where=Where(until=kind.until), limit=LIMIT)
            times.append(time.perf_counter() - started)
    return sorted(times)


def _scan(path: Path, kind: Kind) -> list[float]:
    """What the same would take without an index of words: to know the best ten, every row must be looked at."""
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
    """In bulk: sessions through the store, events and index by hand, many in one transaction."""
    texts = _texts()
    async with SQLiteStore(path, synchronous="NORMAL") as store:
        for number in range(size // SESSION):
            await store.create(SessionRecord(f"s{number}", now()))

        def fill(connection: sqlite3.Connection) -> None:
            chance = random.Random(7)
            connection.execute("COMMIT")
            planted = {place: word for word in RARE for place in chance.sample(range(size), PLANTED)}
            for start in range(0, size, PIECE):
                connection.execute("BEGIN")
                rows = [_row(chance, texts, place, planted.get(place)) for place in range(start, start + PIECE)]
                connection.executemany(_INSERT, rows)
                connection.execute("COMMIT")
                index.fill(connection, PIECE)
            connection.execute("BEGIN")

        await store._writer.run(fill)


def _row(chance: random.Random, texts: list[list[str]], place: int, planted: str | None) -> tuple[object, ...]:
    """One event: some lines of a text, at a time that goes on by ten seconds."""
    lines = chance.choice(texts)
    first = chance.randrange(len(lines))
    said = "\n".join(lines[first : first + 6])[:600] + (f" {planted}" if planted else "")
    body = {"message": {"role": "user" if place % 2 else "assistant", "content": said}}
    days, seconds = divmod(place * 10, 86_400)
    months, day = divmod(days, 28)
    when = f"2026-{months + 1:02d}-{day + 1:02d}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.000Z"
    session, seq = divmod(place, SESSION)
    return session + 1, seq + 1, f"e{place}", "message", when, msgspec.json.encode(body).decode()


def _texts() -> list[list[str]]:
    """What is said in the sessions that ship with the project, line by line."""
    texts = []
    for name in EXAMPLES:
        read = read_transcript(example_path(name))
        for entry in read.entries:
            event = Event("", "message", "", {"message": entry.message, "format": read.format})
            texts.append(said_in(event).text.splitlines() or [""])
    return texts
