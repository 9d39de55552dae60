"""Sessions over a store: append, context, compact, fork, undo."""

from .blocking import BlockingSessionService
from .context import Context
from .sessions import SessionService

__all__ = ["BlockingSessionService", "Context", "SessionService"]
