"""The job runner: one compaction in rebase mode, if the session is still over its threshold.

It does not depend on the queue. A stale or duplicate job finds nothing to do, or loses the compare-and-set at the
commit and returns a conflict.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import msgspec

from ..compaction import Policy
from ..errors import JobFailed, Outcome, UnknownSession
from ..messages.json_text import decodable
from ..models import scrub
from ..sessions import SessionService
from .queue import Job, QueueSettings


class JobStats:
    """Counts jobs and their durations since the worker was started."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._outcomes: Counter[str] = Counter()
        self._running = self._tokens_saved = 0
        self._seconds = self._longest = 0.0
        self.healed_views: Callable[[], int] = lambda: 0
        """Number of views that differed from their log, of the service that runs the jobs."""

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measures one attempt, also if it fails."""
        started = time.monotonic()
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            seconds = time.monotonic() - started
            self._seconds += seconds
            self._longest = max(self._longest, seconds)

    def count(self, outcome: str, tokens_saved: int = 0) -> None:
        """Counts one finished job by its outcome."""
        self._outcomes[str(outcome)] += 1
        self._tokens_saved += tokens_saved

    def report(self) -> dict[str, Any]:
        """Returns the counts and durations as JSON values."""
        return {
            "up_seconds": round(time.monotonic() - self._since, 3),
            "running": self._running,
            "jobs": sum(self._outcomes.values()),
            "outcomes": dict(self._outcomes),
            "seconds_total": round(self._seconds, 3),
            "seconds_longest": round(self._longest, 3),
            "tokens_saved": self._tokens_saved,
            "healed_views": self.healed_views(),
        }


log = logging.getLogger("holdfast.jobs")
FAILED_OUTCOME = "failed"
"""The outcome counted for an attempt that raised."""


@decodable
class JobResult(msgspec.Struct, frozen=True, rename="camel"):
    """The outcome of a job, stored by BullMQ as its return value."""

    outcome: Outcome
    tokens_before: int
    tokens_after: int
    why: str = ""
    round: int = 0


class JobRunner:
    """Runs jobs on a service, whose preset defines when and how to compact."""

    def __init__(
        self, sessions: SessionService, settings: QueueSettings | None = None, stats: JobStats | None = None
    ) -> None:
        self.sessions = sessions
        self.settings = settings or QueueSettings()
        self.stats = stats or JobStats()
        self.stats.healed_views = lambda: sessions.healed_views

    async def __call__(self, job: Job, *, will_retry: bool = False) -> JobResult:
        """Runs a job. Raises JobFailed if the attempt failed; `will_retry`: the queue has attempts left."""
        done: JobResult | None = None
        try:
            with self.stats.timed(), anyio.move_on_after(self.settings.deadline):
                done = await self._compact(job, will_retry)
        except JobFailed as problem:
            raise self._failed(job, str(problem)) from None
        except UnknownSession as problem:
            raise self._failed(job, str(problem), retryable=False) from None
        except Exception as problem:
            log.debug("job %r raised", job.key, exc_info=True)
            raise self._failed(job, f"{type(problem).__name__}: {problem}") from None
        if done is None:
            raise self._failed(job, f"it exceeded the deadline of {self.settings.deadline:g} s")
        self.stats.count(done.outcome, done.tokens_before - done.tokens_after)
        why = f" ({done.why})" if done.why else ""
        log.info("job %r: %s, %d -> %d tokens%s", job.key, done.outcome, done.tokens_before, done.tokens_after, why)
        return done

    async def _compact(self, job: Job, will_retry: bool) -> JobResult:
        policy = await self.sessions.policy(job.entity_id)
        result = await self.sessions.compact(
            job.entity_id, on_conflict="rebase", preset=self._with_limits(policy), record_failure=not will_retry
        )
        if result.outcome is Outcome.SUMMARY_FAILED:
            raise JobFailed(f"the summary failed: {result.why}")
        if result.outcome is Outcome.CONFLICT and await self.sessions.due(job.entity_id):
            raise JobFailed(f"it lost the race, and the session is still over its threshold: {result.why}")
        return JobResult(result.outcome, result.tokens_before, result.tokens_after, result.why, result.round)

    @staticmethod
    def _with_limits(policy: Policy) -> Policy:
        """Where a failed summary fails the job, the queue's attempts are all there are: calls are not retried as well.

        Other presets fall back in the same attempt, and keep their own retries.
        """
        if getattr(policy.strategy, "last_resort", None) not in ("unchanged", "ask", "error"):
            return policy
        return policy.changed(limits=msgspec.structs.replace(policy.limits, attempts=1))

    def _failed(self, job: Job, why: str, *, retryable: bool = True) -> JobFailed:
        self.stats.count(FAILED_OUTCOME)
        problem = JobFailed(scrub(why), retryable=retryable)
        log.warning("job %r failed: %s", job.key, problem)
        return problem
