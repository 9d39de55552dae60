"""Doing one job: a compaction in rebase mode, if the session is still over its threshold.

Nothing here depends on the queue that brought it. A job that is stale or came twice finds nothing to do, or loses the
race at the commit and says so (S3).
"""

from __future__ import annotations

import logging

import anyio
import msgspec

from ..errors import InvalidInput, UnknownSession
from ..models import scrub
from ..outcome import Outcome
from ..service import SessionService
from .job import Job, JobFailed
from .settings import QueueSettings
from .tally import Tally

log = logging.getLogger("holdfast.jobs")
FAILED = "failed"
"""The outcome of an attempt that has none of a compaction."""


class Done(msgspec.Struct, frozen=True, rename="camel"):
    """What came of a job."""

    outcome: str
    tokens_before: int
    tokens_after: int
    why: str = ""
    round: int = 0


class Work:
    """Runs jobs on a service, whose preset says when and how to compact."""

    def __init__(
        self, sessions: SessionService, settings: QueueSettings | None = None, tally: Tally | None = None
    ) -> None:
        must_have_preset(sessions)
        self.sessions = sessions
        self.settings = settings or QueueSettings()
        self.tally = tally or Tally()

    async def __call__(self, job: Job, *, tries_again: bool = False) -> Done:
        """JobFailed where it came to nothing; `tries_again` says that the queue will try again then."""
        done: Done | None = None
        try:
            with self.tally.job(), anyio.move_on_after(self.settings.deadline):
                done = await self._compact(job, tries_again)
        except JobFailed as problem:
            raise self._failed(job, str(problem)) from None
        except UnknownSession as problem:
            raise self._failed(job, str(problem), again=False) from None
        except Exception as problem:
            log.debug("job %r broke", job.key, exc_info=True)
            raise self._failed(job, f"{type(problem).__name__}: {problem}") from None
        if done is None:
            raise self._failed(job, f"it took over {self.settings.deadline:g} s, the deadline of a job")
        self.tally.note(done.outcome, done.tokens_before - done.tokens_after)
        why = f" ({done.why})" if done.why else ""
        log.info("job %r: %s, %d -> %d tokens%s", job.key, done.outcome, done.tokens_before, done.tokens_after, why)
        return done

    async def _compact(self, job: Job, tries_again: bool) -> Done:
        result = await self.sessions.compact(job.entity_id, on_conflict="rebase", tries_again=tries_again)
        if result.outcome is Outcome.SUMMARY_FAILED:
            raise JobFailed(f"no summary was written: {result.why}")
        if result.outcome is Outcome.CONFLICT and await self.sessions.due(job.entity_id):
            raise JobFailed(f"it lost the race and the session is still over its threshold: {result.why}")
        return Done(result.outcome.value, result.tokens_before, result.tokens_after, result.why, result.round)

    def _failed(self, job: Job, why: str, *, again: bool = True) -> JobFailed:
        self.tally.note(FAILED)
        problem = JobFailed(scrub(why), again=again)
        log.warning("job %r failed: %s", job.key, problem)
        return problem


def must_have_preset(sessions: SessionService) -> None:
    if sessions.preset is None:
        raise InvalidInput("Background compaction goes by a preset: SessionService(store, preset=…).")
