"""Deciding about plans, asking models, and compaction of plain lists of messages."""

from .abort import Abort
from .asking import Asking, decide_asking
from .carry import next_carry, standing_summary
from .cost import Cost
from .decide import Decision, decide, idle
from .driver import Meter, Notify, drive
from .prefix import PrefixCheckpoint
from .replay import replay, without_model
from .result import CompactionResult, Sides
from .stateless import acompact, beside, compact, default_strategy, least_saving

__all__ = [
    "Abort",
    "Asking",
    "CompactionResult",
    "Cost",
    "Decision",
    "Meter",
    "Notify",
    "PrefixCheckpoint",
    "Sides",
    "acompact",
    "beside",
    "compact",
    "decide",
    "decide_asking",
    "default_strategy",
    "drive",
    "idle",
    "least_saving",
    "next_carry",
    "replay",
    "standing_summary",
    "without_model",
]
