"""Telling whoever listens what becomes of a compaction: in order, typed, and whoever breaks stops nothing (P11)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..calls import Notice
from ..compaction import Asking, CompactionResult, Notify
from ..events import new_id
from ..outcome import Outcome
from .events import (
    CompactionBoundary,
    CompactionCompleted,
    CompactionEvent,
    CompactionFailed,
    CompactionProgress,
    CompactionSkipped,
    CompactionStarted,
    Origin,
)

if TYPE_CHECKING:
    from .questions import Listener

log = logging.getLogger("holdfast")
BROKE = "error"
"""The outcome that is told where there is none, because it raised."""
_FAILED = (BROKE, Outcome.SUMMARY_FAILED, Outcome.CANNOT_FIT, Outcome.ABORTED)


class Telling:
    """One compaction, as it is told."""

    def __init__(self, listeners: Sequence[Listener], session: str, lane: str | None, origin: Origin) -> None:
        self._listeners = tuple(listeners)
        self.session, self.lane, self.origin = session, lane, origin
        self._id = ""
        self._open = False
        """Has its start been told, and not its end?"""

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def notify(self, given: Notify | None) -> Notify | None:
        """Who hears of a model's progress: whoever was to hear of it anyway, and the listeners."""
        if not self._listeners:
            return given

        def both(notice: Notice) -> None:
            if given is not None:
                try:
                    given(notice)
                except Exception:
                    log.exception("what was to hear of the progress broke")
            self._tell(
                CompactionProgress(
                    self.session,
                    _in_words(notice),
                    notice.call,
                    notice.characters,
                    notice.kind,
                    notice.seconds,
                    self._id,
                )
            )

        return both

    def started(self, tokens: int, instructions: str | None) -> None:
        self._id, self._open = new_id(), True
        self._tell(CompactionStarted(self.session, self.origin, tokens, self.lane, instructions, self._id))

    def ended(self, outcome: str, why: str) -> None:
        """Nothing was changed. That none was needed is told only where one was begun: it is so at every step."""
        if outcome == Outcome.NOT_NEEDED and not self._open:
            return
        self._open = False
        tell = CompactionFailed if outcome in _FAILED else CompactionSkipped
        self._tell(tell(self.session, str(outcome), why, self._id))

    def broke(self, problem: BaseException) -> None:
        """It ended by an error, or by being cancelled."""
        if self._open and isinstance(problem, Exception):
            self.ended(BROKE, f"{type(problem).__name__}: {problem}")
        elif self._open:
            self.ended(Outcome.ABORTED, "it was cancelled: nothing has changed")

    def completed(self, result: CompactionResult, asking: Asking) -> CompactionCompleted:
        return CompactionCompleted(
            session=self.session,
            origin=self.origin,
            tokens_before=result.tokens_before,
            tokens_after=result.tokens_after,
            archived=result.removed,
            kept=len(result.kept),
            round=result.round,
            strategy=result.strategy,
            fallback=result.fallback,
            summary=result.summary,
            remarks=result.remarks,
            seconds=result.duration,
            summarizer=asking.model.name if asking.model is not None and asking.meter.calls else None,
            cost=result.cost,
            outcome=result.outcome.value,
            lane=self.lane,
            compaction=self._id,
        )

    def changed(self, completed: CompactionCompleted, checkpoint: str) -> None:
        self._open = False
        self._tell(completed)
        self._tell(CompactionBoundary(self.session, checkpoint, completed.round, compaction=self._id))

    def _tell(self, event: CompactionEvent) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                log.exception("a listener broke on %s", type(event).__name__)


def _in_words(notice: Notice) -> str:
    again = f", attempt {notice.attempt}" if notice.attempt > 1 else ""
    match notice.kind:
        case "calling":
            return f"asking a model for the {notice.purpose}{again}"
        case "delta":
            return f"writing the {notice.purpose}"
        case "waiting":
            return f"waiting {notice.seconds:.0f} s to ask again: {notice.text}"
        case "answered":
            return f"the {notice.purpose} is written"
        case "failed":
            return f"no {notice.purpose}: {notice.text}"
