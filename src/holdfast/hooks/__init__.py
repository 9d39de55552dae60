"""Hooks around a compaction: veto it, add instructions, replace its plan; and events for listeners."""

from .events import (
    ACCURACY_NOTICE,
    CompactionBoundary,
    CompactionCompleted,
    CompactionEvent,
    CompactionFailed,
    CompactionProgress,
    CompactionSkipped,
    CompactionStarted,
    Continued,
    Origin,
    WindowLowered,
)
from .hooks import BeforeCompaction, CommandHook, Hooks, Instructions, SessionStart, Veto
from .runner import HookRunner
from .telemetry import Telemetry

__all__ = [
    "ACCURACY_NOTICE",
    "BeforeCompaction",
    "CommandHook",
    "CompactionBoundary",
    "CompactionCompleted",
    "CompactionEvent",
    "CompactionFailed",
    "CompactionProgress",
    "CompactionSkipped",
    "CompactionStarted",
    "Continued",
    "HookRunner",
    "Hooks",
    "Instructions",
    "Origin",
    "SessionStart",
    "Telemetry",
    "Veto",
    "WindowLowered",
]
