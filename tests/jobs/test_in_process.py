"""The in-process queue: one job for each session, two at a time, with follow-ups (W12)."""

from __future__ import annotations

import anyio
import pytest
from job_sessions import until

from holdfast import MemoryStore, SessionService
from holdfast.errors import InvalidInput
from holdfast.jobs import InProcessQueue, Job, JobFailed, JobRunner, QueueError, QueueSettings
from holdfast.models import Failure, ScriptedModel

pytestmark = pytest.mark.anyio


class BlockingHandler:
    """A job handler that can be blocked, and records its jobs."""

    def __init__(self, *fails: JobFailed | None) -> None:
        self.open = anyio.Event()
        self.came: list[str] = []
        self.left: list[str] = []
        self.will_retry: list[bool] = []
        self.inside = self.most_inside = 0
        self.fails = list(fails)

    async def __call__(self, job: Job, *, will_retry: bool) -> None:
        self.came.append(job.entity_id)
        self.will_retry.append(will_retry)
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        try:
            await self.open.wait()
            if self.fails and (problem := self.fails.pop(0)) is not None:
                raise problem
        finally:
            self.inside -= 1
        self.left.append(job.entity_id)


def job(name: str) -> Job:
    return Job("session", name)


async def test_in_process_waiting_job_is_deduplicated() -> None:
    harbour = BlockingHandler()
    async with InProcessQueue(harbour, QueueSettings(concurrency=1)) as queue:
        await queue.enqueue(job("first"))
        await until(lambda: harbour.came)
        for _ in range(5):
            await queue.enqueue(job("waits"))
        harbour.open.set()
        await until(lambda: len(harbour.left) == 2)
        await anyio.wait_all_tasks_blocked()
    assert harbour.came == ["first", "waits"]


async def test_in_process_running_job_gets_one_follow_up() -> None:
    """For messages added since the job read the log."""
    harbour = BlockingHandler()
    async with InProcessQueue(harbour) as queue:
        await queue.enqueue(job("s"))
        await until(lambda: harbour.came)
        for _ in range(5):
            await queue.enqueue(job("s"))
        assert harbour.came == ["s"], "never two at once"
        harbour.open.set()
        await until(lambda: len(harbour.left) == 2)
        await anyio.wait_all_tasks_blocked()
        assert harbour.came == ["s", "s"]
        await queue.enqueue(job("s"))
        await until(lambda: len(harbour.left) == 3)


async def test_in_process_concurrency_is_limited() -> None:
    for concurrency in (1, 2, 3):
        harbour = BlockingHandler()
        async with InProcessQueue(harbour, QueueSettings(concurrency=concurrency)) as queue:
            for number in range(6):
                await queue.enqueue(job(f"s{number}"))
            await until(lambda: harbour.inside == concurrency)  # noqa: B023
            await anyio.wait_all_tasks_blocked()
            harbour.open.set()
            await until(lambda: len(harbour.left) == 6)  # noqa: B023
        assert harbour.most_inside == concurrency
        assert sorted(harbour.came) == [f"s{number}" for number in range(6)]


async def test_in_process_failed_job_is_retried_up_to_the_limit() -> None:
    harbour = BlockingHandler(JobFailed("no"), JobFailed("no"), JobFailed("no"), JobFailed("no"))
    harbour.open.set()
    async with InProcessQueue(harbour, QueueSettings(attempts=3, backoff=0.01)) as queue:
        await queue.enqueue(job("s"))
        await until(lambda: len(harbour.came) == 3)
        await anyio.sleep(0.1)
    assert harbour.will_retry == [True, True, False]
    assert harbour.left == []


async def test_queue_settings_retry_delay_doubles() -> None:
    settings = QueueSettings()
    assert [settings.retry_delay(attempt) for attempt in (1, 2, 3)] == [3.0, 6.0, 12.0]


async def test_in_process_retry_delay_does_not_block_other_jobs() -> None:
    harbour = BlockingHandler(JobFailed("no"))
    harbour.open.set()
    async with InProcessQueue(harbour, QueueSettings(concurrency=1, backoff=60)) as queue:
        await queue.enqueue(job("fails"))
        await until(lambda: harbour.came)
        await queue.enqueue(job("fails"))
        await queue.enqueue(job("another"))
        await until(lambda: harbour.left)
    assert harbour.came == ["fails", "another"], "and the one that waits is not taken twice"


