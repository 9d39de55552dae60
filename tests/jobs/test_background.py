"""Background compaction: checked at each turn's end, and waited for by the next turn (W2, W13)."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import msgspec
import pytest
from job_sessions import PRESET, Slow, rounds, service_with, talk, until

from compaction_session import SUMMARY, append_turns, make_message, visible_names
from holdfast import MemoryStore, Outcome, SessionService, check
from holdfast.compaction import Policy
from holdfast.context.events import Event
from holdfast.errors import InvalidInput, InvalidLimit, NoRoom, UnknownSession
from holdfast.jobs import BackgroundCompactor, Job, JobRunner, QueueError, QueueSettings
from holdfast.models import ScriptedModel
from holdfast.strategies import StateSummary
from holdfast.tokens.budget import Tokens
from holdfast.triggers import EventCount, OverThreshold, all_of, always

pytestmark = pytest.mark.anyio


class RecordingQueue:
    """A queue that records its jobs."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    async def enqueue(self, job: Job) -> None:
        self.jobs.append(job)


class UnreachableQueue:
    """A queue whose server is unreachable."""

    async def enqueue(self, job: Job) -> None:
        raise QueueError("The queue at redis://away:6379 did not answer in 5 s.")


# -- the end of a turn ------------------------------------------------------------------------------------------------


async def test_turn_end_over_threshold_enqueues_a_job() -> None:
    """W1, W2: 70 % of 200,000 at three characters a token; the summary counts."""
    queue = RecordingQueue()
    service = SessionService(MemoryStore(), preset="workstream")
    background = BackgroundCompactor(service, queue)
    await service.create(id="s")
    await service.append("s", {"role": "user", "content": "x" * (3 * 139_999)})
    assert not await background.on_turn_end("s")
    await service.append("s", {"role": "assistant", "content": "x"})
    assert await background.on_turn_end("s")
    assert queue.jobs == [Job("session", "s")]
    assert queue.jobs[0].key == "compact:session:s"


async def test_turn_end_counts_archived_part_as_its_summary() -> None:
    queue, long_summary = RecordingQueue(), "What happened. " * 600
    preset = Policy(
        name="small",
        about="",
        figures={},
        threshold=Tokens(30_000),
        trigger=OverThreshold(inclusive=True),
        strategy=StateSummary(keep_last=6, last_resort="unchanged"),
        estimator="chars/3",
        usual_window=30_000,
        calibrated=False,
    )
    service = SessionService(MemoryStore(), preset=preset, summarizer=lambda text: f'{{"summary": "{long_summary}"}}')
    background = BackgroundCompactor(service, queue)
    await service.create(id="s", format="openai-chat")
    for number in range(20):
        await service.append("s", {"role": "user" if number % 2 == 0 else "assistant", "content": "y" * 4_800})
    assert await background.on_turn_end("s")
    assert (await service.compact("s", on_conflict="rebase")).outcome is Outcome.COMPACTED
    context = await service.context("s")
    head, live = len(str(context[0]["content"])), 6 * 4_800
    assert context.tokens == pytest.approx((head + live) / 3, rel=0.01) and head > 9_000
    assert not await background.on_turn_end("s")
    left = 3 * 30_000 - head - live
    await service.append("s", {"role": "user", "content": "z" * (left + 30)})
    assert await background.on_turn_end("s"), "with the summary it is over, without it would not be"
    assert len(queue.jobs) == 2


async def test_turn_end_unreachable_queue_is_logged_only(caplog: pytest.LogCaptureFixture) -> None:
    """L11: the error is logged, and the next turn's end tries again."""
    service = service_with()
    await talk(service)
    with caplog.at_level(logging.WARNING, "holdfast.jobs"):
        assert await BackgroundCompactor(service, UnreachableQueue()).on_turn_end("s") is False
    assert "session 's' could not be enqueued" in caplog.text


async def test_background_compactor_errors_name_the_cause() -> None:
    background = BackgroundCompactor(service_with(), RecordingQueue())
    with pytest.raises(UnknownSession):
        await background.on_turn_end("nobody")
    with pytest.raises(InvalidLimit, match="timeout"):
        await background.before_turn("nobody", timeout=0)
    service = service_with()
    await talk(service)
    with pytest.raises(InvalidInput, match="in an `async with` block"):
        await BackgroundCompactor(service).on_turn_end("s")


# -- in this process --------------------------------------------------------------------------------------------------


