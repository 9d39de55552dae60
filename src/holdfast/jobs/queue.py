"""Jobs, the queue protocol with its settings, and the queue inside this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Protocol, Self

import anyio
import msgspec
from anyio.abc import TaskGroup

from ..errors import InvalidInput, JobFailed, QueueError
from ..hooks.timeouts import require_seconds
from ..messages.json_text import decodable
from ..tokens.budget import require_positive

SESSION_DOMAIN = "session"
"""The default domain of jobs."""


@decodable
class Job(msgspec.Struct, frozen=True, rename="camel"):
    """Compact this session if its trigger fires. As JSON: `{"domain": "session", "entityId": "…"}`."""

    domain: str
    """The namespace of the entity: applications that share a queue have one each."""
    entity_id: str
    """The session's id."""

    def __post_init__(self) -> None:
        if not self.domain or ":" in self.domain:
            raise InvalidInput(f"A job's domain must be a word without a colon, not {self.domain!r}.")
        if not self.entity_id:
            raise InvalidInput("A job needs a session: its entity_id must not be empty.")

    @property
    def key(self) -> str:
        """The de-duplication key: at most one job with this key waits at a time."""
        return f"compact:{self.domain}:{self.entity_id}"


class Queue(Protocol):
    """A queue of jobs, de-duplicated by key: a waiting job is not added again, a running one is run once more."""

    async def enqueue(self, job: Job) -> None:
        """Adds a job. Raises QueueError if the queue cannot be reached."""
        ...


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a queue and its workers. Times are in seconds."""

    name: str = "context-compaction"
    concurrency: int = 2
    """Jobs that one worker runs at the same time."""
    attempts: int = 2
    """Maximum attempts, the first one included. A job that may fail makes each model call once per attempt."""
    backoff: float = 3.0
    """Delay before the second attempt, doubled before each further one."""
    deadline: float = 300.0
    """Time limit of one attempt."""
    lock: float = 300.0
    """Lock duration of a job; a live worker renews it."""
    grace: float = 30.0
    """Time that a stopping worker has to finish running jobs before it gives them back."""
    sweep: float = 60.0
    """Interval between two scans of the store for sessions that were not enqueued."""
    keep: int = 1_000
    """Finished jobs, and failed ones, that a BullMQ queue keeps for inspection."""

    def __post_init__(self) -> None:
        if not self.name or ":" in self.name:
            raise InvalidInput(f"A queue's name must be a word without a colon, not {self.name!r}.")
        for count in ("concurrency", "attempts", "keep"):
            require_positive(count, getattr(self, count))
        for seconds in ("backoff", "deadline", "lock", "grace", "sweep"):
            require_seconds(getattr(self, seconds), seconds)

    def retry_delay(self, attempt: int) -> float:
        """Seconds to wait after this attempt, counted from 1."""
        return self.backoff * 2.0 ** (attempt - 1)


class JobHandler(Protocol):
    """A callable such as `JobRunner`; it may raise JobFailed only."""

    def __call__(self, job: Job, *, will_retry: bool) -> Awaitable[object]: ...


class InProcessQueue:
    """Runs its jobs in this process, inside its `async with` block."""

    def __init__(self, handler: JobHandler, settings: QueueSettings | None = None) -> None:
        self._handler = handler
        self._settings = settings or QueueSettings()
        self._waiting: set[str] = set()
        self._running: set[str] = set()
        self._follow_ups: set[str] = set()
        self._group: TaskGroup | None = None
        """None while the queue is closed."""

    async def __aenter__(self) -> Self:
        self._slots, self._idle = anyio.Semaphore(self._settings.concurrency), anyio.Event()
        self._periodic = anyio.CancelScope()
        self._group = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Running jobs may finish within the grace period; waiting ones are dropped and found by the next sweep."""
        group, self._group = self._group, None
        assert group is not None
        self._periodic.cancel()
        try:
            if problem is None and self._running:
                with anyio.move_on_after(self._settings.grace):
                    await self._idle.wait()
        finally:
            group.cancel_scope.cancel()
            await group.__aexit__(None, None, None)

    async def enqueue(self, job: Job) -> None:
        """Starts a job unless it is waiting; if it is running, it is run once more afterwards."""
        if self._group is None:
            raise QueueError("This queue is closed: use it inside its `async with` block.")
        if job.key in self._running:
            self._follow_ups.add(job.key)
        elif job.key not in self._waiting:
            self._waiting.add(job.key)
            self._group.start_soon(self._run, job)

    def start_periodic(self, task: Callable[[float], Awaitable[object]], every: float) -> None:
        """Starts a periodic task, such as a sweep, that is cancelled when the queue closes."""
        assert self._group is not None
        self._group.start_soon(self._run_periodic, task, every)

    async def _run_periodic(self, task: Callable[[float], Awaitable[object]], every: float) -> None:
        with self._periodic:
            await task(every)

    async def _run(self, job: Job) -> None:
        attempt = 1
        while attempt:
            attempt = await self._attempt(job, attempt)
            if attempt > 1:
                await anyio.sleep(self._settings.retry_delay(attempt - 1))

    async def _attempt(self, job: Job, attempt: int) -> int:
        """Runs one attempt; returns the number of the next one, 0 for none. A follow-up run starts at 1 again."""
        key, retry, follow_up = job.key, False, False
        async with self._slots:
            self._waiting.discard(key)
            if self._group is None:
                return 0
            self._running.add(key)
            try:
                retry = await self._try_once(job, attempt)
            finally:
                self._running.discard(key)
                follow_up = key in self._follow_ups
                self._follow_ups.discard(key)
                if not self._running and self._group is None:
                    self._idle.set()
        if not (retry or follow_up):
            return 0
        self._waiting.add(key)
        return attempt + 1 if retry else 1

    async def _try_once(self, job: Job, attempt: int) -> bool:
        """Runs the job; returns whether to retry it."""
        more = attempt < self._settings.attempts
        try:
            await self._handler(job, will_retry=more)
        except JobFailed as problem:
            return more and problem.retryable
        return False
