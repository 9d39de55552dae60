"""An application's side of background compaction: told of the end of each turn, asked before each one.

At the soft threshold, the preset's own, a compaction is prepared while the conversation goes on. At the hard one there
is no room left for a reply, and the turn waits.
"""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio

from ..errors import InvalidInput, NoRoom
from ..hooks.patience import must_be_seconds
from ..presets import RESERVE
from ..service import Context, SessionService
from ..view import Request
from .in_process import InProcessQueue
from .job import SESSION, Job, Queue, QueueError
from .settings import QueueSettings
from .sweep import Sweep
from .work import Work, must_have_preset

if TYPE_CHECKING:
    from ..types import Trigger

log = logging.getLogger("holdfast.jobs")
PATIENCE = 60.0
"""Seconds that a turn waits at the hard threshold."""
_A_MOMENT = 0.1
"""How long to wait before looking again for a job that no worker has begun."""


def no_room_for_a_reply(request: Request) -> bool:
    """The hard threshold: less of the window is left than a reply may take."""
    fits = request.budget
    return fits is not None and request.tokens > fits - min(RESERVE, fits // 4)


class Background:
    """Compacts the sessions of a service behind their conversations, by the service's preset.

    Without a queue, the work is done in this process while the `async with` block lasts. With one, workers do it:
    `Background(sessions, BullMQQueue("redis://…"))`, and `holdfast worker` somewhere.
    """

    def __init__(
        self,
        sessions: SessionService,
        queue: Queue | None = None,
        *,
        settings: QueueSettings | None = None,
        hard: Trigger = no_room_for_a_reply,
        domain: str = SESSION,
    ) -> None:
        must_have_preset(sessions)
        self.sessions = sessions
        self.settings = settings or QueueSettings()
        self.hard = hard
        self.domain = domain
        self._own = None if queue is not None else InProcessQueue(Work(sessions, self.settings), self.settings)
        self._queue = queue

    async def __aenter__(self) -> Self:
        if self._own is not None:
            self._queue = await self._own.__aenter__()
            self._own.run_beside(Sweep(self.sessions, self._own, self.domain).keep_on, self.settings.sweep)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._own is not None:
            await self._own.__aexit__(kind, problem, trace)

    async def on_turn_end(self, session_id: str) -> bool:
        """Hold summary and live messages against the preset's trigger; if it fires, enqueue a compaction (W2).

        True where that was done. A queue that cannot be reached is logged: the end of the next turn asks again.
        """
        return await self.sessions.due(session_id) and await self._enqueue(session_id)

    async def before_turn(
        self,
        session_id: str,
        timeout: float = PATIENCE,  # noqa: ASYNC109 - how long a turn waits is its own business
    ) -> Context:
        """What to send. Past the hard threshold the turn first waits until a compaction has made room (W13).

        After `timeout` seconds it goes on with the context as it is, if that fits; else NoRoom is raised.
        """
        must_be_seconds(timeout)
        if await self._is_full(session_id):
            await self._enqueue(session_id)
            with anyio.move_on_after(timeout):
                await self._room(session_id)
        context = await self.sessions.context(session_id)
        fits = self.sessions.window_of(await self.sessions.get(session_id))
        if fits is not None and context.tokens > fits:
            raise NoRoom(session_id, context.tokens, fits, timeout)
        return context

    async def _is_full(self, session_id: str) -> bool:
        """What is not over the soft threshold no worker would compact: waiting would be in vain."""
        return await self.sessions.due(session_id) and await self.sessions.due(session_id, self.hard)

    async def _room(self, session_id: str) -> None:
        while await self._is_full(session_id):
            await self.sessions.ready(session_id)
            if await self._is_full(session_id):
                await anyio.sleep(_A_MOMENT)

    async def _enqueue(self, session_id: str) -> bool:
        if self._queue is None:
            raise InvalidInput("Without a queue of yours it works inside its `async with` block alone.")
        try:
            await self._queue.enqueue(Job(self.domain, session_id))
        except QueueError as problem:
            log.warning("session %r was not enqueued: %s", session_id, problem)
            return False
        return True
