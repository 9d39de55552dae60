"""Holdfast keeps an LLM agent's conversation inside its model's window, and loses nothing."""

from .boundaries import Problem, check, repair
from .compaction import CompactionResult, acompact, compact
from .errors import HoldfastError, InvalidInput
from .messages import Message
from .recall import BlockingRecall, Found, Passage, Recall, recall_messages
from .references import reference
from .service import BlockingSessionService, Context, SessionService
from .stores import JSONLStore, MemoryStore, SQLiteStore, open_store
from .strategies import (
    KeepFraction,
    KeepLast,
    KeepLedger,
    Pipeline,
    PruneToolResults,
    SlidingWindow,
    TokenWindow,
    Truncate,
    TurnWindow,
)
from .tokens import Usage
from .triggers import (
    ByteCount,
    EventCount,
    ImageCount,
    OverBudget,
    TokenCount,
    TurnCount,
    all_of,
    always,
    any_of,
    never,
    not_,
)
from .types import Outcome

__all__ = [
    "BlockingRecall",
    "BlockingSessionService",
    "ByteCount",
    "CompactionResult",
    "Context",
    "EventCount",
    "Found",
    "HoldfastError",
    "ImageCount",
    "InvalidInput",
    "JSONLStore",
    "KeepFraction",
    "KeepLast",
    "KeepLedger",
    "MemoryStore",
    "Message",
    "Outcome",
    "OverBudget",
    "Passage",
    "Pipeline",
    "Problem",
    "PruneToolResults",
    "Recall",
    "SQLiteStore",
    "SessionService",
    "SlidingWindow",
    "TokenCount",
    "TokenWindow",
    "Truncate",
    "TurnCount",
    "TurnWindow",
    "Usage",
    "acompact",
    "all_of",
    "always",
    "any_of",
    "check",
    "compact",
    "never",
    "not_",
    "open_store",
    "recall_messages",
    "reference",
    "repair",
]
