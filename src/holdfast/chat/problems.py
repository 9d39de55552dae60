"""A compaction that failed, in a sentence that says what can be done (P9)."""

from __future__ import annotations

from ..agent.events import AgentEvent, Problem
from ..hooks.events import CompactionFailed
from ..outcome import Outcome


def problem_in(event: AgentEvent) -> Problem | None:
    """A compaction that failed is reported, and whoever reads it decides; one that was stopped did not fail."""
    if not isinstance(event, CompactionFailed) or event.outcome == Outcome.ABORTED:
        return None
    return Problem(failed(event.outcome, event.why))


def failed(outcome: str, why: str) -> str:
    reason = f"{outcome}: {why}".strip().rstrip(".:")
    return f"The compaction failed, and nothing was changed ({reason}): compact again, or start a new session."
