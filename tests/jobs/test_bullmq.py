"""The BullMQ queue and worker on a real server (W12), checked with the BullMQ package itself."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import pytest
from job_sessions import Slow, rounds, service_with, talk, until

from compaction_session import SUMMARY_TEXT, append_turns, make_message
from holdfast.errors import InvalidInput
from holdfast.io.installation import install_command
from holdfast.jobs import BackgroundCompactor, BullMQQueue, BullMQWorker, Job, JobRunner, QueueError, QueueSettings
from holdfast.models import Failure, ScriptedModel
from servers.server import Server
from time_limits import GROWING_LIMITS

pytest.importorskip("bullmq", reason="BullMQ is not installed: the extra bullmq")
pytestmark = pytest.mark.anyio
JOB = Job("session", "s")


@asynccontextmanager
async def running_worker(url: str, work: JobRunner) -> AsyncIterator[BullMQWorker]:
    """Runs a worker in this process until the block ends."""
    stop, worker = anyio.Event(), BullMQWorker(url, work)
    async with anyio.create_task_group() as group:
        group.start_soon(worker.run, stop)
        try:
            yield worker
        finally:
            stop.set()


@asynccontextmanager
async def bullmq_queue(url: str, settings: QueueSettings) -> AsyncIterator[Any]:
    """The queue as the BullMQ package sees it."""
    from bullmq import Queue

    queue = Queue(settings.name, {"connection": url})
    yield queue
    await queue.close()


async def counts(queue: Any) -> dict[str, int]:
    found = await queue.getJobCounts("waiting", "active", "delayed", "completed", "failed")
    return {name: count for name, count in found.items() if count}


async def until_counts(queue: Any, **wanted: int) -> None:
    async def so() -> bool:
        return await counts(queue) == wanted

    await until(so)


async def test_bullmq_job_goes_from_turn_end_to_worker(redis_url: str, settings: QueueSettings) -> None:
    service = service_with()
    await talk(service)
    async with BullMQQueue(redis_url, settings) as queue, bullmq_queue(redis_url, settings) as seen:
        assert await BackgroundCompactor(service, queue).on_turn_end("s")
        assert await counts(seen) == {"waiting": 1}
        async with running_worker(redis_url, JobRunner(service, settings)):
            await until_counts(seen, completed=1)
        assert await rounds(service) == 1
        (job,) = await seen.getCompleted()
        assert (job.name, job.data) == ("compact", {"domain": "session", "entityId": "s"})
        assert job.returnvalue["outcome"] == "compacted"
        assert job.returnvalue["tokensAfter"] < job.returnvalue["tokensBefore"]


async def test_bullmq_job_options_match_the_document(redis_url: str, settings: QueueSettings) -> None:
    """W12: 2 attempts in all, exponential backoff from 3 s, de-duplicated by key with one follow-up kept."""
    settings = QueueSettings(name=settings.name)
    async with BullMQQueue(redis_url, settings) as queue, bullmq_queue(redis_url, settings) as seen:
        await queue.enqueue(JOB)
        (job,) = await seen.getWaiting()
        assert job.opts["attempts"] == 2
        assert job.opts["backoff"] == {"type": "exponential", "delay": 3000}
        assert job.opts["deduplication"] == {"id": "compact:session:s", "keepLastIfActive": True}
        assert await seen.getDeduplicationJobId("compact:session:s") == job.id
    worker = BullMQWorker(redis_url, JobRunner(service_with(), settings))._worker()
    assert {name: worker.opts[name] for name in ("concurrency", "lockDuration", "maxStalledCount")} == {
        "concurrency": 2,
        "lockDuration": 300_000,
        "maxStalledCount": 1,
    }
    assert worker.name == settings.name and QueueSettings().name == "context-compaction"
    await worker.close()


async def test_bullmq_waiting_job_is_deduplicated(redis_url: str, settings: QueueSettings) -> None:
    async with BullMQQueue(redis_url, settings) as queue, bullmq_queue(redis_url, settings) as seen:
        for name in ("s", "s", "t", "s"):
            await queue.enqueue(Job("session", name))
        assert await counts(seen) == {"waiting": 2}


async def test_bullmq_running_job_keeps_one_follow_up(redis_url: str, settings: QueueSettings) -> None:
    model = Slow()
    service = service_with(model)
    await talk(service)
    async with BullMQQueue(redis_url, settings) as queue, bullmq_queue(redis_url, settings) as seen:
        await queue.enqueue(JOB)
        async with running_worker(redis_url, JobRunner(service, settings)):
            await until(lambda: model.asked)
            await append_turns(service, 7, 5)
            for _ in range(3):
                await queue.enqueue(JOB)
            assert await counts(seen) == {"active": 1}, "never two at once"
            model.goes_on.set()
            await until_counts(seen, completed=2)
        assert await rounds(service) == 2
        assert sorted(job.returnvalue["outcome"] for job in await seen.getCompleted()) == ["compacted"] * 2
        await queue.enqueue(JOB)
        assert await counts(seen) == {"waiting": 1, "completed": 2}, "its key is free again"


async def test_bullmq_concurrency_is_limited(redis_url: str, settings: QueueSettings) -> None:
    model, names = Slow(), ("s", "t", "u", "v")
    service = service_with(model)
    await talk(service, *names)
    async with BullMQQueue(redis_url, settings) as queue, bullmq_queue(redis_url, settings) as seen:
        for name in names:
            await queue.enqueue(Job("session", name))
        async with running_worker(redis_url, JobRunner(service, settings)):
            await until_counts(seen, active=2, waiting=2)
            await until(lambda: model.asked == 2)
            model.goes_on.set()
            await until_counts(seen, completed=4)
    assert model.most_at_once == 2


async def test_bullmq_failed_job_is_retried_after_backoff(redis_url: str, settings: QueueSettings) -> None:
    service = service_with(ScriptedModel([Failure("request", "it would not"), SUMMARY_TEXT]))
    await talk(service)
    async with BullMQQueue(redis_url, settings) as queue, bullmq_queue(redis_url, settings) as seen:
        await queue.enqueue(JOB)
        async with running_worker(redis_url, JobRunner(service, settings)):
            await until_counts(seen, completed=1)
        (job,) = await seen.getCompleted()
        assert job.attemptsMade == 2
        assert "it would not" in job.failedReason
    assert await rounds(service) == 1


async def test_bullmq_job_fails_after_two_attempts_and_can_be_enqueued_again(
    redis_url: str, settings: QueueSettings
) -> None:
    model = ScriptedModel(Failure("request", "it would not"), repeat=True)
    service = service_with(model)
    await talk(service)
    async with BullMQQueue(redis_url, settings) as queue, bullmq_queue(redis_url, settings) as seen:
        await queue.enqueue(JOB)
        async with running_worker(redis_url, JobRunner(service, settings)):
            await until_counts(seen, failed=1)
        assert len(model.calls) == 2
        background = BackgroundCompactor(service, queue)
        assert not await background.on_turn_end("s"), "no message was added since"
        await service.append("s", make_message("u7"))
        assert await background.on_turn_end("s")
        assert await counts(seen) == {"waiting": 1, "failed": 1}


async def test_bullmq_deadline_exceeded_is_a_failed_attempt(redis_url: str, settings: QueueSettings) -> None:
    for number, deadline in enumerate(GROWING_LIMITS, 1):
        model = Slow()
        service = service_with(model)
        await talk(service)
        impatient = JobRunner(service, msgspec.structs.replace(settings, deadline=deadline))
        async with BullMQQueue(redis_url, settings) as queue, bullmq_queue(redis_url, settings) as seen:
            await queue.enqueue(JOB)
            async with running_worker(redis_url, impatient):
                await until_counts(seen, failed=number)
            job, *_ = await seen.getFailed()
            assert "it exceeded the deadline" in job.failedReason and job.attemptsMade == 2
        if model.asked == 2:
            break
    assert model.asked == 2 and await rounds(service) == 0


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"domain": "session", "entityId": "nobody"}, "There is no session 'nobody'"),
        ({"entity": "s"}, "its data is not"),
        ({"domain": "a:b", "entityId": "s"}, "a word without a colon"),
        ("s", "its data is not"),
    ],
)
async def test_bullmq_invalid_job_fails_without_retry(
    redis_url: str, settings: QueueSettings, data: Any, why: str
) -> None:
    async with bullmq_queue(redis_url, settings) as seen:
        await seen.add("compact", data, {"attempts": 5})
        async with running_worker(redis_url, JobRunner(service_with(), settings)):
            await until_counts(seen, failed=1)
        (job,) = await seen.getFailed()
        assert why in job.failedReason and job.attemptsMade == 1


async def test_bullmq_stopping_worker_finishes_running_job(redis_url: str, settings: QueueSettings) -> None:
    model = Slow()
    service = service_with(model)
    await talk(service, "s", "t")
    settings = msgspec.structs.replace(settings, concurrency=1)
    async with BullMQQueue(redis_url, settings) as queue, bullmq_queue(redis_url, settings) as seen:
        for name in ("s", "t"):
            await queue.enqueue(Job("session", name))
        async with anyio.create_task_group() as group, running_worker(redis_url, JobRunner(service, settings)):
            await until(lambda: model.asked)
            group.start_soon(_later, model.goes_on)
        assert await counts(seen) == {"completed": 1, "waiting": 1}


async def _later(event: anyio.Event) -> None:
    await anyio.sleep(0.05)
    event.set()


async def test_bullmq_unfinished_job_is_given_back_without_an_attempt(redis_url: str, settings: QueueSettings) -> None:
    model = Slow()
    service = service_with(model)
    await talk(service)
    work = JobRunner(service, msgspec.structs.replace(settings, grace=0.05))
    async with BullMQQueue(redis_url, settings) as queue, bullmq_queue(redis_url, settings) as seen:
        await queue.enqueue(JOB)
        async with running_worker(redis_url, work):
            await until(lambda: model.asked)
        assert work.stats.report()["outcomes"] == {"given_back": 1}
        assert await counts(seen) == {"delayed": 1}
        model.goes_on.set()
        async with running_worker(redis_url, JobRunner(service, settings)):
            await until_counts(seen, completed=1)
        (job,) = await seen.getCompleted()
        assert job.attemptsMade == 1


async def test_bullmq_job_of_dead_worker_is_run_by_another(redis_url: str, settings: QueueSettings) -> None:
    """As if killed: its lock exists for a while and is not renewed."""
    service = service_with()
    await talk(service)
    async with BullMQQueue(redis_url, settings) as queue, bullmq_queue(redis_url, settings) as seen:
        await queue.enqueue(JOB)
        await seen.backend.moveToActive("dead", {"lockDuration": 200})
        assert await counts(seen) == {"active": 1}
        await queue.enqueue(JOB)
        async with running_worker(redis_url, JobRunner(service, settings)):
            await until_counts(seen, completed=2)
        outcomes = {job.returnvalue["outcome"] for job in await seen.getCompleted()}
    assert outcomes == {"compacted", "not_needed"} and await rounds(service) == 1


async def test_bullmq_finished_jobs_are_limited(redis_url: str, settings: QueueSettings) -> None:
    settings = msgspec.structs.replace(settings, keep=2)
    service = service_with()
    await talk(service, *"abcde", turns=1)
    async with BullMQQueue(redis_url, settings) as queue, bullmq_queue(redis_url, settings) as seen:
        work = JobRunner(service, settings)
        async with running_worker(redis_url, work):
            for name in "abcde":
                await queue.enqueue(Job("session", name))
            await until(lambda: work.stats.report()["jobs"] == 5)
            await until_counts(seen, completed=2)


# -- unreachable servers ----------------------------------------------------------------------------------------------


async def test_bullmq_unreachable_server_error_hides_password(caplog: pytest.LogCaptureFixture) -> None:
    url = "redis://ada:0s7erhaven@127.0.0.1:1/0?socket_connect_timeout=1"
    async with BullMQQueue(url) as queue:
        with pytest.raises(QueueError, match=r"The queue at redis://127\.0\.0\.1:1/0 failed") as caught:
            await queue.enqueue(JOB)
    assert "0s7erhaven" not in str(caught.value)
    with caplog.at_level(logging.DEBUG, "holdfast"):
        async with running_worker(url, JobRunner(service_with())) as worker:
            with pytest.raises(QueueError, match="cannot be reached"):
                await worker.ping()
            await until(lambda: " failed: " in caplog.text)
    assert "0s7erhaven" not in caplog.text


async def test_bullmq_worker_reconnects_after_server_restart() -> None:
    settings, service = QueueSettings(lock=1.0), service_with()
    await talk(service, "s", "t")
    with Server("valkey") as server:
        async with BullMQQueue(server.url, settings) as queue, running_worker(server.url, JobRunner(service, settings)):
            await queue.enqueue(JOB)
            await until(lambda: rounds(service, "s"))
            await anyio.to_thread.run_sync(server.kill)
            with pytest.raises(QueueError, match="failed"):
                await queue.enqueue(Job("session", "t"))
            await anyio.to_thread.run_sync(server.start)
            await queue.enqueue(Job("session", "t"))
            await until(lambda: rounds(service, "t"))


async def test_bullmq_worker_ping(redis_url: str) -> None:
    async with running_worker(redis_url, JobRunner(service_with())) as worker:
        await worker.ping()


@pytest.mark.parametrize("url", ["http://ada:0s7erhaven@host", "redis", "", "redis://host:port"])
def test_bullmq_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        BullMQQueue(url)
    assert "0s7erhaven" not in str(caught.value)


def test_bullmq_without_package_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "bullmq", None)
    with pytest.raises(InvalidInput, match=re.escape(install_command("bullmq"))):
        BullMQQueue("redis://localhost")
