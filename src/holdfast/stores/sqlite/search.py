"""Full-text search: the index up to its watermark, and a scan of what was appended since."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ...events import Event, LaneTip, root_key
from ..admission import NO_TIP
from ..log import Hit
from ..query import Asked, Query
from ..sieve import Catch, Sieve
from . import index
from .rows import COLUMNS, Row, chain_of, event_of, lanes_of
from .tokens import any_of, part_terms, quoted, tag, whole_terms

_FIELDS = ", ".join(f"e.{name}" for name in COLUMNS.split(", "))
_FOUND = f"SELECT {_FIELDS}, e.session, s.id, l.start FROM "  # noqa: S608
_JOINED = """
CROSS JOIN sessions AS s ON s.key = e.session
LEFT JOIN lanes AS l ON l.session = e.session AND l.lane = e.lane
WHERE (?4 IS NULL OR s.owner = ?4)
  AND (?5 IS NULL OR EXISTS (
      SELECT 1 FROM json_each(?5)
      WHERE json_extract(value, '$[0]') = e.session AND json_extract(value, '$[1]') >= e.seq))
  AND (?6 IS NULL OR e.kind IN (SELECT value FROM json_each(?6)))
  AND (?7 IS NULL OR e.lane = ?7)
  AND (?8 IS NULL OR e.time >= ?8)
  AND (?9 IS NULL OR e.time <= ?9)
"""
_MATCH = f"""
{_FOUND} search CROSS JOIN events AS e ON e.row = search.rowid {_JOINED}
AND search MATCH ?1 AND search.rowid BETWEEN ?2 AND ?3 ORDER BY search.rowid DESC
"""
_SCAN = f"{_FOUND} events AS e {_JOINED} AND ?1 IS NULL AND e.row BETWEEN ?2 AND ?3 ORDER BY e.row DESC"
_OWNER = "SELECT owner FROM sessions WHERE id = ?"
_LAST = 2**63 - 1


def search(connection: sqlite3.Connection, asked: Asked) -> tuple[list[Hit], int]:
    """The hits, and how many rows had to be looked at one by one since the index has not come to them."""
    looking = _Search(connection, asked)
    if not looking.possible:
        return [], 0
    return looking.hits(), looking.tail


class _Search:
    """One search on one snapshot of the database."""

    def __init__(self, connection: sqlite3.Connection, asked: Asked) -> None:
        self._connection = connection
        self._asked = asked
        self._query = Query(asked.query)
        self._sieve = Sieve(self._query, asked.where, self._earlier)
        self._keys: dict[str, int] = {}
        """The key of each session whose events were looked at, by id."""
        self._chain: list[tuple[int, int]] | None = None
        self._tips: dict[str, LaneTip] | None = None
        self._owner = asked.owner
        self.possible = bool(self._query.words) and asked.limit > 0
        if asked.session_id is not None:
            self._chain = chain_of(connection, asked.session_id)
            self._tips = dict(lanes_of(connection, self._chain[0][0]))
            if asked.owner is not None and connection.execute(_OWNER, (asked.session_id,)).fetchone()[0] != asked.owner:
                self.possible = False
            self._owner = None
        self._indexed = index.usable(connection)
        self.tail = index.behind(connection) if self._indexed else 0

    def hits(self) -> list[Hit]:
        """Whole words first, if these are words; what is newer than the index is looked at once for both."""
        if not self._indexed:
            return self._sieve.page(list(self._caught(_SCAN, None, 0, _LAST)), *self._page)
        first, last = index.rows_between(self._connection, self._asked.where.since, self._asked.where.until)
        watermark = index.watermark(self._connection)
        new = list(self._caught(_SCAN, None, watermark + 1, _LAST))
        whole, parts = whole_terms(self._query), part_terms(self._query)
        tiers: list[Iterator[Catch]] = []
        if whole:
            tiers.append(self._tier(new, whole, first, last, whole=True))
        tiers.append(self._tier(new, parts, first, last, whole=False))
        return self._sieve.hits(tiers, *self._page)

    @property
    def _page(self) -> tuple[int, int]:
        return self._asked.limit, self._asked.offset

    def _tier(self, new: Sequence[Catch], terms: Sequence[str], first: int, last: int, whole: bool) -> Iterator[Catch]:
        """What is caught whole, or not whole, the newest first."""
        yield from (caught for caught in new if caught.match.whole is whole)
        expression = self._expression(terms)
        rows = self._caught(_MATCH if expression else _SCAN, expression, first, last)
        yield from (caught for caught in rows if caught.match.whole is whole)

    def _expression(self, terms: Sequence[str]) -> str | None:
        """The words and the conditions in the words of FTS5; None if there is nothing to look up."""
        where, chain = self._asked.where, self._chain
        needed = list(terms)
        for kind, values in (
            ("s", [key for key, _ in chain] if chain else []),
            ("o", [self._owner] if self._owner is not None else []),
            ("k", where.kinds),
            ("r", where.roles),
            ("t", where.tools),
            ("l", [where.lane] if where.lane is not None else []),
        ):
            if values:
                needed.append(any_of([quoted(tag(kind, value)) for value in values]))
        return " AND ".join(needed) or None

    def _caught(self, statement: str, expression: str | None, first: int, last: int) -> Iterator[Catch]:
        where = self._asked.where
        values: tuple[Any, ...] = (
            expression,
            first,
            last,
            self._owner,
            None if self._chain is None else msgspec.json.encode(self._chain).decode(),
            msgspec.json.encode(where.kinds).decode() if where.kinds else None,
            where.lane,
            where.since,
            where.until,
        )
        for row in self._connection.execute(statement, values):
            if not self._query.cannot_be_in(row[3]) and (caught := self._catch(row)) is not None:
                yield caught

    def _catch(self, row: Row) -> Catch | None:
        key, name, start = row[-3:]
        event = event_of(row)
        if self._asked.session_id is not None:
            name = self._asked.session_id
        if self._tips is not None:
            start = self._tips.get(root_key(event.lane), NO_TIP).start
        self._keys.setdefault(name, key)
        return self._sieve.catch(name, event, start or 0)

    def _earlier(self, session_id: str, event: Event, call_id: str) -> Iterator[Event]:
        keys = [key for key, _ in self._chain] if self._chain else [self._keys[session_id]]
        for key in keys:
            yield from index.earlier(self._connection, key, event, call_id)
