"""`Recall` for code that is not async, over a `BlockingSessionService`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from ..messages import Json
from ..service import BlockingSessionService
from .recall import Recall
from .tools import tool_definitions

P = ParamSpec("P")
R = TypeVar("R")


def _blocking(method: Callable[Concatenate[Recall, P], Awaitable[R]]) -> Callable[Concatenate[BlockingRecall, P], R]:
    def call(self: BlockingRecall, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._sessions.call(lambda service: method(self._recall(service), *args, **kwargs))

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


class BlockingRecall:
    """The same names, through the thread of the service."""

    def __init__(self, sessions: BlockingSessionService, session_id: str | None = None, **options: Any) -> None:
        self._sessions = sessions
        self._recall: Callable[[Any], Recall] = lambda service: Recall(service, session_id, **options)

    def tools(self, format: str = "openai-chat") -> list[Json]:
        return tool_definitions(format)

    search = _blocking(Recall.search)
    read = _blocking(Recall.read)
    restore = _blocking(Recall.restore)
    reference = _blocking(Recall.reference)
    run = _blocking(Recall.run)
    answer = _blocking(Recall.answer)
