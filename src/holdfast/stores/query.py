"""A query and how well a text answers it: the same in every store."""

from __future__ import annotations

import re
from functools import cached_property

import msgspec

from .log import Where
from .texts import fold

WIDE = "\u0e00"
"""From here on, scripts that do not put blanks between words, and signs that are no letters."""
LONGEST_WORD = 40
"""Longer runs of characters are nothing that one would look for as a word."""
EVEN = 2000
"""The length of a text at which its words count half."""


class Asked(msgspec.Struct, frozen=True):
    """A search as it was asked for."""

    query: str
    session_id: str | None
    owner: str | None
    where: Where
    limit: int
    offset: int


class Match(msgspec.Struct, frozen=True):
    """How well one text answers."""

    score: float
    whole: bool
    """Every word of the query stands in it as a word, not only inside a longer one."""


class Query:
    """Words that must all occur, in any order, anywhere in a text. Nothing in a query is syntax."""

    def __init__(self, text: str) -> None:
        words = fold(text).split()
        self.words = tuple(dict.fromkeys(words))
        self._phrase = " ".join(words)

    @cached_property
    def bounded(self) -> bool:
        """Are these words of which one can say that they stand alone? Chinese, an emoji or `--` are not."""
        return all(
            len(word) <= LONGEST_WORD and max(word) < WIDE and any(map(str.isalnum, word)) for word in self.words
        )

    @cached_property
    def _alone(self) -> list[re.Pattern[str]]:
        return [re.compile(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])") for word in self.words]

    def match(self, folded: str) -> Match | None:
        """None unless every word occurs; often, as whole words, together, and in a short text is better."""
        counts = [folded.count(word) for word in self.words]
        if not counts or not all(counts):
            return None
        alone = [bool(pattern.search(folded)) for pattern in self._alone] if self.bounded else []
        score = sum(count / (count + 1) for count in counts) + sum(alone) / 2
        if len(self.words) > 1 and self._phrase in folded:
            score += 1
        return Match(score / (1 + len(folded) / EVEN), bool(alone) and all(alone))

    def cannot_be_in(self, body: str) -> bool:
        """A quick no for most bodies that do not match: what is plain ASCII stands in the JSON just as it is said."""
        if not body.isascii() or "\\u" in body:
            return False
        lower = body.lower()
        return any(word not in lower and word.isascii() and not _ESCAPED & set(word) for word in self.words)


_ESCAPED = frozenset('"\\')
"""Characters that JSON writes in another way."""
