"""A conversation and the compaction behind it: assessed at each turn's end, waited for only if it must be (W2, W13)."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest
from harbour import PRESET, Slow, rounds, service_with, talk, until

from holdfast import EventCount, MemoryStore, Outcome, Preset, ScriptedModel, SessionService, all_of, always
from holdfast.errors import InvalidInput, InvalidLimit, NoRoom, UnknownSession
from holdfast.jobs import Background, Job, QueueError, QueueSettings
from holdfast.strategies import StateSummary
from hooked import SUMMARY, go_on, message, seen

pytestmark = pytest.mark.anyio


class Noted:
    """A queue that only remembers."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    async def enqueue(self, job: Job) -> None:
        self.jobs.append(job)


class Away:
    """A queue whose server is not there."""

    async def enqueue(self, job: Job) -> None:
        raise QueueError("The queue at redis://away:6379 has not answered in 5 s.")


# -- the end of a turn ------------------------------------------------------------------------------------------------


async def test_a_job_is_enqueued_when_summary_and_live_messages_reach_the_threshold() -> None:
    """W1, W2: 70 % of 200,000 at three characters a token; the summary counts."""
    queue = Noted()
    service = SessionService(MemoryStore(), preset="workstream")
    background = Background(service, queue)
    await service.create(id="s")
    await service.append("s", {"role": "user", "content": "x" * (3 * 139_999)})
    assert not await background.on_turn_end("s")
    await service.append("s", {"role": "assistant", "content": "x"})
    assert await background.on_turn_end("s")
    assert queue.jobs == [Job("session", "s")]
    assert queue.jobs[0].key == "compact:session:s"


async def test_what_was_compacted_away_counts_only_as_its_summary() -> None:
    queue, told = Noted(), "What was said. " * 600
    preset = Preset(
        name="small",
        about="",
        figures={},
        trigger_in=lambda window: lambda request: request.tokens >= window,
        strategy=StateSummary(keep_last=6, last_resort="unchanged"),
        estimator="chars/3",
        window=30_000,
    )
    service = SessionService(MemoryStore(), preset=preset, summarizer=lambda text: f'{{"summary": "{told}"}}')
    background = Background(service, queue)
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


async def test_a_queue_that_is_away_does_not_disturb_the_turn(caplog: pytest.LogCaptureFixture) -> None:
    """L11: it is logged, and the end of the next turn asks again."""
    service = service_with()
    await talk(service)
    with caplog.at_level(logging.WARNING, "holdfast.jobs"):
        assert await Background(service, Away()).on_turn_end("s") is False
    assert "session 's' was not enqueued" in caplog.text


async def test_mistakes_are_said_clearly() -> None:
    with pytest.raises(InvalidInput, match="goes by a preset"):
        Background(SessionService(MemoryStore()))
    with pytest.raises(InvalidInput, match="goes by a preset"):
        Background(SessionService(MemoryStore()), Noted())
    background = Background(service_with(), Noted())
    with pytest.raises(UnknownSession):
        await background.on_turn_end("nobody")
    with pytest.raises(InvalidLimit, match="timeout"):
        await background.before_turn("nobody", timeout=0)
    service = service_with()
    await talk(service)
    with pytest.raises(InvalidInput, match="inside its `async with` block"):
        await Background(service).on_turn_end("s")


# -- in this process --------------------------------------------------------------------------------------------------


async def test_it_is_done_behind_the_conversation() -> None:
    service = service_with()
    async with service, Background(service) as background:
        await talk(service, turns=4)
        assert not await background.on_turn_end("s")
        await go_on(service, 5, 2)
        assert await background.on_turn_end("s")
        await until(lambda: rounds(service))
        assert await seen(service) == ["They", "u5", "a5", "u6", "a6"]
        assert not await background.on_turn_end("s")


async def test_what_is_said_while_it_is_prepared_is_kept_and_a_second_end_of_turn_asks_for_no_second_summary() -> None:
    model = Slow()
    service = service_with(model)
    async with service, Background(service) as background:
        await talk(service)
        await background.on_turn_end("s")
        await until(lambda: model.asked)
        await service.append("s", message("u7"))
        assert await background.on_turn_end("s")
        model.goes_on.set()
        await until(lambda: rounds(service))
        await until(lambda: not service.compacting("s"))
        await anyio.wait_all_tasks_blocked()
    assert model.asked == 1, "the follow-up found that nothing was due any more"


