"""A worker on the queue in Redis or Valkey: jobs come from any producer that speaks BullMQ (W12)."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import anyio
import msgspec

from .bullmq_queue import kept
from .connection import address_of, bullmq, connect, in_words
from .job import Job, JobFailed, QueueError
from .work import Work

log = logging.getLogger("holdfast.jobs")
GIVEN_BACK = "given_back"
_RECONNECTS = 1.0
"""Seconds between two tries to reach a server that is away."""
_LEAVING = 5.0
"""Seconds for giving back what was not finished, and for taking leave of the server."""


class BullMQWorker:
    """Takes jobs while it runs; needs `pip install 'holdfast[bullmq]'`."""

    def __init__(self, url: str, work: Work) -> None:
        self.work = work
        self._settings = work.settings
        self._address = address_of(url)
        self._package = bullmq()
        self._redis = connect(url)
        self._running: set[anyio.CancelScope] = set()

    async def run(self, stop: anyio.Event) -> None:
        """Until it is told to stop. What runs then has the grace time to end, and is given back if it has not."""
        worker = self._worker()
        taking, stopping = asyncio.ensure_future(worker.run()), asyncio.ensure_future(stop.wait())
        try:
            while True:
                await asyncio.wait([taking, stopping], return_when=asyncio.FIRST_COMPLETED)
                if stop.is_set():
                    break
                why = in_words(taking.exception() or QueueError("the worker's loop came to an end"))
                log.warning("the queue at %s cannot be used: %s", self._address, why)
                await asyncio.wait([stopping], timeout=_RECONNECTS)
                worker = self._worker()
                taking = asyncio.ensure_future(worker.run())
            closing = asyncio.ensure_future(worker.close())
            await asyncio.wait([closing], timeout=self._settings.grace if self._running else _LEAVING)
        finally:
            with anyio.CancelScope(shield=True):
                await self._leave(worker)
                for task in (taking, stopping):
                    task.cancel()
                await asyncio.gather(taking, stopping, return_exceptions=True)
                await self._redis.aclose()

    async def ping(self) -> None:
        """QueueError where the server cannot be reached."""
        try:
            await self._redis.ping()
        except Exception as problem:
            raise QueueError(f"The queue at {self._address} cannot be reached: {in_words(problem)}.") from None

    def _worker(self) -> Any:
        settings = self._settings
        worker = self._package.Worker(
            settings.name,
            self._process,
            {
                "connection": self._redis,
                "autorun": False,
                "concurrency": settings.concurrency,
                "lockDuration": round(settings.lock * 1000),
                "stalledInterval": round(settings.lock * 1000),
                "maxStalledCount": settings.attempts - 1,
                "runRetryDelay": round(_RECONNECTS * 1000),
                **kept(settings),
            },
        )
        worker.on("error", lambda problem, *_: log.warning("queue: %s", in_words(problem)))
        worker.on("stalled", lambda name: log.warning("job %r was left by a worker that died: it is run again", name))
        return worker

    async def _leave(self, worker: Any) -> None:
        """Give back what still runs, and end what does not come to an end."""
        for scope in tuple(self._running):
            scope.cancel()
        _, late = await asyncio.wait([asyncio.ensure_future(worker.close())], timeout=_LEAVING)
        if late:
            await worker.close(force=True)

    async def _process(self, job: Any, token: str) -> Any:
        """What BullMQ calls for each job; what it returns and raises is shown there."""
        tries_again = job.attemptsMade + 1 < (job.opts.get("attempts") or 1)
        with anyio.CancelScope() as scope:
            self._running.add(scope)
            try:
                return msgspec.to_builtins(await self.work(self._read(job), tries_again=tries_again))
            except JobFailed as problem:
                kind = RuntimeError if problem.again else self._package.UnrecoverableError
                raise kind(str(problem)) from None
            finally:
                self._running.discard(scope)
        await job.moveToDelayed(round(time.time() * 1000), token)
        self.work.tally.note(GIVEN_BACK)
        log.info("job %r was not finished in time, and was given back", job.id)
        raise self._package.DelayedError

    def _read(self, job: Any) -> Job:
        try:
            return msgspec.convert(job.data, Job)
        except (msgspec.ValidationError, ValueError) as problem:
            why = f'its data is no {{"domain": …, "entityId": …}}: {problem}'
            log.warning("job %r cannot be run: %s", job.id, why)
            raise JobFailed(why, again=False) from None
