"""Sessions over a store: append, context, compact, explain, fork, undo."""

from ..context import CompactionParameters
from ..ledger import LeftOutLine, PageExplanation, PageLine
from .blocking import BlockingSessionService
from .explain import CompactionPreview, EventFate, Explanation
from .handoff import Handoff
from .live import Context, ContextSize
from .service import SessionService

__all__ = [
    "BlockingSessionService",
    "CompactionParameters",
    "CompactionPreview",
    "Context",
    "ContextSize",
    "EventFate",
    "Explanation",
    "Handoff",
    "LeftOutLine",
    "PageExplanation",
    "PageLine",
    "SessionService",
]
