"""The queue and the worker on Redis or Valkey, compatible with BullMQ's Node clients and Bull Board."""

from __future__ import annotations

import asyncio
import logging
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import msgspec

from ..errors import InvalidInput, JobFailed, QueueError
from ..io.installation import install_command
from ..io.secrets import public_url
from ..models import scrub
from .queue import Job, QueueSettings
from .runner import JobRunner

if TYPE_CHECKING:
    from redis.asyncio import Redis


_URL_SCHEMES = ("redis://", "rediss://", "unix://", "valkey://", "valkeys://")
_COMMAND_RETRIES = 3
"""Retries of one command; the worker itself reconnects without limit."""


def import_bullmq() -> Any:
    """Imports the official BullMQ package, an extra."""
    try:
        import bullmq
    except ModuleNotFoundError:
        raise InvalidInput(f"A queue on Redis needs BullMQ: {install_command('bullmq')}") from None
    return bullmq


def connect_redis(url: str) -> Redis:
    """Creates the Redis client for BullMQ, without connecting yet.

    A worker's read blocks until a job arrives: redis-py's default socket timeout of 5 seconds would fail it each time,
    and longer backoffs would never run. So the socket timeout is off, and only connecting has one.
    """
    if not url.startswith(_URL_SCHEMES):
        raise InvalidInput(f"{scrub(url)!r} is not the URL of a queue: use redis://host:6379, rediss://…, or memory:.")
    import_bullmq()
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import ExponentialBackoff
    from redis.exceptions import BusyLoadingError, ConnectionError, TimeoutError

    try:
        return Redis.from_url(
            url.replace("valkey", "redis", 1) if url.startswith("valkey") else url,
            decode_responses=True,
            socket_timeout=None,
            socket_connect_timeout=5.0,
            socket_keepalive=True,
            retry=Retry(ExponentialBackoff(cap=1.0, base=0.05), _COMMAND_RETRIES),
            retry_on_error=[BusyLoadingError, ConnectionError, TimeoutError],
        )
    except ValueError as problem:
        raise InvalidInput(f"{public_address(url)!r} is not the URL of a queue ({scrub(str(problem))}).") from None


def public_address(url: str) -> str:
    """The URL without user, password and options."""
    return public_url(url)


def error_text(problem: BaseException) -> str:
    """The error message without secrets and without a final period."""
    return scrub(str(problem)).rstrip(".") or type(problem).__name__


JOB_NAME = "compact"
"""The BullMQ name of every job."""
_ENQUEUE_TIMEOUT = 5.0
"""Seconds that `enqueue` waits for the server."""


class BullMQQueue:
    """Enqueues jobs for workers in other processes; needs the extra `bullmq`."""

    def __init__(self, url: str, settings: QueueSettings | None = None) -> None:
        self.settings = settings or QueueSettings()
        self._address = public_address(url)
        self._redis = connect_redis(url)
        self._queue = import_bullmq().Queue(self.settings.name, {"connection": self._redis})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def enqueue(self, job: Job) -> None:
        """Adds a job. One with the same key that is waiting or delayed is de-duplicated by BullMQ."""
        try:
            with anyio.fail_after(_ENQUEUE_TIMEOUT):
                await self._queue.add(JOB_NAME, msgspec.to_builtins(job), job_options(job, self.settings))
        except TimeoutError:
            raise QueueError(f"The queue at {self._address} did not answer in {_ENQUEUE_TIMEOUT:g} s.") from None
        except Exception as problem:
            raise QueueError(f"The queue at {self._address} failed: {error_text(problem)}.") from None

    async def close(self) -> None:
        """Closes the connection to Redis."""
        await self._redis.aclose()


def job_options(job: Job, settings: QueueSettings) -> dict[str, Any]:
    """BullMQ's options of a job; a producer in another language must set the same ones."""
    return {
        "attempts": settings.attempts,
        "backoff": {"type": "exponential", "delay": round(settings.backoff * 1000)},
        "deduplication": {"id": job.key, "keepLastIfActive": True},
        **retention_options(settings),
    }


