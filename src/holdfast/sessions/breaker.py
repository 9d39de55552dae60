"""The circuit breaker: a failed compaction is not retried again and again. The session itself stores the failures.

After a failure, an automatic compaction waits for a new message; after several in a row, for some time as well. A
compaction that a person asks for is always tried.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..compaction import Decision, Meter
from ..context import Request, View
from ..context.events import Event, EventKind, new_id, now
from ..errors import Outcome
from ..triggers.limits import always, fires_on_anything
from .live import LiveSession

if TYPE_CHECKING:
    from ..types import Trigger

FAILURES = 3
"""Consecutive failures that open the breaker."""
PAUSE = 300.0
"""Seconds that it stays open the first time; doubled with each further failure."""
MAX_PAUSE = 3_600.0
_COUNTED = (Outcome.SUMMARY_FAILED, Outcome.NO_PROGRESS, Outcome.CANNOT_FIT)


def open_breaker(request: Request, trigger: Trigger | None, time: float) -> Decision | None:
    """Returns the decision not to compact automatically now, if the breaker is open, else None.

    After an undo, only a trigger that looks at the context waits: one that fires on anything is its caller's decision.
    """
    view, tokens = request.view, request.tokens
    if view.undone and not _is_callers_decision(trigger, request):
        why = "a compaction was undone: automatic ones wait for the next user message"
        return Decision(Outcome.NOT_NEEDED, tokens, tokens, why)
    if view.failures >= FAILURES and time < view.retry_at:
        until = datetime.fromtimestamp(view.retry_at, UTC).isoformat(timespec="seconds")
        why = f"{view.failures} compactions in a row have failed: the next is tried after {until}, or when you ask"
        return Decision(Outcome.BREAKER_OPEN, tokens, tokens, why)
    if view.attempted:
        why = "the last compaction failed and there is no new message since: it would fail again"
        return Decision(Outcome.BREAKER_OPEN, tokens, tokens, why)
    return None


def _is_callers_decision(trigger: Trigger | None, request: Request) -> bool:
    """Whether the caller's own trigger fires on anything; `always` is here that of the memory, which blends unasked."""
    return trigger is not None and trigger is not always and fires_on_anything(trigger, request)


async def record_failure(
    live: LiveSession, lane: str | None, view: View, decision: Decision, meter: Meter, time: float
) -> None:
    """Appends a failure that cost model calls. Others cost nothing and are not recorded."""
    if decision.outcome not in _COUNTED or not meter.calls:
        return
    failures = view.failures + 1
    pause = min(MAX_PAUSE, PAUSE * 2 ** (failures - FAILURES)) if failures >= FAILURES else 0.0
    body = {
        "outcome": decision.outcome.value,
        "why": decision.why,
        "failures": failures,
        "retry_at": time + pause,
        "calls": meter.calls,
    }
    await live.append([Event(new_id(), EventKind.ATTEMPT, now(), body, lane)])
