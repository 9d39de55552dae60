"""Strategies: what to archive and what to show instead. A request in, a plan out; no I/O."""

from .keep_ledger import KeepLedger
from .ladder import LAST_RESORTS, LastResort, or_else
from .pipelines import Pipeline
from .pruning import CLEARED, PruneToolResults
from .recursive_summary import RecursiveSummary
from .state_summary import StateSummary
from .steps import steps
from .structured_summary import StructuredSummary
from .summary import Summary
from .tail import KeepFraction, KeepLast, KeepNothing, KeepRecent, KeepUserMessages
from .truncation import Truncate
from .windows import SlidingWindow, TokenWindow, TurnWindow

__all__ = [
    "CLEARED",
    "LAST_RESORTS",
    "KeepFraction",
    "KeepLast",
    "KeepLedger",
    "KeepNothing",
    "KeepRecent",
    "KeepUserMessages",
    "LastResort",
    "Pipeline",
    "PruneToolResults",
    "RecursiveSummary",
    "SlidingWindow",
    "StateSummary",
    "StructuredSummary",
    "Summary",
    "TokenWindow",
    "Truncate",
    "TurnWindow",
    "or_else",
    "steps",
]
