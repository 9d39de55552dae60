"""Looking through a store for sessions over their threshold that nobody enqueued, as after a crash."""

from __future__ import annotations

import logging

import anyio

from ..errors import HoldfastError, UnknownSession
from ..models import scrub
from ..service import SessionService
from .in_process import InProcessQueue
from .job import SESSION, Job, Queue
from .work import Work

log = logging.getLogger("holdfast.jobs")


class Sweep:
    """A session that was looked at is looked at again only when something has been said in it."""

    def __init__(self, sessions: SessionService, queue: Queue, domain: str = SESSION) -> None:
        self.sessions = sessions
        self.queue = queue
        self.domain = domain
        self._seen: dict[str, int] = {}
        """The version at which each was looked at."""

    async def once(self) -> int:
        """How many were found and enqueued."""
        found, seen = 0, {}
        for record in await self.sessions.list():
            if record.version and self._seen.get(record.id) != record.version:
                try:
                    due = await self.sessions.due(record.id)
                except UnknownSession:
                    continue  # deleted meanwhile
                if due:
                    await self.queue.enqueue(Job(self.domain, record.id))
                    found += 1
            seen[record.id] = record.version
        self._seen = seen
        return found

    async def keep_on(self, every: float) -> None:
        """Sweep now, and from time to time. A store or a queue that cannot be reached is tried again next time."""
        while True:
            try:
                await self.once()
            except HoldfastError as problem:
                log.warning("the sweep was not finished: %s", scrub(str(problem)))
            await anyio.sleep(every)


class SweepingWorker:
    """A worker without a queue's server: it finds its jobs in the store."""

    def __init__(self, work: Work) -> None:
        self.work = work

    async def run(self, stop: anyio.Event) -> None:
        """Until it is told to stop; what runs then has the grace time to end."""
        settings = self.work.settings
        async with InProcessQueue(self.work, settings) as queue:
            queue.run_beside(Sweep(self.work.sessions, queue).keep_on, settings.sweep)
            await stop.wait()

    async def ping(self) -> None:
        """There is nobody to reach."""
