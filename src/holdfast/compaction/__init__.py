"""Compaction: options, decisions, model calls, results, presets, and the doors `compact` and `acompact`."""

from .api import acompact, compact
from .decide import Decision, not_triggered, validate_plan
from .driver import Abort, Meter, Notify, SummarizerRun, drive, replay, without_model
from .options import CompactionOptions
from .preset import Preset
from .presets import PRESETS, preset_named
from .previous import PrefixCheckpoint
from .result import CompactionResult, Cost, Partition
from .run import CompactionRun

__all__ = [
    "PRESETS",
    "Abort",
    "CompactionOptions",
    "CompactionResult",
    "CompactionRun",
    "Cost",
    "Decision",
    "Meter",
    "Notify",
    "Partition",
    "PrefixCheckpoint",
    "Preset",
    "SummarizerRun",
    "acompact",
    "compact",
    "drive",
    "not_triggered",
    "preset_named",
    "replay",
    "validate_plan",
    "without_model",
]
