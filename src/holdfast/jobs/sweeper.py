"""Sweeps the store for sessions to compact, at the start and every minute: without a durable queue, none is missed."""

from __future__ import annotations

import logging

import anyio

from ..errors import CorruptLog, StoreError, UnknownSession
from ..models import scrub
from ..sessions import SessionService
from .queue import SESSION_DOMAIN, InProcessQueue, Job, Queue
from .runner import JobRunner

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
