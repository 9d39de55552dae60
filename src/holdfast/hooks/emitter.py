"""Emits the events of a compaction to listeners, in order; a listener that raises is logged and stops nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ..compaction import CompactionResult, Notify, SummarizerRun
from ..context.events import new_id
from ..errors import Outcome, plain_reason
from ..models.calls import Notice
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
    from .hooks import Listener


log = logging.getLogger("holdfast")
E = TypeVar("E")
ERROR_OUTCOME = "error"
"""Outcome in the event of a compaction that raised."""
_FAILED_OUTCOMES = (ERROR_OUTCOME, Outcome.SUMMARY_FAILED, Outcome.CANNOT_FIT, Outcome.ABORTED)


class EventEmitter:
    """Emits the events of one compaction."""

    def __init__(self, listeners: Sequence[Listener], session: str, lane: str | None, origin: Origin) -> None:
        self._listeners = tuple(listeners)
        self.session, self.lane, self.origin = session, lane, origin
        self._id = ""
        self._open = False
        """Whether a start was emitted, and no end yet."""

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def with_listeners(self, given: Notify | None) -> Notify | None:
        """Returns a callback that passes the model's progress to `given` and to the listeners."""
        if not self._listeners:
            return given

        def both(notice: Notice) -> None:
            if given is not None:
                try:
                    given(notice)
                except Exception:
                    log.exception("the notify callback raised")
            self._emit(
                CompactionProgress(
                    self.session,
                    _describe_notice(notice),
                    notice.call,
                    notice.characters,
                    notice.kind,
                    notice.seconds,
                    self._id,
                )
            )

        return both

    def emit_started(self, tokens: int, instructions: str | None) -> None:
        self._id, self._open = new_id(), True
        self._emit(CompactionStarted(self.session, self.origin, tokens, self.lane, instructions, self._id))

    def emit_unchanged(self, outcome: str, why: str) -> None:
        """Emits that nothing was changed; `not_needed` only after a start, since it is the outcome of most steps."""
        if outcome == Outcome.NOT_NEEDED and not self._open:
            return
        self._open = False
        event_type = CompactionFailed if outcome in _FAILED_OUTCOMES else CompactionSkipped
        self._emit(event_type(self.session, str(outcome), why, self._id))

    def emit_error(self, error: BaseException) -> None:
        """Emits the end of a compaction that raised or was cancelled."""
        if self._open and isinstance(error, Exception):
            self.emit_unchanged(ERROR_OUTCOME, plain_reason(error))
        elif self._open:
            self.emit_unchanged(Outcome.ABORTED, "it was cancelled: nothing has changed")

    def completed_event(self, result: CompactionResult, calls: SummarizerRun) -> CompactionCompleted:
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
            summarizer=calls.model.name if calls.model is not None and calls.meter.calls else None,
            cost=result.cost,
            outcome=result.outcome,
            lane=self.lane,
            compaction=self._id,
        )

    def emit_committed(self, completed: CompactionCompleted, checkpoint: str) -> None:
        self._open = False
        self._emit(completed)
        self._emit(CompactionBoundary(self.session, checkpoint, completed.round, compaction=self._id))

    def _emit(self, event: CompactionEvent) -> None:
        for listener in self._listeners:
            emit(listener, event)


def emit(listener: Callable[[E], object], event: E) -> None:
    """Calls a listener; logs its exceptions instead of raising them."""
    try:
        listener(event)
    except Exception:
        log.exception("the listener for %s failed", type(event).__name__)


def _describe_notice(notice: Notice) -> str:
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