async def test_background_compaction_runs_in_process() -> None:
    service = service_with()
    async with service, BackgroundCompactor(service) as background:
        await talk(service, turns=4)
        assert not await background.on_turn_end("s")
        await append_turns(service, 5, 2)
        assert await background.on_turn_end("s")
        await until(lambda: rounds(service))
        assert await visible_names(service) == ["They", "u5", "a5", "u6", "a6"]
        assert not await background.on_turn_end("s")


async def test_background_compaction_keeps_concurrent_messages_and_is_not_duplicated() -> None:
    model = Slow()
    service = service_with(model)
    async with service, BackgroundCompactor(service) as background:
        await talk(service)
        await background.on_turn_end("s")
        await until(lambda: model.asked)
        await service.append("s", make_message("u7"))
        assert await background.on_turn_end("s")
        model.goes_on.set()
        await until(lambda: rounds(service))
        await until(lambda: not service.compacting("s"))
        await anyio.wait_all_tasks_blocked()
    assert model.asked == 1, "the follow-up found that nothing was due any more"


async def test_background_follow_up_compacts_messages_added_meanwhile() -> None:
    model = Slow()
    service = service_with(model)
    async with service, BackgroundCompactor(service) as background:
        await talk(service)
        await background.on_turn_end("s")
        await until(lambda: model.asked)
        await append_turns(service, 7, 5)
        await background.on_turn_end("s")
        model.goes_on.set()
        await until(lambda: _compacted(service, 2))
        assert await visible_names(service) == ["They", "u10", "a10", "u11", "a11"]
        assert await service.verify("s") == []


async def _compacted(service: SessionService, times: int) -> bool:
    return await rounds(service) == times


async def test_background_plan_with_stale_boundary_is_dropped() -> None:
    """S3: the user compacted while the summary was being written."""
    model = Slow()
    service = service_with(model)
    async with service, BackgroundCompactor(service, settings=QueueSettings(backoff=0.01)) as background:
        await talk(service)
        await background.on_turn_end("s")
        await until(lambda: model.asked)
        by_hand = await service.compact("s", always, SUMMARY, summarizer=ScriptedModel("By hand."))
        model.goes_on.set()
        await until(lambda: not service.compacting("s"))
        await anyio.wait_all_tasks_blocked()
        assert by_hand.outcome is Outcome.COMPACTED
        assert (await visible_names(service))[0] == "By"
        assert await rounds(service) == 1


async def test_background_start_sweeps_sessions_left_by_a_crash() -> None:
    service = service_with()
    async with service:
        await talk(service, "one", "two")
        await talk(service, "short", turns=2)
        async with BackgroundCompactor(service):
            for name in ("one", "two"):
                await until(lambda name=name: rounds(service, name))
        assert await rounds(service, "short") == 0


async def test_background_sweep_passes_a_session_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    service = service_with()
    async with service, BackgroundCompactor(service, settings=QueueSettings(sweep=0.02)):
        await service.create(id="broken")
        await service.store.append("broken", [Event("e1", "message", "2026-01-01T00:00:00Z", {"format": "anthropic"})])
        await talk(service)
        await until(lambda: rounds(service))
    assert "session broken cannot be checked: Event 'e1' (#1)" in caplog.text


async def test_background_sweeps_periodically() -> None:
    """Another process appended without calling on_turn_end."""
    service = service_with()
    async with service, BackgroundCompactor(service, settings=QueueSettings(sweep=0.02)):
        await anyio.sleep(0.05)
        await talk(service)
        await until(lambda: rounds(service))


# -- the start of a turn: soft and hard -------------------------------------------------------------------------------


HARD = EventCount(11)


async def test_before_turn_over_soft_threshold_does_not_wait_for_a_job_that_no_worker_runs() -> None:
    service, queue = service_with(), RecordingQueue()
    background = BackgroundCompactor(service, queue, hard=HARD)
    await talk(service, turns=5)
    assert await background.on_turn_end("s")
    context = await background.before_turn("s", timeout=600)
    assert (len(context), context.timed_out) == (10, False)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["in this process", "in another process"])
async def test_w13_before_turn_waits_while_the_session_is_being_compacted(elsewhere: bool) -> None:
    model, store, contexts = Slow(), MemoryStore(), []
    worker = service_with(model, store)
    service = service_with(store=store) if elsewhere else worker
    background = BackgroundCompactor(service, RecordingQueue(), hard=HARD)
    await talk(service, turns=5)

    async def turn() -> None:
        contexts.append(await background.before_turn("s"))

    async with anyio.create_task_group() as group:
        group.start_soon(JobRunner(worker), Job("session", "s"))
        await until(lambda: model.asked)
        group.start_soon(turn)
        await anyio.sleep(0.05)
        assert contexts == [], "the compaction is running"
        model.goes_on.set()
    assert (len(contexts[0]), contexts[0].timed_out) == (5, False)