async def test_in_process_unretryable_failure_is_not_retried() -> None:
    harbour = BlockingHandler(JobFailed("there is no such session", retryable=False))
    harbour.open.set()
    async with InProcessQueue(harbour, QueueSettings(backoff=0.01)) as queue:
        await queue.enqueue(job("s"))
        await until(lambda: harbour.came)
        await anyio.sleep(0.05)
    assert harbour.came == ["s"]


async def test_in_process_close_finishes_running_and_drops_waiting_jobs() -> None:
    harbour = BlockingHandler()
    async with anyio.create_task_group() as group, InProcessQueue(harbour, QueueSettings(concurrency=1)) as queue:
        await queue.enqueue(job("runs"))
        await queue.enqueue(job("waits"))
        await until(lambda: harbour.came)
        group.start_soon(_open_later, harbour)
    assert harbour.left == ["runs"]
    with pytest.raises(QueueError, match="closed"):
        await queue.enqueue(job("late"))


async def _open_later(harbour: BlockingHandler) -> None:
    await anyio.sleep(0.02)
    harbour.open.set()


async def test_in_process_close_waits_at_most_the_grace_period() -> None:
    harbour = BlockingHandler()
    async with InProcessQueue(harbour, QueueSettings(grace=0.02)) as queue:
        await queue.enqueue(job("s"))
        await until(lambda: harbour.came)
    assert harbour.left == [] and harbour.inside == 0


async def test_in_process_application_error_is_not_wrapped() -> None:
    harbour = BlockingHandler()
    with pytest.raises(ZeroDivisionError):
        async with InProcessQueue(harbour) as queue:
            await queue.enqueue(job("s"))
            await until(lambda: harbour.came)
            raise ZeroDivisionError
    assert harbour.inside == 0


def test_job_key_matches_the_document() -> None:
    """W12."""
    assert Job("workstream", "w-17").key == "compact:workstream:w-17"
    assert Job("session", "a:b").key == "compact:session:a:b"
    for domain, name in (("", "s"), ("a:b", "s"), ("session", "")):
        with pytest.raises(InvalidInput):
            Job(domain, name)


def test_queue_settings_defaults_match_the_document() -> None:
    """W12."""
    settings = QueueSettings()
    assert settings.name == "context-compaction"
    assert (settings.concurrency, settings.attempts, settings.backoff) == (2, 2, 3.0)
    assert (settings.deadline, settings.lock) == (300.0, 300.0)
    assert QueueSettings(concurrency=7).concurrency == 7


@pytest.mark.parametrize(
    ("setting", "value"),
    [("name", ""), ("name", "a:b"), ("concurrency", 0), ("attempts", 1.5), ("keep", -1)]
    + [(name, value) for name in ("backoff", "deadline", "lock", "grace", "sweep") for value in (0, -1, "soon", True)],
)
def test_queue_settings_invalid_number_is_refused(setting: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=setting):
        QueueSettings(**{setting: value})  # type: ignore[arg-type]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("preset", ["workstream", "spring", "codex", "layer", "pi", "claude_code_ts"])
async def test_w12_a_summary_is_tried_twice_in_all(preset: str) -> None:
    """The queue's attempts are not multiplied by the preset's own retries."""
    model = ScriptedModel(Failure("transport", "the server is busy"), repeat=True)
    async with SessionService(MemoryStore(), preset=preset, summarizer=model) as service:
        await service.create(id="s", format="openai-chat")
        for number in range(44):
            role = "assistant" if number % 2 else "user"
            await service.append("s", {"role": role, "content": f"{number} " + "word " * 6_000})
        runner = JobRunner(service, QueueSettings(backoff=0.01))
        async with InProcessQueue(runner, runner.settings) as queue:
            await queue.enqueue(Job("session", "s"))
            await until(lambda: runner.stats.report()["jobs"] == 2)
    assert len(model.calls) == 2
