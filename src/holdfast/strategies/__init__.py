"""Strategies decide what to archive and what replaces it: a request in, a plan out, no I/O."""

from .base import as_strategy, run_strategy
from .fallback import LAST_RESORTS, LastResort, with_fallback
from .ledger import KeepLedger
from .pipeline import Pipeline
from .pruning import CLEARED, PruneToolResults
from .summary import Summary, SummaryWriter
from .summary_kinds import RecursiveSummary, StateSummary, StructuredSummary
from .trail import KeepTrail
from .truncation import Truncate
from .windows import (
    KeepFraction,
    KeepLast,
    KeepNothing,
    KeepRecent,
    KeepUserMessages,
    SlidingWindow,
    TokenWindow,
    TurnWindow,
)

__all__ = [
    "CLEARED",
    "LAST_RESORTS",
    "KeepFraction",
    "KeepLast",
    "KeepLedger",
    "KeepNothing",
    "KeepRecent",
    "KeepTrail",
    "KeepUserMessages",
    "LastResort",
    "Pipeline",
    "PruneToolResults",
    "RecursiveSummary",
    "SlidingWindow",
    "StateSummary",
    "StructuredSummary",
    "Summary",
    "SummaryWriter",
    "TokenWindow",
    "Truncate",
    "TurnWindow",
    "as_strategy",
    "run_strategy",
    "with_fallback",
]
