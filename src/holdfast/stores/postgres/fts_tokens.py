"""Tokens of the full-text index, and the tsquery expressions that look them up.

Words are indexed without stemming and stop words, like PostgreSQL's `simple` configuration, but split as in all our
stores. Scripts without spaces between words are indexed as character pairs. Tags make conditions part of the same
lookup: a common word in a small session is found as fast as a rare one. Values that nearly every event has (the root
lane, kind message) have no tag, since they would not narrow the search.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, pairwise

from ...context.events import Event, EventKind
from ..base import Where
from ..search import MAX_WORD_LENGTH, UNSEGMENTED_FROM, Query, SearchDocument, normalize

BLOCK_ROWS, GROUP_ROWS = 4_096, 262_144
"""Rows that share a block tag or a group tag: the newest are searched first, and are mostly enough."""
MAX_TOKEN_BYTES = 800_000
"""Maximum size of one event's tokens in a tsvector. Longer events are scanned in every search."""
_BYTES_PER_TOKEN = 8
"""Overhead of a token in a tsvector."""
_MAX_BYTES_PER_CHARACTER = 2 * 4 + _BYTES_PER_TOKEN
"""Maximum cost of a character: it forms a token with each of its neighbours."""
MIN_PREFIX_LENGTH = 3
"""Shorter prefixes match too many words to be looked up."""
_TAG_PREFIX = "\1"
"""Never part of a text, since control characters are normalised to spaces."""
_TRUNCATED_TAG = _TAG_PREFIX + "e"
_ASCII_TABLE = bytes(ord(chr(code).lower()) if chr(code).isalnum() and code < 128 else ord(" ") for code in range(256))
"""Translation table: ASCII letters and digits to lower case, all other bytes to spaces."""
_DEDUPLICATE_ABOVE = 100
"""Number of words above which duplicates are removed here instead of by the server."""


@cache
def _word_pattern() -> re.Pattern[str]:
    """Matches words of letters and digits, and runs of unsegmented script; cached, since it is slow to compile."""
    return re.compile(rf"[^\W_{UNSEGMENTED_FROM}-\U0010ffff]+|[{UNSEGMENTED_FROM}-\U0010ffff]+")


def index_tokens(document: SearchDocument, tags: Iterable[str]) -> str:
    """Returns all tokens of an event, separated by spaces."""
    text = document.text if document.text.isascii() else normalize(document.text)
    tokens = _ascii_tokens(text) if text.isascii() else _unicode_tokens(text)
    if len(tokens) > _DEDUPLICATE_ABOVE:
        tokens = list(dict.fromkeys(tokens))
    if len(text) * _MAX_BYTES_PER_CHARACTER > MAX_TOKEN_BYTES:
        tokens = list(_truncate_tokens(tokens))
    return " ".join((*tags, *tokens))


def _ascii_tokens(text: str) -> list[str]:
    """Fast path: ASCII text needs only lower-casing."""
    words = text.encode().translate(_ASCII_TABLE).decode().split()
    return [word[:MAX_WORD_LENGTH] for word in words] if max(map(len, words), default=0) > MAX_WORD_LENGTH else words


def _unicode_tokens(normalized: str) -> list[str]:
    pieces = dict.fromkeys(_word_pattern().findall(normalized))
    tokens = (
        [piece[:MAX_WORD_LENGTH]] if piece < UNSEGMENTED_FROM else [*_character_pairs(piece), piece[-1]]
        for piece in pieces
    )
    return list(chain.from_iterable(tokens))


def _truncate_tokens(tokens: Iterable[str]) -> Iterator[str]:
    """Yields as many tokens as a tsvector takes; if there are more, ends with a tag for truncation."""
    room = MAX_TOKEN_BYTES
    for token in tokens:
        room -= len(token.encode()) + _BYTES_PER_TOKEN
        if room < 0:
            yield _TRUNCATED_TAG
            return
        yield token


