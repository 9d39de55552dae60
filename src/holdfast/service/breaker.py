"""A compaction that failed is not tried again and again: the session itself remembers (rule 5).

After a failure something must have been said before the next automatic try; after several in a row, time must have
passed as well. A person who asks is always heard.
"""

from __future__ import annotations

from datetime import UTC, datetime

from ..compaction import Decision, Meter
from ..events import Event, Kind, new_id, now
from ..outcome import Outcome
from ..view import View
from .live import LiveSession

FAILURES = 3
"""So many in a row open it."""
PAUSE = 300.0
"""Seconds that it stays open the first time; doubled with each failure after that."""
LONGEST_PAUSE = 3_600.0
_COUNTED = (Outcome.SUMMARY_FAILED, Outcome.NO_PROGRESS, Outcome.CANNOT_FIT)


def waits(view: View, tokens: int, time: float) -> Decision | None:
    """The decision not to try now, where that is so."""
    if view.undone:
        why = "a compaction was undone: automatic ones wait for the next user message"
        return Decision(Outcome.NOT_NEEDED, tokens, tokens, why)
    if view.failures >= FAILURES and time < view.retry_at:
        until = datetime.fromtimestamp(view.retry_at, UTC).isoformat(timespec="seconds")
        why = f"{view.failures} compactions in a row have failed: the next is tried after {until}, or when you ask"
        return Decision(Outcome.BREAKER_OPEN, tokens, tokens, why)
    if view.attempted:
        why = "the last compaction failed and nothing has been said since: it would fail again"
        return Decision(Outcome.BREAKER_OPEN, tokens, tokens, why)
    return None


async def note(live: LiveSession, lane: str | None, view: View, decision: Decision, meter: Meter, time: float) -> None:
    """Remember a failure that cost calls of a model. Nothing else is remembered: it cost nothing."""
    if decision.outcome not in _COUNTED or not meter.calls:
        return
    failures = view.failures + 1
    pause = min(LONGEST_PAUSE, PAUSE * 2 ** (failures - FAILURES)) if failures >= FAILURES else 0.0
    body = {
        "outcome": decision.outcome.value,
        "why": decision.why,
        "failures": failures,
        "retry_at": time + pause,
        "calls": meter.calls,
    }
    event = Event(new_id(), Kind.ATTEMPT, now(), body, lane)
    done = await live.store.append(live.id, [event])
    if done.fresh:
        await live.appended(done.events, done.version)
