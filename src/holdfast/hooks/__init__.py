"""Before and after a compaction: veto, instructions, another plan, and events for whoever listens (G7, P11)."""

from .around import Around
from .command import Command
from .events import (
    ACCURACY,
    CompactionBoundary,
    CompactionCompleted,
    CompactionEvent,
    CompactionFailed,
    CompactionProgress,
    CompactionSkipped,
    CompactionStarted,
    Continued,
    Origin,
)
from .hooks import Hooks
from .questions import Before, Instructions, SessionStart, Veto
from .telemetry import Telemetry

__all__ = [
    "ACCURACY",
    "Around",
    "Before",
    "Command",
    "CompactionBoundary",
    "CompactionCompleted",
    "CompactionEvent",
    "CompactionFailed",
    "CompactionProgress",
    "CompactionSkipped",
    "CompactionStarted",
    "Continued",
    "Hooks",
    "Instructions",
    "Origin",
    "SessionStart",
    "Telemetry",
    "Veto",
]
