"""Compaction: options, decisions, model calls, results, presets, and the doors `compact` and `acompact`."""

from .api import acompact, compact
from .decide import Decision, validate_plan
from .driver import Abort, Meter, Notify, SummarizerRun, drive, replay, without_model
from .policy import Bounds, Policy, PolicyLike, read_policy, resolve
from .presets import PRESETS, preset
from .previous import PrefixCheckpoint
from .result import CompactionResult, Cost, Partition
from .run import CompactionRun

__all__ = [
    "PRESETS",
    "Abort",
    "Bounds",
    "CompactionResult",
    "CompactionRun",
    "Cost",
    "Decision",
    "Meter",
    "Notify",
    "Partition",
    "Policy",
    "PolicyLike",
    "PrefixCheckpoint",
    "SummarizerRun",
    "acompact",
    "compact",
    "drive",
    "preset",
    "read_policy",
    "replay",
    "resolve",
    "validate_plan",
    "without_model",
]
