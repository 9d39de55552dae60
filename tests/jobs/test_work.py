"""One job: compacts what is still over its threshold, and says what came of it (W8, W12, S3)."""

from __future__ import annotations

import logging

import anyio
import pytest
from harbour import PRESET, Slow, rounds, service_with, talk, until

from holdfast import Failure, MemoryStore, ScriptedModel, SessionService
from holdfast.errors import InvalidInput, StoreError
from holdfast.jobs import Job, JobFailed, QueueSettings, Work
from hooked import SAID, go_on

pytestmark = pytest.mark.anyio
JOB = Job("session", "s")


async def test_a_job_says_what_came_of_it() -> None:
    service = service_with()
    await talk(service)
    work = Work(service)
    done = await work(JOB)
    assert (done.outcome, done.round) == ("compacted", 1)
    assert done.tokens_after < done.tokens_before
    facts = work.tally.facts()
    assert facts["outcomes"] == {"compacted": 1} and facts["running"] == 0
    assert facts["tokens_saved"] == done.tokens_before - done.tokens_after


async def test_all_of_it_is_one_event() -> None:
    """W8: summary, boundary, state and what was archived are written in one step, and the flag is down."""
    store = MemoryStore()
    service = service_with(store=store)
    await talk(service)
    await Work(service)(JOB)
    (event,) = await service.events("s", kind="compaction")
    assert event.body["summary"] == SAID and event.body["boundary"] == "a4"
    assert [run["first"] for run in event.body["archived"]] == ["u1"]
    assert await store.held("s") is None


async def test_a_job_that_came_twice_finds_nothing_to_do() -> None:
    model = ScriptedModel(SAID, repeat=True)
    service = service_with(model)
    await talk(service)
    work = Work(service)
    assert [(await work(JOB)).outcome for _ in range(3)] == ["compacted", "not_needed", "not_needed"]
    assert len(model.calls) == 1 and await rounds(service) == 1


async def test_two_workers_with_the_same_job_pay_for_one_summary() -> None:
    store, model = MemoryStore(), Slow()
    first, second = service_with(model, store), service_with(model, store)
    await talk(first)
    outcomes: list[str] = []

    async def works(service: SessionService) -> None:
        outcomes.append((await Work(service)(JOB)).outcome)

    async with anyio.create_task_group() as group:
        for service in (first, second):
            group.start_soon(works, service)
        await until(lambda: model.asked)
        await anyio.wait_all_tasks_blocked()
        model.goes_on.set()
    assert sorted(outcomes) == ["compacted", "not_needed"]
    assert model.asked == 1 and await rounds(first) == 1


async def test_a_stale_job_loses_the_race_and_says_so() -> None:
    """S3: its flag was lost, as after a pause, and somebody else was faster."""
    store, model = MemoryStore(), Slow()
    slow, fast = service_with(model, store), service_with(store=store)
    await talk(slow)
    outcomes: list[str] = []

    async def works() -> None:
        outcomes.append((await Work(slow)(JOB)).outcome)

    async with anyio.create_task_group() as group:
        group.start_soon(works)
        await until(lambda: model.asked)
        store._lease.forget("s")
        outcomes.append((await Work(fast)(JOB)).outcome)
        model.goes_on.set()
    assert outcomes == ["compacted", "conflict"]
    assert await rounds(fast) == 1, "never twice for the same boundary"


async def test_one_that_lost_and_is_needed_still_is_tried_again() -> None:
    model = Slow()
    service = service_with(model)
    await talk(service)
    problems: list[JobFailed] = []

    async def works() -> None:
        with pytest.raises(JobFailed, match="lost the race") as caught:
            await Work(service)(JOB, tries_again=True)
        problems.append(caught.value)

    async with anyio.create_task_group() as group:
        group.start_soon(works)
        await until(lambda: model.asked)
        await service.pin("s", "u1")
        model.goes_on.set()
    assert problems[0].again
    assert (await Work(service)(JOB)).outcome == "compacted"


async def test_a_summary_that_failed_is_a_failed_job_and_the_second_attempt_is_a_real_one() -> None:
    model = ScriptedModel([Failure("request", "it would not"), SAID])
    service = service_with(model)
    await talk(service)
    work = Work(service)
    with pytest.raises(JobFailed, match=r"no summary was written: .*it would not") as caught:
        await work(JOB, tries_again=True)
    assert caught.value.again
    assert (await work(JOB)).outcome == "compacted"
    assert work.tally.facts()["outcomes"] == {"failed": 1, "compacted": 1}


async def test_after_the_last_attempt_it_waits_for_something_to_be_said() -> None:
    service = service_with(ScriptedModel([]))
    await talk(service)
    work = Work(service)
    for tries_again in (True, False):
        with pytest.raises(JobFailed):
            await work(JOB, tries_again=tries_again)
    assert (await work(JOB)).outcome == "breaker_open"
    await go_on(service, 7, 1)
    with pytest.raises(JobFailed):
        await work(JOB)


async def test_a_job_has_a_deadline() -> None:
    store, model = MemoryStore(), Slow()
    service = service_with(model, store)
    await talk(service)
    with pytest.raises(JobFailed, match=r"over 0\.05 s, the deadline of a job") as caught:
        await Work(service, QueueSettings(deadline=0.05))(JOB)
    assert caught.value.again
    assert await store.held("s") is None and await rounds(service) == 0


async def test_a_session_that_there_is_not_cannot_be_tried_again() -> None:
    with pytest.raises(JobFailed, match="There is no session 'nobody'") as caught:
        await Work(service_with())(Job("session", "nobody"))
    assert not caught.value.again


async def test_no_secret_of_an_address_reaches_a_reason_or_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryStore):
        async def session(self, session_id: str) -> None:  # type: ignore[override]
            raise StoreError("postgresql://ada:0s7erhaven@db/sessions cannot be reached: retry.")

    with caplog.at_level(logging.DEBUG, "holdfast.jobs"), pytest.raises(JobFailed, match="cannot be reached") as caught:
        await Work(service_with(store=Broken()))(JOB)
    assert "0s7erhaven" not in str(caught.value)
    assert "0s7erhaven" not in "".join(record.getMessage() for record in caplog.records)


def test_it_needs_a_preset() -> None:
    with pytest.raises(InvalidInput, match="goes by a preset"):
        Work(SessionService(MemoryStore()))
    assert Work(SessionService(MemoryStore(), preset=PRESET)).settings == QueueSettings()
