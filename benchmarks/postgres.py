"""PostgreSQL: append and search."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import postgres_append, postgres_search, postgres_sessions
from benchmarks.measure import Options, Ratio


def run(options: Options) -> Iterator[Ratio]:
    yield from postgres_append.run(options)
    yield from postgres_sessions.run(options)
    yield from postgres_search.run(options)
