"""The queue that many processes share, on a real server (W12). A job is seen as Node's BullMQ sees it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import pytest
from harbour import Slow, rounds, service_with, talk, until

from holdfast import Failure, ScriptedModel
from holdfast.errors import InvalidInput
from holdfast.jobs import Background, BullMQQueue, BullMQWorker, Job, QueueError, QueueSettings, Work
from hooked import SAID, go_on, message
from servers.running import Server

pytest.importorskip("bullmq", reason="BullMQ is not installed: pip install 'holdfast[bullmq]'")
pytestmark = pytest.mark.anyio
JOB = Job("session", "s")


@asynccontextmanager
async def working(url: str, work: Work) -> AsyncIterator[BullMQWorker]:
    """A worker in this process, until the block ends."""
    stop, worker = anyio.Event(), BullMQWorker(url, work)
    async with anyio.create_task_group() as group:
        group.start_soon(worker.run, stop)
        try:
            yield worker
        finally:
            stop.set()


@asynccontextmanager
async def looking(url: str, settings: QueueSettings) -> AsyncIterator[Any]:
    """The queue as the package itself shows it."""
    from bullmq import Queue

    queue = Queue(settings.name, {"connection": url})
    yield queue
    await queue.close()


async def counts(queue: Any) -> dict[str, int]:
    found = await queue.getJobCounts("waiting", "active", "delayed", "completed", "failed")
    return {name: count for name, count in found.items() if count}


async def settled(queue: Any, **wanted: int) -> None:
    async def so() -> bool:
        return await counts(queue) == wanted

    await until(so)


async def test_a_job_goes_from_a_turns_end_to_a_worker(redis_url: str, settings: QueueSettings) -> None:
    service = service_with()
    await talk(service)
    async with BullMQQueue(redis_url, settings) as queue, looking(redis_url, settings) as seen:
        assert await Background(service, queue).on_turn_end("s")
        assert await counts(seen) == {"waiting": 1}
        async with working(redis_url, Work(service, settings)):
            await settled(seen, completed=1)
        assert await rounds(service) == 1
        (job,) = await seen.getCompleted()
        assert (job.name, job.data) == ("compact", {"domain": "session", "entityId": "s"})
        assert job.returnvalue["outcome"] == "compacted"
        assert job.returnvalue["tokensAfter"] < job.returnvalue["tokensBefore"]


async def test_the_numbers_stand_in_the_job_as_the_document_has_them(redis_url: str, settings: QueueSettings) -> None:
    """W12: 2 attempts in all, exponential backoff from 3 s, de-duplicated by key with one follow-up kept."""
    settings = QueueSettings(name=settings.name)
    async with BullMQQueue(redis_url, settings) as queue, looking(redis_url, settings) as seen:
        await queue.enqueue(JOB)
        (job,) = await seen.getWaiting()
        assert job.opts["attempts"] == 2
        assert job.opts["backoff"] == {"type": "exponential", "delay": 3000}
        assert job.opts["deduplication"] == {"id": "compact:session:s", "keepLastIfActive": True}
        assert await seen.getDeduplicationJobId("compact:session:s") == job.id
    worker = BullMQWorker(redis_url, Work(service_with(), settings))._worker()
    assert {name: worker.opts[name] for name in ("concurrency", "lockDuration", "maxStalledCount")} == {
        "concurrency": 2,
        "lockDuration": 30_000,
        "maxStalledCount": 1,
    }
    assert worker.name == settings.name and QueueSettings().name == "context-compaction"
    await worker.close()


async def test_a_job_that_waits_already_is_not_taken_twice(redis_url: str, settings: QueueSettings) -> None:
    async with BullMQQueue(redis_url, settings) as queue, looking(redis_url, settings) as seen:
        for name in ("s", "s", "t", "s"):
            await queue.enqueue(Job("session", name))
        assert await counts(seen) == {"waiting": 2}


async def test_one_follow_up_is_kept_for_what_came_while_it_ran(redis_url: str, settings: QueueSettings) -> None:
    model = Slow()
    service = service_with(model)
    await talk(service)
    async with BullMQQueue(redis_url, settings) as queue, looking(redis_url, settings) as seen:
        await queue.enqueue(JOB)
        async with working(redis_url, Work(service, settings)):
            await until(lambda: model.asked)
            await go_on(service, 7, 5)
            for _ in range(3):
                await queue.enqueue(JOB)
            assert await counts(seen) == {"active": 1}, "never two at once"
            model.goes_on.set()
            await settled(seen, completed=2)
        assert await rounds(service) == 2
        assert sorted(job.returnvalue["outcome"] for job in await seen.getCompleted()) == ["compacted"] * 2
        await queue.enqueue(JOB)
        assert await counts(seen) == {"waiting": 1, "completed": 2}, "its key is free again"


async def test_two_jobs_run_at_once_and_no_more(redis_url: str, settings: QueueSettings) -> None:
    model, names = Slow(), ("s", "t", "u", "v")
    service = service_with(model)
    await talk(service, *names)
    async with BullMQQueue(redis_url, settings) as queue, looking(redis_url, settings) as seen:
        for name in names:
            await queue.enqueue(Job("session", name))
        async with working(redis_url, Work(service, settings)):
            await settled(seen, active=2, waiting=2)
            await until(lambda: model.asked == 2)
            model.goes_on.set()
            await settled(seen, completed=4)
    assert model.most_at_once == 2


async def test_one_that_fails_is_tried_again_after_a_pause(redis_url: str, settings: QueueSettings) -> None:
    service = service_with(ScriptedModel([Failure("request", "it would not"), SAID]))
    await talk(service)
    async with BullMQQueue(redis_url, settings) as queue, looking(redis_url, settings) as seen:
        await queue.enqueue(JOB)
        async with working(redis_url, Work(service, settings)):
            await settled(seen, completed=1)
        (job,) = await seen.getCompleted()
        assert job.attemptsMade == 2
        assert "it would not" in job.failedReason
    assert await rounds(service) == 1


async def test_after_two_attempts_it_has_failed_and_the_next_turn_may_ask_again(
    redis_url: str, settings: QueueSettings
) -> None:
    model = ScriptedModel(Failure("request", "it would not"), repeat=True)
    service = service_with(model)
    await talk(service)
    async with BullMQQueue(redis_url, settings) as queue, looking(redis_url, settings) as seen:
        await queue.enqueue(JOB)
        async with working(redis_url, Work(service, settings)):
            await settled(seen, failed=1)
        assert len(model.calls) == 2
        background = Background(service, queue)
        assert not await background.on_turn_end("s"), "nothing has been said since"
        await service.append("s", message("u7"))
        assert await background.on_turn_end("s")
        assert await counts(seen) == {"waiting": 1, "failed": 1}


async def test_a_job_over_its_deadline_is_a_failed_attempt(redis_url: str, settings: QueueSettings) -> None:
    settings = msgspec.structs.replace(settings, deadline=0.05)
    model = Slow()
    service = service_with(model)
    await talk(service)
    async with BullMQQueue(redis_url, settings) as queue, looking(redis_url, settings) as seen:
        await queue.enqueue(JOB)
        async with working(redis_url, Work(service, settings)):
            await settled(seen, failed=1)
        (job,) = await seen.getFailed()
        assert "the deadline of a job" in job.failedReason and job.attemptsMade == 2
    assert model.asked == 2 and await rounds(service) == 0


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"domain": "session", "entityId": "nobody"}, "There is no session 'nobody'"),
        ({"entity": "s"}, "its data is no"),
        ({"domain": "a:b", "entityId": "s"}, "a word without a colon"),
        ("s", "its data is no"),
    ],
)
async def test_a_job_that_makes_no_sense_fails_once_and_says_why(
    redis_url: str, settings: QueueSettings, data: Any, why: str
) -> None:
    async with looking(redis_url, settings) as seen:
        await seen.add("compact", data, {"attempts": 5})
        async with working(redis_url, Work(service_with(), settings)):
            await settled(seen, failed=1)
        (job,) = await seen.getFailed()
        assert why in job.failedReason and job.attemptsMade == 1


async def test_a_worker_that_is_told_to_stop_ends_what_it_has_begun(redis_url: str, settings: QueueSettings) -> None:
    model = Slow()
    service = service_with(model)
    await talk(service, "s", "t")
    settings = msgspec.structs.replace(settings, concurrency=1)
    async with BullMQQueue(redis_url, settings) as queue, looking(redis_url, settings) as seen:
        for name in ("s", "t"):
            await queue.enqueue(Job("session", name))
        async with anyio.create_task_group() as group, working(redis_url, Work(service, settings)):
            await until(lambda: model.asked)
            group.start_soon(_later, model.goes_on)
        assert await counts(seen) == {"completed": 1, "waiting": 1}


async def _later(event: anyio.Event) -> None:
    await anyio.sleep(0.05)
    event.set()


async def test_what_it_cannot_end_in_time_is_given_back_and_costs_no_attempt(
    redis_url: str, settings: QueueSettings
) -> None:
    model = Slow()
    service = service_with(model)
    await talk(service)
    work = Work(service, msgspec.structs.replace(settings, grace=0.05))
    async with BullMQQueue(redis_url, settings) as queue, looking(redis_url, settings) as seen:
        await queue.enqueue(JOB)
        async with working(redis_url, work):
            await until(lambda: model.asked)
        assert work.tally.facts()["outcomes"] == {"given_back": 1}
        assert await counts(seen) == {"delayed": 1}
        model.goes_on.set()
        async with working(redis_url, Work(service, settings)):
            await settled(seen, completed=1)
        (job,) = await seen.getCompleted()
        assert job.attemptsMade == 1


async def test_a_job_whose_worker_died_is_run_by_another(redis_url: str, settings: QueueSettings) -> None:
    """As if it had been killed: its lock is there for a while, and nobody renews it."""
    service = service_with()
    await talk(service)
    async with BullMQQueue(redis_url, settings) as queue, looking(redis_url, settings) as seen:
        await queue.enqueue(JOB)
        await seen.backend.moveToActive("dead", {"lockDuration": 200})
        assert await counts(seen) == {"active": 1}
        await queue.enqueue(JOB)
        async with working(redis_url, Work(service, settings)):
            await settled(seen, completed=2)
        outcomes = {job.returnvalue["outcome"] for job in await seen.getCompleted()}
    assert outcomes == {"compacted", "not_needed"} and await rounds(service) == 1


async def test_finished_jobs_do_not_fill_the_server(redis_url: str, settings: QueueSettings) -> None:
    settings = msgspec.structs.replace(settings, keep=2)
    service = service_with()
    await talk(service, *"abcde", turns=1)
    async with BullMQQueue(redis_url, settings) as queue, looking(redis_url, settings) as seen:
        work = Work(service, settings)
        async with working(redis_url, work):
            for name in "abcde":
                await queue.enqueue(Job("session", name))
            await until(lambda: work.tally.facts()["jobs"] == 5)
            await settled(seen, completed=2)


# -- servers that are not there, and what is said about them ---------------------------------------------------------


async def test_a_server_that_is_away_is_told_without_its_password(caplog: pytest.LogCaptureFixture) -> None:
    url = "redis://ada:0s7erhaven@127.0.0.1:1/0?socket_connect_timeout=1"
    async with BullMQQueue(url) as queue:
        with pytest.raises(QueueError, match=r"The queue at redis://127\.0\.0\.1:1/0 cannot be used") as caught:
            await queue.enqueue(JOB)
    assert "0s7erhaven" not in str(caught.value)
    with caplog.at_level(logging.DEBUG, "holdfast"):
        async with working(url, Work(service_with())) as worker:
            with pytest.raises(QueueError, match="cannot be reached"):
                await worker.ping()
            await until(lambda: "cannot be used" in caplog.text)
    assert "0s7erhaven" not in caplog.text


async def test_a_server_that_was_restarted_is_found_again() -> None:
    settings, service = QueueSettings(lock=1.0), service_with()
    await talk(service, "s", "t")
    with Server("valkey") as server:
        async with BullMQQueue(server.url, settings) as queue, working(server.url, Work(service, settings)):
            await queue.enqueue(JOB)
            await until(lambda: rounds(service, "s"))
            await anyio.to_thread.run_sync(server.kill)
            with pytest.raises(QueueError, match="cannot be used"):
                await queue.enqueue(Job("session", "t"))
            await anyio.to_thread.run_sync(server.start)
            await queue.enqueue(Job("session", "t"))
            await until(lambda: rounds(service, "t"))


async def test_a_worker_answers_whether_its_server_is_there(redis_url: str) -> None:
    async with working(redis_url, Work(service_with())) as worker:
        await worker.ping()


@pytest.mark.parametrize("url", ["http://ada:0s7erhaven@host", "redis", "", "redis://host:port"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        BullMQQueue(url)
    assert "0s7erhaven" not in str(caught.value)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "bullmq", None)
    with pytest.raises(InvalidInput, match=r"pip install 'holdfast\[bullmq\]'"):
        BullMQQueue("redis://localhost")
