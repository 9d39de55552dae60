"""Deciding about plans, asking models, and compaction of plain lists of messages."""

from .abort import Abort
from .asking import Asking, decide_asking
from .carry import next_carry, next_edits, standing_summary
from .cost import Cost
from .decide import Decision, decide, idle
from .driver import Meter, Notify, drive
from .mending import numbers_in, read_back
from .prefix import PrefixCheckpoint
from .replay import replay, without_model
from .result import CompactionResult, Sides
from .stateless import acompact, compact, default_strategy, least_saving
from .work import beside

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
    "next_edits",
    "numbers_in",
    "read_back",
    "replay",
    "standing_summary",
    "without_model",
]
