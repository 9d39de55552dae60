"""Where a context may be cut, whether it is valid, and how a broken one is mended."""

from .check import Problem, check, find_problems
from .cuts import cut_at_or_after, cut_at_or_before, has_calls, legal, only_reasoning, unfinished
from .repair import mend, repair

__all__ = [
    "Problem",
    "check",
    "cut_at_or_after",
    "cut_at_or_before",
    "find_problems",
    "has_calls",
    "legal",
    "mend",
    "only_reasoning",
    "repair",
    "unfinished",
]
