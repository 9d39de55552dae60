"""Background compaction as seen by an application: one call at the end of each turn, one before the next.

Over the soft threshold (the preset's trigger) a compaction is enqueued. The lease of the session decides who compacts:
a turn waits for a worker that holds it. Over the hard threshold, where no room is left for a reply, it also waits for
a worker to begin, at most as long as a lease lasts, and then compacts without a model.
"""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio

from ..context import Request
from ..errors import InvalidInput, QueueError
from ..hooks.timeouts import require_seconds
from ..sessions import Context, SessionService
from ..sessions.steps import SessionSteps
from .queue import SESSION_DOMAIN, InProcessQueue, Job, Queue, QueueSettings
from .runner import JobRunner
from .sweeper import Sweeper

if TYPE_CHECKING:
    from ..types import Trigger


log = logging.getLogger("holdfast.jobs")
TURN_TIMEOUT = 60.0
"""Seconds that a turn waits for a compaction."""
_POLL_SECONDS = 0.1
"""Seconds between two checks of a session whose job no worker has started."""


def no_room_for_reply(request: Request) -> bool:
    """The default hard threshold: fires when less than a reply's reserve of the window is free."""
    return request.budget is not None and request.tokens > request.budget


class BackgroundCompactor:
    """Compacts the sessions of a service in the background, with the service's preset.

    Without a queue, jobs run in this process inside the `async with` block. With one, workers run them:
    `Background(sessions, BullMQQueue("redis://…"))`, and `holdfast worker` somewhere.
    """

    def __init__(
        self,
        sessions: SessionService,
        queue: Queue | None = None,
        *,
        settings: QueueSettings | None = None,
        hard: Trigger = no_room_for_reply,
        domain: str = SESSION_DOMAIN,
    ) -> None:
        self.sessions = sessions
        self.settings = settings or QueueSettings()
        self.hard = hard
        self.domain = domain
        self._own = None if queue is not None else InProcessQueue(JobRunner(sessions, self.settings), self.settings)
        self._queue = queue

    async def __aenter__(self) -> Self:
        if self._own is not None:
            self._queue = await self._own.__aenter__()
            sweeper = Sweeper(self.sessions, self._own, self.domain)
            self._own.start_periodic(sweeper.sweep_forever, self.settings.sweep)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._own is not None:
            await self._own.__aexit__(kind, problem, trace)

    async def on_turn_end(self, session_id: str) -> bool:
        """Checks the context against the preset's trigger; if it fires, enqueues a compaction.

        Returns True if a job was enqueued. An unreachable queue is only logged: the next turn's end tries again.
        """
        return await self.sessions.due(session_id) and await self._enqueue(session_id)

    async def before_turn(
        self,
        session_id: str,
        timeout: float = TURN_TIMEOUT,  # noqa: ASYNC109 - a timeout leads to a fallback, not to a cancellation
    ) -> Context:
        """Returns the context to send, after a running compaction; over the hard threshold it makes room itself.

        A running compaction is waited for until `timeout`, then a warning is logged and `timed_out` is set. Raises
        NoRoom, with the smallest context, if nothing more can be archived and the context exceeds the window.
        """
        require_seconds(timeout)
        with anyio.move_on_after(timeout) as wait:
            await self.sessions.ready(session_id)
            if await self._is_full(session_id):
                await self._enqueue(session_id)
                await self._wait_for_worker(session_id)
        if wait.cancelled_caught:
            log.warning("session %r: no compaction ended within %g s", session_id, timeout)
        context = await self._make_room(session_id)
        context.timed_out = wait.cancelled_caught
        return context

    async def _is_full(self, session_id: str) -> bool:
        """True over both thresholds: below the soft one no worker would compact, so waiting is useless."""
        return await self.sessions.due(session_id) and await self.sessions.due(session_id, self.hard)

    async def _wait_for_worker(self, session_id: str) -> None:
        """Waits while the session is full: at most a lease for a worker to begin, then until that one ends."""
        latest = anyio.current_time() + self.sessions.lease_seconds
        while await self._is_full(session_id) and anyio.current_time() < latest:
            await anyio.sleep(min(_POLL_SECONDS, self.sessions.lease_seconds))
            await self.sessions.ready(session_id)

    async def _make_room(self, session_id: str) -> Context:
        """Compacts without a model where no reply would fit."""
        steps = SessionSteps(self.sessions, session_id)
        context, _ = await steps.make_room(0 if await self._is_full(session_id) else None)
        await steps.require_room(context)
        return context

    async def _enqueue(self, session_id: str) -> bool:
        if self._queue is None:
            raise InvalidInput("The in-process queue is not running: use BackgroundCompactor in an `async with` block.")
        try:
            await self._queue.enqueue(Job(self.domain, session_id))
        except QueueError as problem:
            log.warning("session %r could not be enqueued: %s", session_id, problem)
            return False
        return True
