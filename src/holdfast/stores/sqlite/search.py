"""Full-text search: the index up to its watermark, and a scan of newer events."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ...context.events import Event, LaneTip, lane_key
from ..append import NO_TIP
from ..base import Hit
from ..search import EventFilter, Match, Query, SearchRequest
from . import index
from .index import or_terms, quote_term, substring_terms, tag_token, whole_word_terms
from .rows import EVENT_COLUMNS, Row, event_from_row, lane_tips, session_chain

_FOUND_FIELDS = ", ".join(f"e.{name}" for name in EVENT_COLUMNS.split(", "))
_SELECT_FOUND = f"SELECT {_FOUND_FIELDS}, e.session, s.id, l.start FROM "  # noqa: S608
_SEARCH_CONDITIONS = """
CROSS JOIN sessions AS s ON s.key = e.session
LEFT JOIN lanes AS l ON l.session = e.session AND l.lane = e.lane
WHERE (?4 IS NULL OR s.owner = ?4) AND (?5 IS NOT NULL OR typeof(s.id) = 'text')
  AND (?5 IS NULL OR EXISTS (
      SELECT 1 FROM json_each(?5)
      WHERE json_extract(value, '$[0]') = e.session AND json_extract(value, '$[1]') >= e.seq))
  AND (?6 IS NULL OR e.kind IN (SELECT value FROM json_each(?6)))
  AND (?7 IS NULL OR e.lane = ?7)
  AND (?8 IS NULL OR e.time >= ?8)
  AND (?9 IS NULL OR e.time <= ?9)
"""
_SEARCH_INDEX = f"""
{_SELECT_FOUND} search CROSS JOIN events AS e ON e.row = search.rowid {_SEARCH_CONDITIONS}
AND search MATCH ?1 AND search.rowid BETWEEN ?2 AND ?3 ORDER BY search.rowid DESC
"""
_SCAN_EVENTS = (
    f"{_SELECT_FOUND} events AS e {_SEARCH_CONDITIONS} AND ?1 IS NULL AND e.row BETWEEN ?2 AND ?3 ORDER BY e.row DESC"
)
_SESSION_OWNER = "SELECT owner FROM sessions WHERE id = ?"
_MAX_ROW = 2**63 - 1


def search_events(connection: sqlite3.Connection, request: SearchRequest) -> tuple[list[Hit], int]:
    """Returns the hits, and the number of rows that are not indexed yet."""
    run = _SearchRun(connection, request)
    if not run.possible:
        return [], 0
    return run.hits(), run.unindexed


class _SearchRun:
    """One search on one snapshot of the database."""

    def __init__(self, connection: sqlite3.Connection, request: SearchRequest) -> None:
        self._connection = connection
        self._request = request
        self._query = Query(request.query)
        self._filter = EventFilter(self._query, request.where, self._events_before)
        self._keys: dict[str, int] = {}
        """Key of each session of which events were read, by id."""
        self._chain: list[tuple[int, int]] | None = None
        self._tips: dict[str, LaneTip] | None = None
        self._owner = request.owner
        self.possible = bool(self._query.words) and request.limit > 0
        if request.session_id is not None:
            self._chain = session_chain(connection, request.session_id)
            self._tips = dict(lane_tips(connection, self._chain[0][0]))
            if (
                request.owner is not None
                and connection.execute(_SESSION_OWNER, (request.session_id,)).fetchone()[0] != request.owner
            ):
                self.possible = False
            self._owner = None
        self._indexed = index.index_usable(connection)
        self.unindexed = index.unindexed_rows(connection) if self._indexed else 0

    def hits(self) -> list[Hit]:
        """Returns a page: whole-word matches first, if possible; scans unindexed rows once for both tiers."""
        if not self._indexed:
            return self._filter.page(list(self._matches(_SCAN_EVENTS, None, 0, _MAX_ROW)), *self._page)
        first, last = index.rows_in_time_range(self._connection, self._request.where.since, self._request.where.until)
        watermark = index.index_watermark(self._connection)
        new = list(self._matches(_SCAN_EVENTS, None, watermark + 1, _MAX_ROW))
        whole, parts = whole_word_terms(self._query), substring_terms(self._query)
        tiers: list[Iterator[Match]] = []
        if whole:
            tiers.append(self._tier(new, whole, first, last, whole=True))
        tiers.append(self._tier(new, parts, first, last, whole=False))
        return self._filter.page_of_tiers(tiers, *self._page)

    @property
    def _page(self) -> tuple[int, int]:
        return self._request.limit, self._request.offset

    def _tier(self, new: Sequence[Match], terms: Sequence[str], first: int, last: int, whole: bool) -> Iterator[Match]:
        """Yields matches with or without whole words, newest first."""
        yield from (match for match in new if match.score.whole_words is whole)
        expression = self._expression(terms)
        rows = self._matches(_SEARCH_INDEX if expression else _SCAN_EVENTS, expression, first, last)
        yield from (match for match in rows if match.score.whole_words is whole)

    def _expression(self, terms: Sequence[str]) -> str | None:
        """Returns the FTS5 expression of terms and conditions; None if there is none."""
        where, chain = self._request.where, self._chain
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
                needed.append(or_terms([quote_term(tag_token(kind, value)) for value in values]))
        return " AND ".join(needed) or None

    def _matches(self, statement: str, expression: str | None, first: int, last: int) -> Iterator[Match]:
        where = self._request.where
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
            if not self._query.cannot_match(row[3]) and (match := self._match(row)) is not None:
                yield match

    def _match(self, row: Row) -> Match | None:
        key, name, start = row[-3:]
        event = event_from_row(row)
        if self._request.session_id is not None:
            name = self._request.session_id
        if self._tips is not None:
            start = self._tips.get(lane_key(event.lane), NO_TIP).start
        self._keys.setdefault(name, key)
        return self._filter.match(name, event, start or 0)

    def _events_before(self, session_id: str, event: Event, call_id: str) -> Iterator[Event]:
        keys = [key for key, _ in self._chain] if self._chain else [self._keys[session_id]]
        for key in keys:
            yield from index.events_with_call(self._connection, key, event, call_id)
