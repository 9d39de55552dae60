"""Sessions over a store: append, context, compact, fork, undo."""

from .blocking import BlockingSessionService
from .handoff import Handoff
from .live import Context, ContextSize
from .service import SessionService

__all__ = [
    "BlockingSessionService",
    "Context",
    "ContextSize",
    "Handoff",
    "SessionService",
]
