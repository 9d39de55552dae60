"""What one session gave: plain rows, one for each context that was measured."""

from __future__ import annotations

import msgspec

from .measures import Score


class Row(msgspec.Struct, frozen=True):
    """One contestant at one cut, with one budget."""

    session: str
    cut: int
    """Messages before it."""
    contestant: str
    budget: int
    rounds: int
    """Compactions in a row; 1 is the whole history at once."""
    score: Score
    tokens: int
    seconds: float
    """Of each compaction, on average."""
    problems: int | None = None


class Names(msgspec.Struct, frozen=True):
    """One cut for a person to look at: what was needed, and what became of it."""

    cut: int
    tokens: int
    names: tuple[str, ...]
    kept: dict[str, str]
    """For each contestant a digit a name: 0 lost, 1 present, 2 on a line that keeps its context."""


class SessionResults(msgspec.Struct, frozen=True):
    """All rows of one session."""

    session: str
    kind: str
    file: str
    rows: tuple[Row, ...] = ()
    """At the budgets that were asked for."""
    in_a_row: tuple[Row, ...] = ()
    """After several compactions, at one budget."""
    at_summary: tuple[Row, ...] = ()
    """Where the tool compacted, at the size of its own summary."""
    names: tuple[Names, ...] = ()
    failures: tuple[str, ...] = ()


class NotMeasured(msgspec.Struct, frozen=True):
    """A file that gave no rows, and why."""

    file: str
    why: str


Outcome = SessionResults | NotMeasured
