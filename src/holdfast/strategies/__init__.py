"""Strategies: what to archive and what to show instead. A request in, a plan out; no I/O."""

from .keep_ledger import KeepLedger
from .pipelines import Pipeline
from .pruning import CLEARED, PruneToolResults
from .tail import KeepFraction, KeepLast
from .truncation import Truncate
from .windows import SlidingWindow, TokenWindow, TurnWindow

__all__ = [
    "CLEARED",
    "KeepFraction",
    "KeepLast",
    "KeepLedger",
    "Pipeline",
    "PruneToolResults",
    "SlidingWindow",
    "TokenWindow",
    "Truncate",
    "TurnWindow",
]
