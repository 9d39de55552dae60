"""Background compaction as seen by an application: one call at the end of each turn, one before the next.

Over the soft threshold (the preset's trigger) a compaction is enqueued. A turn waits for one that is running; over the
hard threshold, where no room is left for a reply, also for one that is enqueued.
"""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio

from ..errors import CorruptLog, InvalidInput, NoRoom, QueueError, StoreError, UnknownSession
from ..hooks.timeouts import require_seconds
from ..models import scrub
from ..sessions import Context, SessionService
from ..tokens.budget import DEFAULT_RESERVE
from .queue import SESSION_DOMAIN, InProcessQueue, Job, Queue, QueueSettings
from .runner import JobRunner

if TYPE_CHECKING:
    from ..types import Request, Trigger


log = logging.getLogger("holdfast.jobs")


class Sweeper:
    """Enqueues sessions whose trigger fires. A session is checked again only after its version changed."""

    def __init__(self, sessions: SessionService, queue: Queue, domain: str = SESSION_DOMAIN) -> None:
        self.sessions = sessions
        self.queue = queue
        self.domain = domain
        self._seen: dict[str, int] = {}
        """Session ids with the version at which they were checked."""

    async def sweep_once(self) -> int:
        """Scans the store once; returns how many sessions were enqueued."""
        found, seen = 0, {}
        for record in await self.sessions.list():
            if record.version and self._seen.get(record.id) != record.version:
                try:
                    due = await self.sessions.due(record.id)
                except UnknownSession:
                    continue  # deleted since it was listed
                except Exception as problem:  # one session must not stop the others
                    if isinstance(problem, StoreError) and not isinstance(problem, CorruptLog):
                        raise
                    log.warning("session %s cannot be checked: %s", record.id, scrub(str(problem)))
                    due = False
                if due:
                    await self.queue.enqueue(Job(self.domain, record.id))
                    found += 1
            seen[record.id] = record.version
        self._seen = seen
        return found

    async def sweep_forever(self, every: float) -> None:
        """Sweeps now and every `every` seconds. An unreachable store or queue is retried at the next sweep."""
        while True:
            try:
                await self.sweep_once()
            except Exception as problem:  # the application goes on, whatever a sweep met
                log.warning("the sweep failed: %s", scrub(str(problem)))
            await anyio.sleep(every)


class SweepingWorker:
    """A worker without a queue server: it finds sessions to compact by sweeping the store."""

    def __init__(self, runner: JobRunner) -> None:
        self.runner = runner

    async def run(self, stop: anyio.Event) -> None:
        """Runs until `stop` is set. Running jobs then have the grace period to finish."""
        settings = self.runner.settings
        async with InProcessQueue(self.runner, settings) as queue:
            queue.start_periodic(Sweeper(self.runner.sessions, queue).sweep_forever, settings.sweep)
            await stop.wait()

    async def ping(self) -> None:
        """Does nothing: there is no queue server."""


TURN_TIMEOUT = 60.0
"""Seconds that a turn waits for a compaction."""
_POLL_SECONDS = 0.1
"""Seconds between two checks of a session whose job no worker has started."""


def no_room_for_reply(request: Request) -> bool:
    """The default hard threshold: fires when less than a reply's reserve of the window is free."""
    budget = request.budget
    return budget is not None and request.tokens > budget - min(DEFAULT_RESERVE, budget // 4)


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
        """Returns the context to send, after a running compaction and, over the hard threshold, an enqueued one.

        After `timeout` seconds it logs a warning and returns the context uncompacted, with `timed_out` set, if that
        fits the window, else raises NoRoom.
        """
        require_seconds(timeout)
        with anyio.move_on_after(timeout) as wait:
            await self.sessions.ready(session_id)
            if await self._is_full(session_id):
                await self._enqueue(session_id)
                await self._wait_for_room(session_id)
        context = await self.sessions.context(session_id)
        if wait.cancelled_caught:
            context.timed_out = True
            log.warning("session %r: no compaction ended within %g s, the turn starts uncompacted", session_id, timeout)
        window = self.sessions.window_of(await self.sessions.get(session_id))
        if window is not None and context.tokens > window:
            raise NoRoom(session_id, context.tokens, window, timeout)
        return context

    async def _is_full(self, session_id: str) -> bool:
        """True over both thresholds: below the soft one no worker would compact, so waiting is useless."""
        return await self.sessions.due(session_id) and await self.sessions.due(session_id, self.hard)

    async def _wait_for_room(self, session_id: str) -> None:
        while await self._is_full(session_id):
            await self.sessions.ready(session_id)
            if await self._is_full(session_id):
                await anyio.sleep(_POLL_SECONDS)

    async def _enqueue(self, session_id: str) -> bool:
        if self._queue is None:
            raise InvalidInput("The in-process queue is not running: use BackgroundCompactor in an `async with` block.")
        try:
            await self._queue.enqueue(Job(self.domain, session_id))
        except QueueError as problem:
            log.warning("session %r could not be enqueued: %s", session_id, problem)
            return False
        return True
