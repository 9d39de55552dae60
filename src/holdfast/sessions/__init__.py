"""Sessions over a store: append, context, turns, compact, explain, fork, undo."""

from ..compaction.size import Size
from ..context import CompactionParameters
from .blocking import BlockingSessionService, BlockingTurn
from .explain import CompactionPreview, EventFate, Explanation
from .handoff import Handoff
from .live import Context
from .page_lines import LeftOutLine, PageExplanation, PageLine
from .service import SessionService
from .turn import Turn

__all__ = [
    "BlockingSessionService",
    "BlockingTurn",
    "CompactionParameters",
    "CompactionPreview",
    "Context",
    "EventFate",
    "Explanation",
    "Handoff",
    "LeftOutLine",
    "PageExplanation",
    "PageLine",
    "SessionService",
    "Size",
    "Turn",
]
