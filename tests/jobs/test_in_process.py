"""Jobs in this process: one for each session, two at a time, and none is lost while another runs (W12)."""

from __future__ import annotations

import anyio
import pytest
from harbour import until

from holdfast.errors import InvalidInput
from holdfast.jobs import InProcessQueue, Job, JobFailed, QueueError, QueueSettings

pytestmark = pytest.mark.anyio


class Harbour:
    """Work that can be held up, and remembers who came."""

    def __init__(self, *fails: JobFailed | None) -> None:
        self.open = anyio.Event()
        self.came: list[str] = []
        self.left: list[str] = []
        self.tries_again: list[bool] = []
        self.inside = self.most_inside = 0
        self.fails = list(fails)

    async def __call__(self, job: Job, *, tries_again: bool) -> None:
        self.came.append(job.entity_id)
        self.tries_again.append(tries_again)
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


async def test_a_job_that_waits_already_is_not_taken_twice() -> None:
    harbour = Harbour()
    async with InProcessQueue(harbour, QueueSettings(concurrency=1)) as queue:
        await queue.enqueue(job("first"))
        await until(lambda: harbour.came)
        for _ in range(5):
            await queue.enqueue(job("waits"))
        harbour.open.set()
        await until(lambda: len(harbour.left) == 2)
        await anyio.wait_all_tasks_blocked()
    assert harbour.came == ["first", "waits"]


async def test_one_that_comes_while_it_runs_is_run_once_more_after_it() -> None:
    """For what was said since it began to read."""
    harbour = Harbour()
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


async def test_at_most_so_many_run_at_once() -> None:
    for concurrency in (1, 2, 3):
        harbour = Harbour()
        async with InProcessQueue(harbour, QueueSettings(concurrency=concurrency)) as queue:
            for number in range(6):
                await queue.enqueue(job(f"s{number}"))
            await until(lambda: harbour.inside == concurrency)  # noqa: B023
            await anyio.wait_all_tasks_blocked()
            harbour.open.set()
            await until(lambda: len(harbour.left) == 6)  # noqa: B023
        assert harbour.most_inside == concurrency
        assert sorted(harbour.came) == [f"s{number}" for number in range(6)]


async def test_one_that_fails_is_tried_again_and_no_more_often_than_it_may() -> None:
    harbour = Harbour(JobFailed("no"), JobFailed("no"), JobFailed("no"), JobFailed("no"))
    harbour.open.set()
    async with InProcessQueue(harbour, QueueSettings(attempts=3, backoff=0.01)) as queue:
        await queue.enqueue(job("s"))
        await until(lambda: len(harbour.came) == 3)
        await anyio.sleep(0.1)
    assert harbour.tries_again == [True, True, False]
    assert harbour.left == []


async def test_the_pause_before_an_attempt_doubles() -> None:
    settings = QueueSettings()
    assert [settings.pause(attempt) for attempt in (1, 2, 3)] == [3.0, 6.0, 12.0]


async def test_others_run_while_one_waits_for_its_next_attempt() -> None:
    harbour = Harbour(JobFailed("no"))
    harbour.open.set()
    async with InProcessQueue(harbour, QueueSettings(concurrency=1, backoff=60)) as queue:
        await queue.enqueue(job("fails"))
        await until(lambda: harbour.came)
        await queue.enqueue(job("fails"))
        await queue.enqueue(job("another"))
        await until(lambda: harbour.left)
    assert harbour.came == ["fails", "another"], "and the one that waits is not taken twice"


async def test_one_that_cannot_do_better_is_not_tried_again() -> None:
    harbour = Harbour(JobFailed("there is no such session", again=False))
    harbour.open.set()
    async with InProcessQueue(harbour, QueueSettings(backoff=0.01)) as queue:
        await queue.enqueue(job("s"))
        await until(lambda: harbour.came)
        await anyio.sleep(0.05)
    assert harbour.came == ["s"]


async def test_closing_lets_what_runs_come_to_its_end_and_drops_the_rest() -> None:
    harbour = Harbour()
    async with anyio.create_task_group() as group, InProcessQueue(harbour, QueueSettings(concurrency=1)) as queue:
        await queue.enqueue(job("runs"))
        await queue.enqueue(job("waits"))
        await until(lambda: harbour.came)
        group.start_soon(_opens_later, harbour)
    assert harbour.left == ["runs"]
    with pytest.raises(QueueError, match="closed"):
        await queue.enqueue(job("late"))


async def _opens_later(harbour: Harbour) -> None:
    await anyio.sleep(0.02)
    harbour.open.set()


async def test_closing_waits_no_longer_than_the_grace_time() -> None:
    harbour = Harbour()
    async with InProcessQueue(harbour, QueueSettings(grace=0.02)) as queue:
        await queue.enqueue(job("s"))
        await until(lambda: harbour.came)
    assert harbour.left == [] and harbour.inside == 0


async def test_an_error_of_the_application_is_not_dressed_up() -> None:
    harbour = Harbour()
    with pytest.raises(ZeroDivisionError):
        async with InProcessQueue(harbour) as queue:
            await queue.enqueue(job("s"))
            await until(lambda: harbour.came)
            raise ZeroDivisionError
    assert harbour.inside == 0


def test_the_key_is_the_documents() -> None:
    """W12."""
    assert Job("workstream", "w-17").key == "compact:workstream:w-17"
    assert Job("session", "a:b").key == "compact:session:a:b"
    for domain, name in (("", "s"), ("a:b", "s"), ("session", "")):
        with pytest.raises(InvalidInput):
            Job(domain, name)


def test_the_numbers_are_the_documents_and_can_be_set() -> None:
    """W12."""
    settings = QueueSettings()
    assert settings.name == "context-compaction"
    assert (settings.concurrency, settings.attempts, settings.backoff) == (2, 2, 3.0)
    assert (settings.deadline, settings.lock) == (300.0, 30.0)
    assert QueueSettings(concurrency=7).concurrency == 7


@pytest.mark.parametrize(
    ("setting", "value"),
    [("name", ""), ("name", "a:b"), ("concurrency", 0), ("attempts", 1.5), ("keep", -1)]
    + [(name, value) for name in ("backoff", "deadline", "lock", "grace", "sweep") for value in (0, -1, "soon", True)],
)
def test_a_number_that_makes_no_sense_is_refused(setting: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=setting):
        QueueSettings(**{setting: value})  # type: ignore[arg-type]
