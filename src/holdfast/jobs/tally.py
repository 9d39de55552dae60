"""What a worker has done so far: counts and durations, for whoever watches it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Tally:
    """Of one worker, since it was started."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._outcomes: Counter[str] = Counter()
        self._running = self._tokens_saved = 0
        self._seconds = self._longest = 0.0

    @contextmanager
    def job(self) -> Iterator[None]:
        """One attempt, however it ends."""
        begun = time.monotonic()
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            took = time.monotonic() - begun
            self._seconds += took
            self._longest = max(self._longest, took)

    def note(self, outcome: str, tokens_saved: int = 0) -> None:
        self._outcomes[outcome] += 1
        self._tokens_saved += tokens_saved

    def facts(self) -> dict[str, Any]:
        return {
            "up_seconds": round(time.monotonic() - self._since, 3),
            "running": self._running,
            "jobs": sum(self._outcomes.values()),
            "outcomes": dict(self._outcomes),
            "seconds_total": round(self._seconds, 3),
            "seconds_longest": round(self._longest, 3),
            "tokens_saved": self._tokens_saved,
        }
