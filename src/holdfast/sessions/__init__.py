"""Sessions over a store: append, context, compact, fork, undo."""

from .blocking import BlockingSessionService
from .handoff import Handoff
from .live import Context
from .service import SessionService

__all__ = [
    "BlockingSessionService",
    "Context",
    "Handoff",
    "SessionService",
]
