"""State of a BullMQ queue for people who look at it: counts, connected workers, and the newest jobs of each state."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec

from ..errors import QueueError
from .bullmq import connect_redis, error_text, import_bullmq, public_address
from .queue import Job, QueueSettings
from .runner import JobResult

STATES = ("active", "waiting", "delayed", "failed", "completed")
MAX_JOBS = 20
"""Jobs of each state in a status."""
_MAX_TEXT = 500
_TIMEOUT = 5.0


class QueuedJob(msgspec.Struct, frozen=True):
    """A job in the queue. Times are seconds since 1970; 0 is not yet."""

    session_id: str
    """Empty if its data is not a job of ours."""
    state: str
    attempts: int
    """Attempts that have ended."""
    added: float
    started: float
    finished: float
    outcome: str
    """Outcome of a completed job, or the reason of a failed one."""


class ConnectedWorker(msgspec.Struct, frozen=True):
    """A connection of a worker to the queue's server."""

    address: str
    connected: int
    """Seconds since it connected."""
    idle: int
    """Seconds since its last command."""


class QueueStatus(msgspec.Struct, frozen=True):
    name: str
    address: str
    paused: bool
    counts: dict[str, int]
    workers: tuple[ConnectedWorker, ...]
    jobs: tuple[QueuedJob, ...]


class QueueReader:
    """Reads a queue without changing it; needs the extra `bullmq`."""

    def __init__(self, url: str, name: str | None = None) -> None:
        self._name = name or QueueSettings().name
        self._address = public_address(url)
        self._redis = connect_redis(url)
        self._queue = import_bullmq().Queue(self._name, {"connection": self._redis})

    async def read(self) -> QueueStatus:
        """Raises QueueError if the queue cannot be reached."""
        try:
            with anyio.fail_after(_TIMEOUT):
                counts = await self._queue.getJobCounts(*STATES)
                jobs = [job for state in STATES for job in await self._jobs(state)]
                workers = await self._queue.get_workers()
                paused = bool(await self._queue.isPaused())
        except TimeoutError:
            raise QueueError(f"The queue at {self._address} did not answer in {_TIMEOUT:g} s.") from None
        except Exception as problem:
            raise QueueError(f"The queue at {self._address} cannot be read: {error_text(problem)}.") from None
        connected = tuple(_worker(one) for one in workers[:MAX_JOBS])
        return QueueStatus(self._name, self._address, paused, counts, connected, tuple(jobs))

    async def _jobs(self, state: str) -> list[QueuedJob]:
        oldest_first = state not in ("failed", "completed")
        found = await self._queue.getJobs([state], 0, MAX_JOBS - 1, oldest_first)
        return [_job(one, state) for one in found[:MAX_JOBS]]

    async def close(self) -> None:
        await self._redis.aclose()


def _worker(client: dict[str, Any]) -> ConnectedWorker:
    age, idle = (int(text) if (text := str(client.get(name, ""))).isdecimal() else 0 for name in ("age", "idle"))
    return ConnectedWorker(str(client.get("addr", "")), age, idle)


def _job(job: Any, state: str) -> QueuedJob:
    try:
        session_id = msgspec.convert(job.data, Job).entity_id
    except (msgspec.ValidationError, ValueError):
        session_id = ""
    return QueuedJob(
        session_id,
        state,
        job.attemptsMade,
        (job.timestamp or 0) / 1000,
        (job.processedOn or 0) / 1000,
        (job.finishedOn or 0) / 1000,
        _outcome(job)[:_MAX_TEXT],
    )


def _outcome(job: Any) -> str:
    if job.failedReason:
        return str(job.failedReason)
    try:
        done = msgspec.convert(job.returnvalue, JobResult)
    except (msgspec.ValidationError, ValueError):
        return ""
    why = f" ({done.why})" if done.why else ""
    return f"{done.outcome.value}, {done.tokens_before:,} → {done.tokens_after:,} tokens{why}"