async def test_a_follow_up_compacts_what_came_while_the_first_one_ran() -> None:
    model = Slow()
    service = service_with(model)
    async with service, Background(service) as background:
        await talk(service)
        await background.on_turn_end("s")
        await until(lambda: model.asked)
        await go_on(service, 7, 5)
        await background.on_turn_end("s")
        model.goes_on.set()
        await until(lambda: _compacted(service, 2))
        assert await seen(service) == ["They", "u10", "a10", "u11", "a11"]
        assert await service.verify("s") == []


async def _compacted(service: SessionService, times: int) -> bool:
    return await rounds(service) == times


async def test_a_prepared_plan_is_published_only_if_its_boundary_still_stands() -> None:
    """S3: a person compacted while the model wrote."""
    model = Slow()
    service = service_with(model)
    async with service, Background(service, settings=QueueSettings(backoff=0.01)) as background:
        await talk(service)
        await background.on_turn_end("s")
        await until(lambda: model.asked)
        by_hand = await service.compact("s", always, SUMMARY, summarizer=ScriptedModel("By hand."))
        model.goes_on.set()
        await until(lambda: not service.compacting("s"))
        await anyio.wait_all_tasks_blocked()
        assert by_hand.outcome is Outcome.COMPACTED
        assert (await seen(service))[0] == "By"
        assert await rounds(service) == 1


async def test_what_a_crash_left_is_found_when_it_starts() -> None:
    service = service_with()
    async with service:
        await talk(service, "one", "two")
        await talk(service, "short", turns=2)
        async with Background(service):
            for name in ("one", "two"):
                await until(lambda name=name: rounds(service, name))
        assert await rounds(service, "short") == 0


async def test_it_is_swept_now_and_then() -> None:
    """Somebody else appended, and told nobody."""
    service = service_with()
    async with service, Background(service, settings=QueueSettings(sweep=0.02)):
        await anyio.sleep(0.05)
        await talk(service)
        await until(lambda: rounds(service))


# -- the start of a turn: soft and hard -------------------------------------------------------------------------------


HARD = EventCount(11)


async def test_over_the_soft_threshold_the_conversation_goes_on() -> None:
    model = Slow()
    service = service_with(model)
    async with service, Background(service, hard=HARD) as background:
        await talk(service, turns=5)
        await background.on_turn_end("s")
        await until(lambda: model.asked)
        assert len(await background.before_turn("s")) == 10, "at once, as it was"
        model.goes_on.set()


async def test_over_the_hard_threshold_the_turn_waits() -> None:
    model, contexts = Slow(), []
    service = service_with(model)
    async with service, Background(service, hard=HARD) as background:
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


async def test_after_the_time_out_the_turn_goes_on_if_it_fits() -> None:
    service = service_with(Slow())
    async with service, Background(service, hard=HARD, settings=QueueSettings(grace=0.01)) as background:
        await talk(service)
        assert len(await background.before_turn("s", timeout=0.05)) == 12


async def test_after_the_time_out_the_turn_is_refused_if_it_does_not_fit() -> None:
    service = service_with(window=500)
    await talk(service)
    for queue in (Noted(), Away()):
        with pytest.raises(NoRoom, match=r"over the 500 that fit.*within 0\.05 s"):
            await Background(service, queue, hard=HARD).before_turn("s", timeout=0.05)


async def test_nobody_waits_for_what_nobody_will_do() -> None:
    """After a failure automatic compactions wait for something to be said: so does not the turn."""
    service = service_with(ScriptedModel([]))
    await talk(service)
    assert (await service.compact("s")).outcome is Outcome.SUMMARY_FAILED
    queue = Noted()
    assert len(await Background(service, queue, hard=HARD).before_turn("s", timeout=600)) == 12
    assert queue.jobs == []


async def test_the_hard_threshold_leaves_room_for_a_reply() -> None:
    """16,384 tokens, or a quarter of a small window."""
    asked: list[str] = []
    anything = Preset(**_fields(PRESET) | {"trigger_in": lambda window: all_of(lambda request: True)})
    for window, most in ((200_000, 183_616), (8_000, 6_000)):
        service = service_with(preset=anything, window=window, estimator="chars/3")
        await service.create(id="s")
        await service.append("s", {"role": "user", "content": "x" * 3 * most})
        queue = Noted()
        background = Background(service, queue)
        await background.before_turn("s", timeout=0.01)
        assert queue.jobs == []
        await service.append("s", {"role": "user", "content": "x"})
        await background.before_turn("s", timeout=0.01)
        asked += [job.key for job in queue.jobs]
    assert asked == ["compact:session:s"] * 2


def _fields(preset: Preset) -> dict[str, Any]:
    return {name: getattr(preset, name) for name in preset.__struct_fields__}