def retention_options(settings: QueueSettings) -> dict[str, Any]:
    """How many finished and failed jobs BullMQ keeps."""
    return {"removeOnComplete": {"count": settings.keep}, "removeOnFail": {"count": settings.keep}}


log = logging.getLogger("holdfast.jobs")
GIVEN_BACK_OUTCOME = "given_back"
_RECONNECT_SECONDS = 1.0
"""Seconds between two attempts to reconnect."""
_SHUTDOWN_SECONDS = 5.0
"""Seconds for giving back unfinished jobs and closing the connection."""


class BullMQWorker:
    """Runs jobs from a BullMQ queue; needs the extra `bullmq`."""

    def __init__(self, url: str, runner: JobRunner) -> None:
        self.runner = runner
        self._settings = runner.settings
        self._address = public_address(url)
        self._package = import_bullmq()
        self._redis = connect_redis(url)
        self._running: set[anyio.CancelScope] = set()

    async def run(self, stop: anyio.Event) -> None:
        """Runs until `stop` is set. Running jobs then have the grace period to finish, else are given back."""
        worker = self._worker()
        taking, stopping = asyncio.ensure_future(worker.run()), asyncio.ensure_future(stop.wait())
        try:
            while True:
                await asyncio.wait([taking, stopping], return_when=asyncio.FIRST_COMPLETED)
                if stop.is_set():
                    break
                why = error_text(taking.exception() or QueueError("the worker's loop ended"))
                log.warning("the queue at %s failed: %s", self._address, why)
                await asyncio.wait([stopping], timeout=_RECONNECT_SECONDS)
                worker = self._worker()
                taking = asyncio.ensure_future(worker.run())
            closing = asyncio.ensure_future(worker.close())
            await asyncio.wait([closing], timeout=self._settings.grace if self._running else _SHUTDOWN_SECONDS)
        finally:
            with anyio.CancelScope(shield=True):
                await self._shut_down(worker)
                for task in (taking, stopping):
                    task.cancel()
                await asyncio.gather(taking, stopping, return_exceptions=True)
                await self._redis.aclose()

    async def ping(self) -> None:
        """Raises QueueError if the server cannot be reached."""
        try:
            await self._redis.ping()
        except Exception as problem:
            raise QueueError(f"The queue at {self._address} cannot be reached: {error_text(problem)}.") from None

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
                "runRetryDelay": round(_RECONNECT_SECONDS * 1000),
                **retention_options(settings),
            },
        )
        worker.on("error", lambda problem, *_: log.warning("queue: %s", error_text(problem)))
        worker.on("stalled", lambda name: log.warning("job %r stalled, its worker died: it is retried", name))
        return worker

    async def _shut_down(self, worker: Any) -> None:
        """Cancels running jobs, which gives them back, and closes the worker, by force after a timeout."""
        for scope in tuple(self._running):
            scope.cancel()
        _, late = await asyncio.wait([asyncio.ensure_future(worker.close())], timeout=_SHUTDOWN_SECONDS)
        if late:
            await worker.close(force=True)

    async def _process(self, job: Any, token: str) -> Any:
        """BullMQ's callback for each job; its result or error is stored with the job."""
        will_retry = job.attemptsMade + 1 < (job.opts.get("attempts") or 1)
        with anyio.CancelScope() as scope:
            self._running.add(scope)
            try:
                return msgspec.to_builtins(await self.runner(self._read(job), will_retry=will_retry))
            except JobFailed as problem:
                kind = RuntimeError if problem.retryable else self._package.UnrecoverableError
                raise kind(str(problem)) from None
            finally:
                self._running.discard(scope)
        await job.moveToDelayed(round(time.time() * 1000), token)
        self.runner.stats.count(GIVEN_BACK_OUTCOME)
        log.info("job %r was given back: not finished within the grace period", job.id)
        raise self._package.DelayedError

    def _read(self, job: Any) -> Job:
        try:
            return msgspec.convert(job.data, Job)
        except (msgspec.ValidationError, ValueError) as problem:
            why = f'its data is not {{"domain": …, "entityId": …}}: {problem}'
            log.warning("job %r cannot be run: %s", job.id, why)
            raise JobFailed(why, retryable=False) from None