async def test_w13_before_turn_reports_that_the_wait_timed_out(caplog: pytest.LogCaptureFixture) -> None:
    model = Slow()
    service = service_with(model)
    async with service, BackgroundCompactor(service, hard=HARD) as background:
        await talk(service, turns=5)
        await background.on_turn_end("s")
        await until(lambda: model.asked)
        with caplog.at_level(logging.WARNING, "holdfast.jobs"):
            context = await background.before_turn("s", timeout=0.05)
        assert (len(context), context.timed_out) == (10, True)
        assert "session 's': no compaction ended within 0.05 s" in caplog.text
        model.goes_on.set()


async def test_before_turn_over_hard_threshold_waits() -> None:
    model, contexts = Slow(), []
    service = service_with(model)
    async with service, BackgroundCompactor(service, hard=HARD) as background:
        await talk(service)

        async def turn() -> None:
            contexts.append(await background.before_turn("s"))

        async with anyio.create_task_group() as group:
            group.start_soon(turn)
            await until(lambda: model.asked)
            await anyio.sleep(0.05)
            assert contexts == []
            model.goes_on.set()
    assert len(contexts[0]) == 5
    assert model.asked == 1


@pytest.mark.parametrize("limit", [0.05, 600], ids=["timed out", "a lease"])
@pytest.mark.parametrize("queue", [RecordingQueue(), UnreachableQueue()], ids=["no worker", "no queue"])
async def test_h9_before_turn_makes_room_without_a_model_when_no_worker_begins(queue: Any, limit: float) -> None:
    """At most a lease, even where the workers do not know the window; the context fits, and a reply does."""
    service = service_with(ScriptedModel([]), window=500, lease=0.05)
    await talk(service, turns=20)
    context = await BackgroundCompactor(service, queue, hard=HARD).before_turn("s", timeout=limit)
    assert context.tokens < 500 and context.is_compacted
    assert not check(list(context), "openai-chat")


async def test_h9_before_turn_makes_room_while_a_worker_takes_too_long() -> None:
    """The worker's compaction then loses the compare-and-set."""
    model = Slow()
    service = service_with(model, window=700)
    async with service, BackgroundCompactor(service, hard=HARD) as background:
        await talk(service)
        await background.on_turn_end("s")
        await until(lambda: model.asked)
        context = await background.before_turn("s", timeout=0.05)
        assert context.timed_out and context.is_compacted
        model.goes_on.set()
        await until(lambda: not service.compacting("s"))
        assert await rounds(service) == 1


async def test_before_turn_that_cannot_fit_raises_no_room() -> None:
    service = service_with(window=500, lease=0.05)
    await service.create(id="s", format="openai-chat", system="word " * 600)
    await append_turns(service, turns=6)
    with pytest.raises(NoRoom, match=r"over the 500 that fit, and nothing more can be archived"):
        await BackgroundCompactor(service, RecordingQueue(), hard=HARD).before_turn("s", timeout=0.05)


async def test_before_turn_does_not_wait_when_no_compaction_is_due() -> None:
    """After a failure automatic compactions wait for new messages; the turn does not wait for them."""
    service = service_with(ScriptedModel([]))
    await talk(service)
    assert (await service.compact("s")).outcome is Outcome.SUMMARY_FAILED
    queue = RecordingQueue()
    assert len(await BackgroundCompactor(service, queue, hard=HARD).before_turn("s", timeout=600)) == 12
    assert queue.jobs == []


async def test_hard_threshold_leaves_room_for_a_reply() -> None:
    """16,384 tokens, or a quarter of a small window."""
    asked: list[str] = []
    anything = msgspec.structs.replace(PRESET, trigger=all_of(lambda request: True))
    for window, most in ((200_000, 183_616), (8_000, 6_000)):
        service = service_with(preset=anything, window=window, estimator="chars/3")
        await service.create(id="s")
        await service.append("s", {"role": "user", "content": "x" * 3 * most})
        queue = RecordingQueue()
        background = BackgroundCompactor(service, queue)
        await background.before_turn("s", timeout=600)
        assert queue.jobs == []
        await service.append("s", {"role": "user", "content": "x"})
        async with anyio.create_task_group() as group:
            group.start_soon(background.before_turn, "s")
            await until(lambda: queue.jobs)  # noqa: B023
            group.cancel_scope.cancel()
        asked += [job.key for job in queue.jobs]
    assert asked == ["compact:session:s"] * 2
