"""What the index holds of an event: its words, and what else one may ask for; and how a query asks for them.

Words as they are, without stems and stop words, as the `simple` configuration would have them; but cut where every
store of ours cuts, which PostgreSQL's own parser does not. Scripts that do not part their words have every two
characters in a row. Tags make conditions part of the same look-up: a common word in a small session is found as fast
as a rare one. What nearly every event has (the root's lane, a message) is no tag, since it would narrow nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, pairwise

from ...events import Event, Kind
from ..log import Where
from ..query import LONGEST_WORD, WIDE, Query
from ..said import Said
from ..texts import fold

BLOCK, GROUP = 4_096, 262_144
"""Rows of the index that have a tag in common, few and many: the newest are asked first, and mostly are enough."""
MOST_BYTES = 800_000
"""Of the words of one event, as much as a tsvector takes. What says more is looked at in every search."""
_EACH = 8
"""Bytes that a tsvector takes for a token, beside its own."""
_DEAREST = 2 * 4 + _EACH
"""Bytes that a character can cost at most: it is a token with each of its neighbours."""
SHORTEST_BEGINNING = 3
"""Too many words begin with fewer letters to be looked up."""

_TAG = "\1"
"""No text has it: control characters are folded to blanks."""
_ENDLESS = _TAG + "e"
_PLAIN = bytes(ord(chr(code).lower()) if chr(code).isalnum() and code < 128 else ord(" ") for code in range(256))
"""How every byte of plain text stands in its words, or between them."""
_FEW = 100
"""Words of which the server drops the repeated ones as fast."""


@cache
def _pieces() -> re.Pattern[str]:
    """Words of letters and digits, and runs of anything wide; it takes a while to build."""
    return re.compile(rf"[^\W_{WIDE}-\U0010ffff]+|[{WIDE}-\U0010ffff]+")


def tokens_of(said: Said, tags: Iterable[str]) -> str:
    """All tokens of an event, parted by blanks."""
    text = said.text if said.text.isascii() else fold(said.text)
    tokens = _plain(text) if text.isascii() else _of_any_script(text)
    if len(tokens) > _FEW:
        tokens = list(dict.fromkeys(tokens))
    if len(text) * _DEAREST > MOST_BYTES:
        tokens = list(_within_bounds(tokens))
    return " ".join((*tags, *tokens))


def _plain(text: str) -> list[str]:
    """Plain text needs no folding beside its letters' case, and most text is plain."""
    words = text.encode().translate(_PLAIN).decode().split()
    return [word[:LONGEST_WORD] for word in words] if max(map(len, words), default=0) > LONGEST_WORD else words


def _of_any_script(folded: str) -> list[str]:
    pieces = dict.fromkeys(_pieces().findall(folded))
    tokens = ([piece[:LONGEST_WORD]] if piece < WIDE else [*_pairs(piece), piece[-1]] for piece in pieces)
    return list(chain.from_iterable(tokens))


def _within_bounds(tokens: Iterable[str]) -> Iterator[str]:
    """As many as a tsvector takes; where there are more, the token that says so."""
    room = MOST_BYTES
    for token in tokens:
        room -= len(token.encode()) + _EACH
        if room < 0:
            yield _ENDLESS
            return
        yield token


def _pairs(piece: str) -> Iterator[str]:
    return map("".join, pairwise(piece))


@lru_cache(maxsize=10_000)
def tag(kind: str, value: str | int) -> str:
    """A token for a condition; `kind` keeps a role apart from a tool of that name."""
    if isinstance(value, int):
        return f"{_TAG}{kind}{value}"
    return _TAG + kind + hashlib.blake2b(value.encode(), digest_size=5).hexdigest()


def place_tags(row: int) -> list[str]:
    """Where in the index a row is."""
    return [tag("b", row // BLOCK), tag("g", row // GROUP)]


def tags_of(event: Event, said: Said, tools: Iterable[str], session: int, owner: str | None, tenant: str) -> list[str]:
    found = [tag("s", session), tag("n", tenant), *(tag("t", name) for name in tools)]
    if event.kind != Kind.MESSAGE:
        found.append(tag("k", event.kind))
    if event.lane:
        found.append(tag("l", event.lane))
    if said.role:
        found.append(tag("r", said.role))
    if owner is not None:
        found.append(tag("o", owner))
    return found


def whole_terms(query: Query) -> list[str]:
    """What an event must have in the index to hold every word as such; empty if that cannot be said."""
    if not query.bounded:
        return []
    return _quoted(piece[:LONGEST_WORD] for word in query.words for piece in _pieces().findall(word))


def part_terms(query: Query) -> list[str]:
    """What an event has in the index if every word stands at the beginning of a longer one; empty if too much has."""
    found: list[str] = []
    for word in query.words:
        for match in _pieces().finditer(word):
            found += _terms(match[0], last=match.end() == len(word))
    return list(dict.fromkeys(found))


def _terms(piece: str, last: bool) -> list[str]:
    if piece >= WIDE:
        return _quoted(_pairs(piece)) if len(piece) > 1 else [_quote(piece) + ":*"]
    if not last or len(piece) >= LONGEST_WORD:
        return [_quote(piece[:LONGEST_WORD])]
    return [_quote(piece) + ":*"] if len(piece) >= SHORTEST_BEGINNING else []


def condition_terms(where: Where, sessions: Sequence[int], owner: str | None, tenant: str) -> list[str]:
    """The conditions of a search, as far as there are tags for them."""
    found = [_quote(tag("n", tenant))]
    for kind, values in (
        ("s", sessions),
        ("o", [owner] if owner is not None else []),
        ("k", [] if Kind.MESSAGE in where.kinds else where.kinds),
        ("r", where.roles),
        ("t", where.tools),
        ("l", [where.lane] if where.lane else []),
    ):
        if values:
            found.append(any_of([_quote(tag(kind, value)) for value in values]))
    return found


def expression(terms: Sequence[str], conditions: Sequence[str], places: Sequence[str] = ()) -> str:
    """All of it in the words of a tsquery; no places are all of them."""
    needed = list(conditions)
    if terms:
        needed.append(any_of([f"({' & '.join(terms)})", _quote(_ENDLESS)]))
    if places:
        needed.append(any_of([_quote(place) for place in places]))
    return " & ".join(needed)


def any_of(terms: Sequence[str]) -> str:
    return f"({' | '.join(terms)})" if len(terms) > 1 else terms[0]


def _quoted(tokens: Iterable[str]) -> list[str]:
    return [_quote(token) for token in dict.fromkeys(tokens)]


def _quote(token: str) -> str:
    """A token as a tsquery takes it, whatever is in it."""
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"
