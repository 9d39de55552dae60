"""What full-text search looks at: every text in an event's body, folded so that case is no matter."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

SNIPPET = 160
"""About how many characters of context a hit shows."""


def text_of(body: Any) -> str:
    """All text inside a body, without its keys: messages, tool arguments, tool results, summaries."""
    return "\n".join(_pieces(body))


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if "\\" in value and value[:1] in ("{", "["):
            yield from _escaped(value)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _pieces(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _pieces(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _escaped(value: str) -> Iterator[str]:
    """Providers hand over tool arguments as JSON in a string, where `ü` may be written as an escape."""
    try:
        inner = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return
    yield from _pieces(inner)


def fold(text: str) -> str:
    """The form in which texts and queries meet."""
    if text.isascii():
        return text.lower().replace("\0", " ")
    return unicodedata.normalize("NFKC", text).casefold().replace("\0", " ")


def words_of(query: str) -> tuple[str, ...]:
    """The words that must all occur; a query is data, so nothing in it is syntax."""
    return tuple(dict.fromkeys(fold(query).split()))


def relevance(folded: str, words: Sequence[str]) -> float:
    """How well a text answers: 0 unless every word occurs; often and in a short text is better."""
    counts = [folded.count(word) for word in words]
    if not counts or not all(counts):
        return 0.0
    return sum(count / (count + 1) for count in counts) / (1 + len(folded) / 2000)


def snippet(text: str, words: Sequence[str]) -> str:
    """The surroundings of the first word found, on one line."""
    found = [m.start() for word in words if (m := re.search(re.escape(word), text, re.IGNORECASE))]
    at = min(found, default=0)
    start = max(0, at - SNIPPET // 3)
    end = start + SNIPPET
    piece = " ".join(text[start:end].split())
    return ("…" if start else "") + piece + ("…" if end < len(text) else "")
