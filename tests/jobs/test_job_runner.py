"""The job runner: compacts a session still over its threshold, and returns the outcome (W8, W12, S3)."""

from __future__ import annotations

import logging

import anyio
import pytest
from job_sessions import Slow, rounds, service_with, talk, until

from compaction_session import SUMMARY_TEXT, append_turns
from holdfast import MemoryStore, SessionService
from holdfast.errors import StoreError
from holdfast.jobs import Job, JobFailed, JobRunner, QueueSettings
from holdfast.models import Failure, ScriptedModel

pytestmark = pytest.mark.anyio
JOB = Job("session", "s")


async def test_job_runner_returns_outcome_and_tokens() -> None:
    service = service_with()
    await talk(service)
    work = JobRunner(service)
    done = await work(JOB)
    assert (done.outcome, done.round) == ("compacted", 1)
    assert done.tokens_after < done.tokens_before
    facts = work.stats.report()
    assert facts["outcomes"] == {"compacted": 1} and facts["running"] == 0
    assert facts["tokens_saved"] == done.tokens_before - done.tokens_after


async def test_job_runner_writes_one_event() -> None:
    """W8: summary, boundary, state and archived ranges are written in one event, and the lease is released."""
    store = MemoryStore()
    service = service_with(store=store)
    await talk(service)
    await JobRunner(service)(JOB)
    (event,) = await service.events("s", kind="compaction")
    assert event.body["summary"] == SUMMARY_TEXT and event.body["boundary"] == "a4"
    assert [run["first"] for run in event.body["archived"]] == ["u1"]
    assert await store.held("s", "compaction") is None


async def test_job_runner_duplicate_job_finds_nothing_to_do() -> None:
    model = ScriptedModel(SUMMARY_TEXT, repeat=True)
    service = service_with(model)
    await talk(service)
    work = JobRunner(service)
    assert [(await work(JOB)).outcome for _ in range(3)] == ["compacted", "not_needed", "not_needed"]
    assert len(model.calls) == 1 and await rounds(service) == 1


async def test_job_runner_two_workers_make_one_summary() -> None:
    store, model = MemoryStore(), Slow()
    first, second = service_with(model, store), service_with(model, store)
    await talk(first)
    outcomes: list[str] = []

    async def works(service: SessionService) -> None:
        outcomes.append((await JobRunner(service)(JOB)).outcome)

    async with anyio.create_task_group() as group:
        for service in (first, second):
            group.start_soon(works, service)
        await until(lambda: model.asked)
        await anyio.wait_all_tasks_blocked()
        model.goes_on.set()
    assert sorted(outcomes) == ["compacted", "not_needed"]
    assert model.asked == 1 and await rounds(first) == 1


async def test_job_runner_stale_job_returns_conflict() -> None:
    """S3: its lease expired, as after a pause, and another worker was faster."""
    store, model = MemoryStore(), Slow()
    slow, fast = service_with(model, store), service_with(store=store)
    await talk(slow)
    outcomes: list[str] = []

    async def works() -> None:
        outcomes.append((await JobRunner(slow)(JOB)).outcome)

    async with anyio.create_task_group() as group:
        group.start_soon(works)
        await until(lambda: model.asked)
        store._leases.drop("s")
        outcomes.append((await JobRunner(fast)(JOB)).outcome)
        model.goes_on.set()
    assert outcomes == ["compacted", "conflict"]
    assert await rounds(fast) == 1, "never twice for the same boundary"


async def test_job_runner_conflict_over_threshold_is_retryable() -> None:
    model = Slow()
    service = service_with(model)
    await talk(service)
    problems: list[JobFailed] = []

    async def works() -> None:
        with pytest.raises(JobFailed, match="lost the race") as caught:
            await JobRunner(service)(JOB, will_retry=True)
        problems.append(caught.value)

    async with anyio.create_task_group() as group:
        group.start_soon(works)
        await until(lambda: model.asked)
        await service.pin("s", "u1")
        model.goes_on.set()
    assert problems[0].retryable
    assert (await JobRunner(service)(JOB)).outcome == "compacted"


async def test_job_runner_failed_summary_is_retried() -> None:
    model = ScriptedModel([Failure("request", "it would not"), SUMMARY_TEXT])
    service = service_with(model)
    await talk(service)
    work = JobRunner(service)
    with pytest.raises(JobFailed, match=r"the summary failed: .*it would not") as caught:
        await work(JOB, will_retry=True)
    assert caught.value.retryable
    assert (await work(JOB)).outcome == "compacted"
    assert work.stats.report()["outcomes"] == {"failed": 1, "compacted": 1}


async def test_job_runner_after_last_attempt_waits_for_new_messages() -> None:
    service = service_with(ScriptedModel([]))
    await talk(service)
    work = JobRunner(service)
    for will_retry in (True, False):
        with pytest.raises(JobFailed):
            await work(JOB, will_retry=will_retry)
    assert (await work(JOB)).outcome == "breaker_open"
    await append_turns(service, 7, 1)
    with pytest.raises(JobFailed):
        await work(JOB)


async def test_job_runner_deadline_exceeded_fails() -> None:
    store, model = MemoryStore(), Slow()
    service = service_with(model, store)
    await talk(service)
    with pytest.raises(JobFailed, match=r"exceeded the deadline of 0\.05 s") as caught:
        await JobRunner(service, QueueSettings(deadline=0.05))(JOB)
    assert caught.value.retryable
    assert await store.held("s", "compaction") is None and await rounds(service) == 0


async def test_job_runner_unknown_session_is_not_retryable() -> None:
    with pytest.raises(JobFailed, match="There is no session 'nobody'") as caught:
        await JobRunner(service_with())(Job("session", "nobody"))
    assert not caught.value.retryable


async def test_job_runner_errors_and_logs_hide_secrets(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryStore):
        async def session(self, session_id: str) -> None:  # type: ignore[override]
            raise StoreError("postgresql://ada:0s7erhaven@db/sessions cannot be reached: retry.")

    with caplog.at_level(logging.DEBUG, "holdfast.jobs"), pytest.raises(JobFailed, match="cannot be reached") as caught:
        await JobRunner(service_with(store=Broken()))(JOB)
    assert "0s7erhaven" not in str(caught.value)
    assert "0s7erhaven" not in "".join(record.getMessage() for record in caplog.records)
