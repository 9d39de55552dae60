"""Full-text search: the index up to its watermark, and a scan of what was appended since."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import msgspec

from ..log import Hit
from ..ranking import Ranking
from . import index
from .rows import COLUMNS, Row, chain_of, event_of

SHORT = 3
"""Words below this many characters hold no trigram."""
MOST_TERMS = 300
"""Trigrams that a short word may begin; a word with more of them is common enough to be found by scanning."""

_FIELDS = ", ".join(f"e.{name}" for name in COLUMNS.split(", "))
_WHERE = """
JOIN sessions AS s ON s.key = e.session
WHERE (?2 IS NULL OR s.owner = ?2)
  AND (?3 IS NULL OR EXISTS (
      SELECT 1 FROM json_each(?3)
      WHERE json_extract(value, '$[0]') = e.session AND json_extract(value, '$[1]') >= e.seq))
"""
_MATCH = f"""
SELECT {_FIELDS}, s.id FROM search JOIN events AS e ON e.row = search.rowid {_WHERE}
  AND search MATCH ?1 ORDER BY search.rank
"""  # noqa: S608
_SCAN = f"SELECT {_FIELDS}, s.id FROM events AS e {_WHERE} AND e.row > ?1 ORDER BY e.row DESC"  # noqa: S608
_TERMS = "SELECT term FROM temp.terms WHERE term >= ? AND term < ? LIMIT ?"
_VOCABULARY = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.terms USING fts5vocab ('main', 'search', 'row')"
_OWNER = "SELECT owner FROM sessions WHERE id = ?"


def search(
    connection: sqlite3.Connection, query: str, session_id: str | None, owner: str | None, limit: int
) -> list[Hit]:
    ranking = Ranking(query, limit)
    chain = None
    if session_id is not None:
        chain = msgspec.json.encode(chain_of(connection, session_id)).decode()
        if owner is not None and connection.execute(_OWNER, (session_id,)).fetchone()[0] != owner:
            return []
        owner = None
    if not ranking.words or not ranking.limit:
        return []
    matches = _matches(connection, ranking.words)
    newer_than = 0
    if matches is not None:
        newer_than = index.watermark(connection)
        _take(ranking, connection.execute(_MATCH, (matches, owner, chain)), session_id)
    scan = connection.execute(_SCAN, (newer_than, owner, chain))
    _take(ranking, scan, session_id, everything=matches is not None)
    return ranking.hits()


def _take(ranking: Ranking, rows: Iterator[Row], session_id: str | None, everything: bool = False) -> None:
    """Consider rows until enough matched: they come best or newest first."""
    matched = 0
    for row in rows:
        matched += ranking.consider(session_id or row[-1], event_of(row))
        if matched >= ranking.limit and not everything:
            return


def _matches(connection: sqlite3.Connection, words: tuple[str, ...]) -> str | None:
    """The words as an FTS5 expression in which everything is quoted; None if only a scan can tell."""
    if not index.usable(connection):
        return None
    long = [_quoted(word) for word in words if len(word) >= SHORT]
    if long:
        return " AND ".join(long)
    connection.execute(_VOCABULARY)
    beginnings = []
    for word in words:
        terms = connection.execute(_TERMS, (word, word + chr(0x10FFFF), MOST_TERMS + 1)).fetchall()
        if len(terms) > MOST_TERMS:
            return None
        beginnings.append(" OR ".join(_quoted(term) for (term,) in terms) or _quoted("\n\n\n"))
    return " AND ".join(f"({beginning})" for beginning in beginnings)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
