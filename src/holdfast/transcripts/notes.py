"""What a reader left out or found odd, counted: nothing is skipped in silence."""

from __future__ import annotations


class Notes:
    """Counts by kind, told as sentences in the order in which each kind was first met."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def count(self, thing: str, rest: str, n: int = 1) -> None:
        """Add ``n`` to what becomes "3 records of type 'x' left out"; ``thing`` takes a plain plural s."""
        if n:
            self._counts[thing, rest] = self._counts.get((thing, rest), 0) + n

    def lines(self) -> tuple[str, ...]:
        return tuple(f"{n} {thing}{'' if n == 1 else 's'} {rest}" for (thing, rest), n in self._counts.items())