def _character_pairs(piece: str) -> Iterator[str]:
    return map("".join, pairwise(piece))


@lru_cache(maxsize=10_000)
def tag_token(kind: str, value: str | int) -> str:
    """Returns the token of a condition; `kind` tells a role from a tool of the same name."""
    if isinstance(value, int):
        return f"{_TAG_PREFIX}{kind}{value}"
    return _TAG_PREFIX + kind + hashlib.blake2b(value.encode(), digest_size=5).hexdigest()


def row_tags(row: int) -> list[str]:
    """Returns the tags of a row's block and group."""
    return [tag_token("b", row // BLOCK_ROWS), tag_token("g", row // GROUP_ROWS)]


def event_tags(
    event: Event, document: SearchDocument, tools: Iterable[str], session: int, owner: str | None, tenant: str
) -> list[str]:
    found = [tag_token("s", session), tag_token("n", tenant), *(tag_token("t", name) for name in tools)]
    if event.kind != EventKind.MESSAGE:
        found.append(tag_token("k", event.kind))
    if event.lane:
        found.append(tag_token("l", event.lane))
    if document.role:
        found.append(tag_token("r", document.role))
    if owner is not None:
        found.append(tag_token("o", owner))
    return found


def whole_word_terms(query: Query) -> list[str]:
    """Returns the terms that match every word as a whole word; empty if the words have no boundaries."""
    if not query.has_word_boundaries:
        return []
    return _quote_terms(piece[:MAX_WORD_LENGTH] for word in query.words for piece in _word_pattern().findall(word))


def prefix_terms(query: Query) -> list[str]:
    """Returns the terms that match every word as a prefix; empty if all prefixes are too short."""
    found: list[str] = []
    for word in query.words:
        for match in _word_pattern().finditer(word):
            found += _piece_terms(match[0], last=match.end() == len(word))
    return list(dict.fromkeys(found))


def _piece_terms(piece: str, last: bool) -> list[str]:
    if piece >= UNSEGMENTED_FROM:
        return _quote_terms(_character_pairs(piece)) if len(piece) > 1 else [_quote_term(piece) + ":*"]
    if not last or len(piece) >= MAX_WORD_LENGTH:
        return [_quote_term(piece[:MAX_WORD_LENGTH])]
    return [_quote_term(piece) + ":*"] if len(piece) >= MIN_PREFIX_LENGTH else []


def condition_terms(where: Where, sessions: Sequence[int], owner: str | None, tenant: str) -> list[str]:
    """Returns the terms of those conditions of a search that have tags."""
    found = [_quote_term(tag_token("n", tenant))]
    for kind, values in (
        ("s", sessions),
        ("o", [owner] if owner is not None else []),
        ("k", [] if EventKind.MESSAGE in where.kinds else where.kinds),
        ("r", where.roles),
        ("t", where.tools),
        ("l", [where.lane] if where.lane else []),
    ):
        if values:
            found.append(or_terms([_quote_term(tag_token(kind, value)) for value in values]))
    return found


def build_tsquery(terms: Sequence[str], conditions: Sequence[str], window_tags: Sequence[str] = ()) -> str:
    """Returns the tsquery of terms, conditions and window tags; no window tags match all rows."""
    needed = list(conditions)
    if terms:
        needed.append(or_terms([f"({' & '.join(terms)})", _quote_term(_TRUNCATED_TAG)]))
    if window_tags:
        needed.append(or_terms([_quote_term(tag) for tag in window_tags]))
    return " & ".join(needed)


def or_terms(terms: Sequence[str]) -> str:
    return f"({' | '.join(terms)})" if len(terms) > 1 else terms[0]


def _quote_terms(tokens: Iterable[str]) -> list[str]:
    return [_quote_term(token) for token in dict.fromkeys(tokens)]


def _quote_term(token: str) -> str:
    """Quotes a token for a tsquery."""
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"
