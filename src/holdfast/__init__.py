"""Holdfast keeps an LLM agent's conversation inside its model's window, and loses nothing.

The names below are loaded when they are first used. Everything else is in the submodules: `holdfast.strategies`,
`.triggers`, `.summaries`, `.models`, `.stores`, `.sessions`, `.hooks`, `.recall`, `.jobs`, `.messages`, `.tokens`,
`.compaction`, `.transcripts`, `.errors`, `.types` and `.agent`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent import Keeper
    from .compaction import Abort, CompactionResult, Policy, acompact, compact, preset
    from .errors import HoldfastError, Outcome
    from .hooks import Hooks
    from .messages import Message, check, repair
    from .recall import Recall
    from .sessions import BlockingSessionService, Context, SessionService
    from .stores import JSONLStore, MemoryStore, PostgresStore, SQLiteStore, open_store
    from .strategies import (
        KeepLedger,
        Pipeline,
        PruneToolResults,
        SlidingWindow,
        StructuredSummary,
        Summary,
        TokenWindow,
        Truncate,
        TurnWindow,
    )
    from .triggers import OverBudget, TokenCount, TurnCount, any_of

__version__ = "0.1.0"
__all__ = [
    "Abort",
    "BlockingSessionService",
    "CompactionResult",
    "Context",
    "HoldfastError",
    "Hooks",
    "JSONLStore",
    "KeepLedger",
    "Keeper",
    "MemoryStore",
    "Message",
    "Outcome",
    "OverBudget",
    "Pipeline",
    "Policy",
    "PostgresStore",
    "PruneToolResults",
    "Recall",
    "SQLiteStore",
    "SessionService",
    "SlidingWindow",
    "StructuredSummary",
    "Summary",
    "TokenCount",
    "TokenWindow",
    "Truncate",
    "TurnCount",
    "TurnWindow",
    "acompact",
    "any_of",
    "check",
    "compact",
    "open_store",
    "preset",
    "repair",
]
_NAMES = {
    "agent": ("Keeper",),
    "compaction": ("Abort", "CompactionResult", "Policy", "acompact", "compact", "preset"),
    "errors": ("HoldfastError", "Outcome"),
    "hooks": ("Hooks",),
    "messages": ("Message", "check", "repair"),
    "recall": ("Recall",),
    "sessions": ("BlockingSessionService", "Context", "SessionService"),
    "stores": ("JSONLStore", "MemoryStore", "PostgresStore", "SQLiteStore", "open_store"),
    "strategies": (
        "KeepLedger",
        "Pipeline",
        "PruneToolResults",
        "SlidingWindow",
        "StructuredSummary",
        "Summary",
        "TokenWindow",
        "Truncate",
        "TurnWindow",
    ),
    "triggers": ("OverBudget", "TokenCount", "TurnCount", "any_of"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
