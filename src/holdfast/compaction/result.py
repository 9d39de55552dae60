"""What a compaction returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ..outcome import Outcome
from ..view import Checkpoint
from .cost import Cost


class Sides(NamedTuple):
    """What was there before, sorted by what became of it."""

    kept: list[Any]
    archived: list[Any]
    edited: list[Any]


class CompactionResult:
    """The outcome, and always what to send next, whatever the outcome was (S2)."""

    def __init__(
        self,
        *,
        messages: Callable[[], Sequence[Any]],
        outcome: Outcome,
        sides: Callable[[], Sides],
        tokens_before: int,
        tokens_after: int,
        checkpoint: Callable[[], Checkpoint | None],
        why: str = "",
        strategy: str = "",
        fallback: str = "",
        summary: str | None = None,
        remarks: tuple[str, ...] = (),
        cost: Cost | None = None,
        round: int = 0,
        duration: float = 0.0,
        format: str | None = None,
        version: int | None = None,
    ) -> None:
        self.outcome = outcome
        self.tokens_before = tokens_before
        self.tokens_after = tokens_after
        self.why = why
        """In words, where nothing was changed or not all could be done."""
        self.strategy = strategy
        """What made the plan; several stages are joined by +."""
        self.fallback = fallback
        """What stood in for a model that did not answer: `ledger` or `truncation`; else empty."""
        self.summary = summary
        """What the model wrote, as the next round will be told it."""
        self.remarks = remarks
        """What a person should know: facts that were put back, input that was left out, names nobody ever said."""
        self.cost = cost
        """What it cost, what it saves, and after how many calls it has paid for itself."""
        self.round = round
        self.duration = duration
        """Seconds."""
        self.format = format
        self.version = version
        """The session's version after the commit."""
        self._messages = messages
        self._checkpoint = checkpoint
        self._sides = sides

    @cached_property
    def messages(self) -> Sequence[Any]:
        """The context to send: same format as what came in, valid for that format."""
        return self._messages()

    @cached_property
    def _sorted(self) -> Sides:
        return self._sides()

    @property
    def kept(self) -> list[Any]:
        """Events (or the messages that came in, without a session) that are visible afterwards."""
        return self._sorted.kept

    @property
    def archived(self) -> list[Any]:
        """Events (or messages) that are newly invisible; they are still in the log."""
        return self._sorted.archived

    @property
    def edited(self) -> list[Any]:
        """Those of `kept` in which something was cleared."""
        return self._sorted.edited

    @property
    def removed(self) -> int:
        return len(self.archived)

    @property
    def tokens_saved(self) -> int:
        return max(0, self.tokens_before - self.tokens_after)

    @cached_property
    def checkpoint(self) -> Checkpoint | None:
        """What the next call takes as `previous=`; worked out when it is asked for."""
        return self._checkpoint()

    def __repr__(self) -> str:
        return (
            f"CompactionResult({self.outcome.value}, {self.tokens_before} -> {self.tokens_after} tokens, "
            f"{len(self.kept)} kept, {self.removed} archived)"
        )
