"""What the search index holds of an event: parts of its words, its words, and what else one may ask for.

Every three characters in a row find any part of any word in any script. Whole words are tokens too, so that
events which hold them as such come first. Tags make conditions part of the same look-up: a common word in a
small session is found as fast as a rare one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ..query import LONGEST_WORD, WIDE, Query

GRAM = 3
MOST_TOKENS = 48
"""Of one query: so many narrow it down enough, and the text is looked at anyway."""

_TAG, _END, _WHOLE = "\ue000", "\ue001", "\ue002"
"""Private characters: what a tag begins with, the end of a word, a whole word."""
_RUN = re.compile(r"[^\W_]+")
_PLAIN = re.compile(r"[a-z0-9]")


def tokens_of(folded: str, tags: Iterable[str]) -> str:
    """All tokens of an event, parted by blanks."""
    return " ".join({*tags, *_tokens(set(folded.split()))})


def _tokens(chunks: set[str]) -> set[str]:
    return set().union(*(_remembered(chunk) if len(chunk) <= LONGEST_WORD else _of_chunk(chunk) for chunk in chunks))


def _of_chunk(chunk: str) -> tuple[str, ...]:
    """Of what stands between two blanks: every three characters, its end, and the words in it.

    So that each character but a plain last one begins a token: by its beginning a short word is found.
    """
    ended = chunk + _END
    grams = map("".join, zip(ended, ended[1:], ended[2:], strict=False))
    last = () if len(chunk) > 1 and _PLAIN.fullmatch(chunk[-1]) else (chunk[-1] + _END,)
    return (*grams, *last, *_whole_words(chunk))


_remembered = lru_cache(maxsize=50_000)(_of_chunk)


def _whole_words(chunk: str) -> list[str]:
    return [_WHOLE + run for run in _RUN.findall(chunk) if len(run) <= LONGEST_WORD and max(run) < WIDE]


def tag(kind: str, value: object) -> str:
    """A token for a condition; `kind` keeps a role apart from a tool of that name."""
    return _TAG + kind + hashlib.blake2b(str(value).encode(), digest_size=6).hexdigest()


def whole_terms(query: Query) -> list[str]:
    """What an event must have in the index to hold every word as such; empty if that cannot be said."""
    if not query.bounded:
        return []
    found = dict.fromkeys(token for word in query.words for token in _whole_words(word))
    return [quoted(token) for token in found][:MOST_TOKENS]


def part_terms(query: Query) -> list[str]:
    """What an event must have in the index to hold every word anywhere; empty if only its text can tell."""
    grams = [word[at : at + GRAM] for word in query.words for at in range(len(word) - GRAM + 1)]
    if grams:
        return [quoted(gram) for gram in _spread(list(dict.fromkeys(grams)))]
    return [f"{quoted(word)}*" for word in query.words if not _PLAIN.fullmatch(word)][:MOST_TOKENS]


def _spread(grams: Sequence[str]) -> Sequence[str]:
    step = -(-len(grams) // MOST_TOKENS)
    return grams[::step]


def any_of(terms: Sequence[str]) -> str:
    return f"({' OR '.join(terms)})" if len(terms) > 1 else terms[0]


def quoted(token: str) -> str:
    """A token as FTS5 takes it, whatever is in it."""
    return '"' + token.replace('"', '""') + '"'
