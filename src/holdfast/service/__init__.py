"""Sessions over a store: append, context, compact, fork, undo."""

from .blocking import BlockingSessionService
from .context import Context
from .handoff import Handoff
from .sessions import SessionService

__all__ = ["BlockingSessionService", "Context", "Handoff", "SessionService"]
