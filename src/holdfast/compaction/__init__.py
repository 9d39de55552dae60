"""Deciding about plans, and compaction of plain lists of messages."""

from .carry import next_carry
from .decide import Decision, decide
from .prefix import PrefixCheckpoint
from .result import CompactionResult, Sides
from .stateless import acompact, beside, compact

__all__ = [
    "CompactionResult",
    "Decision",
    "PrefixCheckpoint",
    "Sides",
    "acompact",
    "beside",
    "compact",
    "decide",
    "next_carry",
]
