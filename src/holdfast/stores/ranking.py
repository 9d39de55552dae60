"""The best hits of a search, in the order in which every store returns them."""

from __future__ import annotations

import heapq

from ..events import Event
from .log import Hit
from .texts import fold, relevance, snippet, text_of, words_of


class Ranking:
    """Collects events that hold all words of a query, and keeps the best of them."""

    def __init__(self, query: str, limit: int) -> None:
        self.words = words_of(query)
        self.limit = max(0, limit)
        self._best: list[tuple[float, str, int, str, Hit]] = []

    @property
    def count(self) -> int:
        return len(self._best)

    def consider(self, session_id: str, event: Event) -> bool:
        """Take the event in if it matches; says whether it did."""
        text = text_of(event.body)
        score = relevance(fold(text), self.words)
        if not score or not self.limit:
            return False
        hit = Hit(session_id, event, snippet(text, self.words))
        rank = (score, event.time, event.seq, session_id, hit)
        if len(self._best) < self.limit:
            heapq.heappush(self._best, rank)
        else:
            heapq.heappushpop(self._best, rank)
        return True

    def hits(self) -> list[Hit]:
        return [rank[-1] for rank in sorted(self._best, key=lambda rank: rank[:-1], reverse=True)]
