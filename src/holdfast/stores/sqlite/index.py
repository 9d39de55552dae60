"""The full-text index: filled after the commit, up to a watermark; a search scans newer events.

Tokens are trigrams, which find any part of any word in any script, and whole words, so that whole-word matches rank
first. Tags make conditions part of the same lookup: a common word in a small session is found as fast as a rare one.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter

import msgspec

from ...context.events import Event
from ...errors import CorruptLog
from ..search import (
    CALL_LOOKBACK,
    MAX_WORD_LENGTH,
    UNSEGMENTED_FROM,
    Query,
    SearchDocument,
    find_called_tool,
    normalize,
    search_document,
)
from .connection import begin, read_sql_file, split_statements, truncate_wal
from .rows import EVENT_COLUMNS, MAX_SEQ, event_from_row

GRAM_LENGTH = 3
MAX_QUERY_TOKENS = 48
"""Maximum number of terms in one query: the text of each candidate is checked anyway."""
_TAG_PREFIX, _WORD_END, _WHOLE_WORD_PREFIX = "\ue000", "\ue001", "\ue002"
"""Private-use characters: prefix of a tag, end of a word, prefix of a whole word."""
_CHUNK, _WORD = re.compile(r"\S+"), re.compile(r"[^\W_]+")
LARGE_TEXT, _PIECE, _RUNS = 2**18, 2**14, 2**10
"""Characters from which a text is large, and characters and words of a piece of it."""
_ASCII_ALNUM = re.compile(r"[a-z0-9]")


def index_tokens(normalized: str, tags: Iterable[str]) -> str:
    """Returns all tokens of an event, separated by spaces."""
    if len(normalized) < LARGE_TEXT:
        return " ".join({*tags, *_text_tokens(set(normalized.split()))})
    found = set(tags)
    for _ in _token_steps(normalized, found):
        pass
    return " ".join(found)


def _text_tokens(chunks: set[str]) -> set[str]:
    return set().union(
        *(_cached_chunk_tokens(chunk) if len(chunk) <= MAX_WORD_LENGTH else _chunk_tokens(chunk) for chunk in chunks)
    )


def _chunk_tokens(chunk: str) -> tuple[str, ...]:
    """Returns the trigrams, the end and the whole words of a run of non-space characters.

    Each character except a final ASCII letter or digit starts a token, so that a prefix query finds words shorter than
    three characters.
    """
    ended = chunk + _WORD_END
    grams = map("".join, zip(ended, ended[1:], ended[2:], strict=False))
    last = () if len(chunk) > 1 and _ASCII_ALNUM.fullmatch(chunk[-1]) else (chunk[-1] + _WORD_END,)
    return (*grams, *last, *_whole_word_tokens(chunk))


def _token_steps(normalized: str, found: set[str]) -> Iterator[None]:
    """Adds the tokens of a large text piece by piece: a text without spaces alone may have millions."""
    done = 0
    for chunk in map(itemgetter(0), _CHUNK.finditer(normalized)):
        if len(chunk) <= _PIECE:
            found |= _text_tokens({chunk})
        else:
            ended = chunk + _WORD_END
            for at in range(0, len(ended), _PIECE):
                piece = ended[at : at + _PIECE + GRAM_LENGTH - 1]
                found.update(map("".join, zip(piece, piece[1:], piece[2:], strict=False)))
                yield
            for number, run in enumerate(map(itemgetter(0), _WORD.finditer(chunk))):
                found.update(_whole_word_tokens(run))
                if number % _RUNS == 0:
                    yield
            if not _ASCII_ALNUM.fullmatch(chunk[-1]):
                found.add(chunk[-1] + _WORD_END)
        if done < (done := done + len(chunk)) // _PIECE * _PIECE:
            yield


_cached_chunk_tokens = lru_cache(maxsize=50_000)(_chunk_tokens)


def _whole_word_tokens(chunk: str) -> list[str]:
    return [
        _WHOLE_WORD_PREFIX + run
        for run in _WORD.findall(chunk)
        if len(run) <= MAX_WORD_LENGTH and max(run) < UNSEGMENTED_FROM
    ]


def tag_token(kind: str, value: object) -> str:
    """Returns the token of a condition; `kind` tells a role from a tool of the same name."""
    return _TAG_PREFIX + kind + hashlib.blake2b(str(value).encode(), digest_size=6).hexdigest()


def whole_word_terms(query: Query) -> list[str]:
    """Returns the FTS5 terms that match every word as a whole word; empty if the words have no boundaries."""
    if not query.has_word_boundaries:
        return []
    found = dict.fromkeys(token for word in query.words for token in _whole_word_tokens(word))
    return [quote_term(token) for token in found][:MAX_QUERY_TOKENS]


def substring_terms(query: Query) -> list[str]:
    """Returns the FTS5 terms that match every word anywhere; empty if only a scan can tell."""
    grams = [word[at : at + GRAM_LENGTH] for word in query.words for at in range(len(word) - GRAM_LENGTH + 1)]
    if grams:
        return [quote_term(gram) for gram in _sample_grams(list(dict.fromkeys(grams)))]
    return [f"{quote_term(word)}*" for word in query.words if not _ASCII_ALNUM.fullmatch(word)][:MAX_QUERY_TOKENS]


def _sample_grams(grams: Sequence[str]) -> Sequence[str]:
    step = -(-len(grams) // MAX_QUERY_TOKENS)
    return grams[::step]


def or_terms(terms: Sequence[str]) -> str:
    return f"({' OR '.join(terms)})" if len(terms) > 1 else terms[0]


def quote_term(token: str) -> str:
    """Quotes a token for FTS5."""
    return '"' + token.replace('"', '""') + '"'


Row = tuple[object, ...]
INDEX_VERSION = 2
"""Increase it when `search_document`, `normalize` or the tokens change: the index is then rebuilt."""
BATCH_EVENTS = 400
"""Events indexed in one transaction."""
BATCH_SECONDS = 0.02
"""How long one transaction may hold the write lock."""
BLOCK_ROWS = 1024
"""Rows that share one entry in the table of time spans."""
_INDEXED_FIELDS = ", ".join(f"e.{name}" for name in EVENT_COLUMNS.split(", "))
_SELECT_INDEXED = (
    f"SELECT {_INDEXED_FIELDS}, e.row, e.session, s.owner FROM events AS e JOIN sessions AS s ON s.key = e.session "  # noqa: S608
)
_UNINDEXED_EVENTS = _SELECT_INDEXED + "WHERE e.row > ? AND e.row <= ? ORDER BY e.row LIMIT ?"
_EVENT_BY_ROW = _SELECT_INDEXED + "WHERE e.row = ?"
_FIRST_RESERVED = "SELECT min(value) FROM meta WHERE name > 'copies to ' AND name < 'copies to!'"
"""Rows after it are still being filled by a deletion."""
_GET_META = "SELECT value FROM meta WHERE name = ?"
_SET_META = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_END_ERASURE = "UPDATE meta SET value = 0 WHERE name = 'scrub' AND value = ?"
_HAS_INDEX = "SELECT 1 FROM sqlite_schema WHERE name = 'search'"
_ADD_TOKENS = "INSERT INTO search (rowid, text) VALUES (?, ?)"
_DELETE_TOKENS = "INSERT INTO search (search, rowid, text) VALUES ('delete', ?, ?)"
_MERGE_SEGMENTS = "INSERT INTO search (search, rank) VALUES ('merge', ?)"
_MERGE_PAGES = 500
"""Pages of the index that one step merges."""
_LAST_ROW = "SELECT coalesce(max(row), 0) FROM events"
_EXTEND_SPAN = """
INSERT INTO spans (block, first, last) VALUES (?1, ?2, ?2)
ON CONFLICT (block) DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)
"""
_BLOCKS_IN_RANGE = (
    "SELECT min(block), max(block) FROM spans WHERE (?1 IS NULL OR last >= ?1) AND (?2 IS NULL OR first <= ?2)"
)
_EVENTS_WITH_CALL = f"""
SELECT {EVENT_COLUMNS} FROM events
WHERE session = ?1 AND lane = ?2 AND seq < ?3 AND seq >= ?4 AND instr(body, ?5) ORDER BY seq DESC
"""  # noqa: S608


def create_index(connection: sqlite3.Connection) -> bool:
    """Creates the index, or rebuilds one of another version; False if this SQLite lacks FTS5."""
    try:
        if not _index_is_current(connection):
            begin(connection)
            if not _index_is_current(connection):  # another process may have created it
                _create_index_tables(connection)
            connection.execute("COMMIT")
    except sqlite3.OperationalError:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return False
    return True


def _index_is_current(connection: sqlite3.Connection) -> bool:
    return _get_meta(connection, "reading") == INDEX_VERSION and connection.execute(_HAS_INDEX).fetchone() is not None


def _create_index_tables(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE IF EXISTS search")
    connection.execute("DROP TABLE IF EXISTS spans")
    for statement in split_statements(read_sql_file("search.sql")):
        connection.execute(statement)
    connection.execute(_SET_META, ("watermark", 0))
    connection.execute(_SET_META, ("reading", INDEX_VERSION))


def index_usable(connection: sqlite3.Connection) -> bool:
    """Whether an index of this version exists and SQLite can read it."""
    try:
        connection.execute("SELECT rowid FROM search LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return _get_meta(connection, "reading") == INDEX_VERSION


def index_watermark(connection: sqlite3.Connection) -> int:
    """Returns the last row that is in the index."""
    return _get_meta(connection, "watermark")


def unindexed_rows(connection: sqlite3.Connection) -> int:
    """Returns approximately how many rows are not in the index yet."""
    return int(connection.execute(_LAST_ROW).fetchone()[0]) - index_watermark(connection)


def rows_in_time_range(connection: sqlite3.Connection, since: str | None, until: str | None) -> tuple[int, int]:
    """Returns the first and last indexed row of a time range; (1, 0) if there are none."""
    if since is None and until is None:
        return 0, index_watermark(connection)
    first, last = connection.execute(_BLOCKS_IN_RANGE, (since, until)).fetchone()
    return (
        (1, 0)
        if first is None
        else (first * BLOCK_ROWS, min(last * BLOCK_ROWS + BLOCK_ROWS - 1, index_watermark(connection)))
    )


class LargeEvent:
    """The tokens of the next event, if it is large: made without the write lock, piece by piece."""

    def __init__(self) -> None:
        self.tokens: dict[Row, str] = {}
        """By its row: an event that is rewritten meanwhile is another."""
        self._row: Row = ()
        self._found: set[str] = set()
        self._after = 0
        self._steps: Iterator[None] | None = None

    def prepare(self, connection: sqlite3.Connection) -> bool:
        """Works for a moment; False when the tokens are made, or not needed."""
        if not index_usable(connection):
            return False
        at, until = index_watermark(connection), time.monotonic() + BATCH_SECONDS
        if self._steps is None or self._after != at:
            row = connection.execute(_UNINDEXED_EVENTS, (at, MAX_SEQ, 1)).fetchone()
            if row is None or not _is_large(row) or row in self.tokens:
                return False
            normalized, tags = _event_text(connection, row)
            self._row, self._found, self._after = row, set(tags), at
            self._steps = _token_steps(normalized, self._found)
        for _ in self._steps:
            if time.monotonic() > until:
                return True
        self.tokens, self._steps = {self._row: " ".join(self._found)}, None
        self._row, self._found = (), set()
        return False


def _is_large(row: Row) -> bool:
    return any(isinstance(field, str | bytes) and len(field) >= LARGE_TEXT for field in row)


def fill_index(connection: sqlite3.Connection, batch: int | None = None, large: LargeEvent | None = None) -> bool:
    """Indexes the next batch; if there is none, erases removed text step by step. True if there may be more to do."""
    if large is not None and large.prepare(connection):
        return True
    prepared = {} if large is None else large.tokens
    begin(connection)
    if not index_usable(connection):
        connection.execute("COMMIT")
        return erase_removed_text(connection)
    at, until = index_watermark(connection), time.monotonic() + BATCH_SECONDS
    times: list[tuple[int, object]] = []
    (end,) = connection.execute(_FIRST_RESERVED).fetchone()
    bounds = (at, MAX_SEQ if end is None else end, BATCH_EVENTS if batch is None else batch)
    rows = connection.execute(_UNINDEXED_EVENTS, bounds).fetchall()
    for row in rows:
        if times and large is not None and _is_large(row):
            break  # the next step prepares it
        tokens, at = prepared.pop(row, "") or _event_tokens(connection, row), row[-3]
        connection.execute(_ADD_TOKENS, (at, tokens))
        times.append((at // BLOCK_ROWS, row[2]))
        if batch is None and time.monotonic() > until:
            break
    if rows:
        connection.executemany(_EXTEND_SPAN, times)
        connection.execute(_SET_META, ("watermark", at))
    connection.execute("COMMIT")
    return bool(rows) or erase_removed_text(connection)


_ERASED, _REQUESTED, _MERGING, _MERGED = range(4)
"""States of an erasure, stored under "scrub"."""


def erase_removed_text(connection: sqlite3.Connection) -> bool:
    """Takes one step to erase the bytes of removed text; True if there are more.

    Merges the index, then truncates the write-ahead log. Outside a transaction. If another process reads for too long,
    the erasure stays requested.
    """
    begin(connection)
    state = _get_meta(connection, "scrub")
    if merging := state in (_REQUESTED, _MERGING) and index_usable(connection):
        before = connection.total_changes
        pages = -_MERGE_PAGES if state == _REQUESTED else _MERGE_PAGES  # negative: all segments are merged into one
        connection.execute(_MERGE_SEGMENTS, (pages,))
        done = state == _MERGING and connection.total_changes - before < 2
        connection.execute(_SET_META, ("scrub", _MERGED if done else _MERGING))
    connection.execute("COMMIT")
    if not merging and state and truncate_wal(connection):
        begin(connection)
        connection.execute(_END_ERASURE, (state,))
        connection.execute("COMMIT")
    return merging


def erasure_is_due(connection: sqlite3.Connection) -> bool:
    """Whether removed text may still be in the files."""
    return _get_meta(connection, "scrub") != _ERASED


def request_erasure(connection: sqlite3.Connection) -> None:
    """Notes that removed text is still in the files, for this process or the next that is idle."""
    connection.execute(_SET_META, ("scrub", _REQUESTED))


def reindex_event(connection: sqlite3.Connection, row: int, new: str) -> None:
    """Replaces the tokens of an event; must run before its body is replaced by `new`."""
    if not _begin_removal(connection) or row > index_watermark(connection):
        return
    old = connection.execute(_EVENT_BY_ROW, (row,)).fetchone()
    connection.execute(_DELETE_TOKENS, (row, _event_tokens(connection, old)))
    connection.execute(_ADD_TOKENS, (row, _event_tokens(connection, (*old[:3], new, *old[4:]))))


def begin_removal(connection: sqlite3.Connection) -> int:
    """Schedules the erasure of events that are about to be deleted; returns the last row that is in the index."""
    return index_watermark(connection) if _begin_removal(connection) else 0


def unindex_event(connection: sqlite3.Connection, row: int) -> None:
    """Removes an event from the index; must run before its row is deleted."""
    connection.execute(
        _DELETE_TOKENS, (row, _event_tokens(connection, connection.execute(_EVENT_BY_ROW, (row,)).fetchone()))
    )


def rewind_watermark(connection: sqlite3.Connection) -> None:
    """Lowers the watermark to the last row, because SQLite reuses row numbers after a deletion."""
    last = connection.execute(_LAST_ROW).fetchone()[0]
    if last < index_watermark(connection):
        connection.execute(_SET_META, ("watermark", last))


def _begin_removal(connection: sqlite3.Connection) -> bool:
    """Schedules scrubbing; returns False without a usable index, which is then marked for a rebuild."""
    request_erasure(connection)
    if index_usable(connection):
        return True
    if connection.execute(_HAS_INDEX).fetchone():
        connection.execute(_SET_META, ("reading", 0))
    return False


def _get_meta(connection: sqlite3.Connection, name: str) -> int:
    row = connection.execute(_GET_META, (name,)).fetchone()
    return int(row[0]) if row else 0


def _event_tokens(connection: sqlite3.Connection, row: Row) -> str:
    return index_tokens(*_event_text(connection, row))


def _event_text(connection: sqlite3.Connection, row: Row) -> tuple[str, list[str]]:
    """Returns text and tags of an event; an unreadable one has only its session's tag (`verify` reports it)."""
    session, owner = row[-2], row[-1]
    try:
        event = event_from_row(row)
        document = search_document(event)
    except CorruptLog:
        return "", [tag_token("s", session)]
    tags = [
        tag_token("s", session),
        tag_token("k", event.kind),
        tag_token("l", event.lane or ""),
        tag_token("r", document.role),
    ]
    tags += [tag_token("t", name) for name in _tool_names(connection, session, event, document)]
    if owner is not None:
        tags.append(tag_token("o", owner))
    return normalize(document.text), tags


def _tool_names(connection: sqlite3.Connection, session: object, event: Event, document: SearchDocument) -> set[str]:
    called = (
        find_called_tool(events_with_call(connection, session, event, call_id), call_id)
        for call_id in document.unnamed_results
    )
    return {*document.tools, *filter(None, called)}


def events_with_call(connection: sqlite3.Connection, session: object, event: Event, call_id: str) -> list[Event]:
    """Returns events shortly before this one in its lane that contain this call id, nearest first."""
    encoded = msgspec.json.encode(call_id).decode()
    where = (session, event.lane or "", event.seq, event.seq - CALL_LOOKBACK, encoded)
    return [event_from_row(row) for row in connection.execute(_EVENTS_WITH_CALL, where)]
