"""A compaction that failed is not tried for ever: the session itself remembers, and says when it will (rule 5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import (
    Abort,
    BlockingSessionService,
    CompactionResult,
    EventCount,
    Failure,
    MemoryStore,
    Outcome,
    RecursiveSummary,
    Reply,
    ScriptedModel,
    SessionService,
    SlidingWindow,
    always,
)
from holdfast.stores import Log

pytestmark = pytest.mark.anyio
STRATEGY = RecursiveSummary(2, 0, verify=False)
FULL = EventCount(2)
WORDY = "word " * 160
"""Shorter than what a model is given to read, longer than what it is to stand for."""
WRONG_KEY = Failure("auth", "Incorrect API key provided.")


class Clock:
    """Stands at one o'clock until it is moved."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.0

    def __call__(self) -> float:
        return self.time


class Talk:
    """A session that has too much to say, and a model that fails until it is told otherwise."""

    def __init__(self, service: SessionService, clock: Clock, model: ScriptedModel) -> None:
        self.service, self.clock, self.model = service, clock, model
        self.said = 0

    async def goes_on(self) -> None:
        for role in ("user", "assistant"):
            self.said += 1
            text = f"{role} {self.said} " + "says something that takes a while to say " * 6
            await self.service.append("s", {"role": role, "content": text})

    async def compact(self, trigger: Any = FULL, strategy: Any = STRATEGY, **more: Any) -> CompactionResult:
        return await self.service.compact("s", trigger, strategy, **more)

    async def fails(self, times: int) -> None:
        for _ in range(times):
            await self.goes_on()
            assert (await self.compact()).outcome is Outcome.SUMMARY_FAILED

    @property
    def calls(self) -> int:
        return len(self.model.calls)

    async def attempts(self) -> list[dict[str, Any]]:
        return [event.body for event in await self.service.events("s", kind="attempt")]


@pytest.fixture
async def talk(store: Log) -> AsyncIterator[Talk]:
    clock, model = Clock(), ScriptedModel(WRONG_KEY, repeat=True)
    async with SessionService(store, summarizer=model, clock=clock) as service:
        await service.create(id="s")
        talk = Talk(service, clock, model)
        await talk.goes_on()
        yield talk


async def test_three_failures_in_a_row_open_it(talk: Talk) -> None:
    await talk.fails(3)
    await talk.goes_on()
    result = await talk.compact()
    assert result.outcome is Outcome.BREAKER_OPEN
    assert "3 compactions in a row have failed" in result.why
    assert talk.calls == 3
    assert len(result.messages) == talk.said, "and the context is what it was"


async def test_it_says_when_it_closes(talk: Talk) -> None:
    await talk.fails(3)
    await talk.goes_on()
    assert "2023-11-14T22:18:20+00:00" in (await talk.compact()).why  # five minutes after the clock's time


async def test_it_closes_after_time_and_stays_open_longer_after_each_further_failure(talk: Talk) -> None:
    await talk.fails(3)
    for minutes in (5, 10, 20, 40, 60, 60):
        await talk.goes_on()
        talk.clock.time += 60 * minutes - 1
        assert (await talk.compact()).outcome is Outcome.BREAKER_OPEN
        talk.clock.time += 1
        before = talk.calls
        assert (await talk.compact()).outcome is Outcome.SUMMARY_FAILED
        assert talk.calls == before + 1


async def test_a_success_closes_it(talk: Talk) -> None:
    await talk.fails(3)
    await talk.goes_on()
    talk.clock.time += 301
    talk.model.answers = ["They talked."]
    assert (await talk.compact()).outcome is Outcome.COMPACTED
    talk.model.answers = [WRONG_KEY]
    await talk.fails(2)
    await talk.goes_on()
    assert (await talk.compact()).outcome is Outcome.SUMMARY_FAILED, "two failures since are not three"


async def test_it_is_stored_and_another_service_on_the_same_store_knows(talk: Talk) -> None:
    await talk.fails(3)
    await talk.goes_on()
    other = SessionService(talk.service.store, summarizer=talk.model, clock=talk.clock)
    result = await other.compact("s", FULL, STRATEGY)
    assert (result.outcome, talk.calls) == (Outcome.BREAKER_OPEN, 3)
    talk.clock.time += 300
    assert (await other.compact("s", FULL, STRATEGY)).outcome is Outcome.SUMMARY_FAILED


async def test_it_goes_with_a_session_that_moves_house(talk: Talk) -> None:
    await talk.fails(3)
    await talk.goes_on()
    elsewhere = SessionService(MemoryStore(), summarizer=talk.model, clock=talk.clock)
    await elsewhere.import_(await talk.service.export("s"))
    assert (await elsewhere.compact("s", FULL, STRATEGY)).outcome is Outcome.BREAKER_OPEN
    await elsewhere.close()


async def test_while_nothing_is_said_since_the_last_failure_no_model_is_called(talk: Talk) -> None:
    """(behaviour 7: nothing new since the last)"""
    await talk.fails(1)
    for _ in range(5):
        result = await talk.compact()
        assert result.outcome is Outcome.BREAKER_OPEN
        assert "nothing has been said since" in result.why
    assert talk.calls == 1
    await talk.goes_on()
    assert (await talk.compact()).outcome is Outcome.SUMMARY_FAILED
    assert talk.calls == 2


@pytest.mark.parametrize("trigger", [None, always], ids=["no trigger", "always"])
async def test_a_person_who_asks_is_always_heard(talk: Talk, trigger: Any) -> None:
    await talk.fails(3)
    assert (await talk.compact(trigger)).outcome is Outcome.SUMMARY_FAILED
    talk.model.answers = ["They talked."]
    assert (await talk.compact(trigger)).outcome is Outcome.COMPACTED
    assert talk.calls == 5


async def test_the_attempt_is_recorded_with_its_reason_and_its_cost(talk: Talk) -> None:
    await talk.fails(1)
    (attempt,) = await talk.attempts()
    assert attempt["outcome"] == "summary_failed"
    assert "Incorrect API key" in attempt["why"]
    assert (attempt["failures"], attempt["calls"]) == (1, 1)


async def test_an_attempt_changes_nothing_that_is_shown(talk: Talk) -> None:
    await talk.goes_on()
    before = await talk.service.context("s")
    assert (await talk.compact()).outcome is Outcome.SUMMARY_FAILED
    after = await talk.service.context("s")
    assert (after.messages, after.tokens) == (before.messages, before.tokens)
    assert await talk.service.verify("s") == []


async def test_what_cost_no_call_is_not_recorded(talk: Talk) -> None:
    await talk.goes_on()
    version = (await talk.service.get("s")).version
    alone = SessionService(talk.service.store, clock=talk.clock)
    assert (await alone.compact("s", FULL, STRATEGY)).outcome is Outcome.SUMMARY_FAILED  # there is nobody to ask
    assert (await talk.compact(EventCount(99))).outcome is Outcome.NOT_NEEDED
    assert (await talk.compact(FULL, SlidingWindow(99))).outcome is Outcome.NOTHING_TO_COMPACT
    assert (await talk.service.get("s")).version == version
    assert await talk.attempts() == []


async def test_a_summary_that_would_not_shrink_counts_as_a_failure(talk: Talk) -> None:
    """(behaviour 7: no progress is not tried again at once)"""
    await talk.goes_on()
    talk.model.answers = [WORDY]
    assert (await talk.compact()).outcome is Outcome.NO_PROGRESS
    assert (await talk.compact()).outcome is Outcome.BREAKER_OPEN
    assert talk.calls == 1
    assert [attempt["outcome"] for attempt in await talk.attempts()] == ["no_progress"]


@pytest.mark.parametrize("times", [60, 300], ids=["a little can go", "less than a tenth can go"])
async def test_one_that_does_not_shrink_a_context_over_its_budget_counts_too(talk: Talk, times: int) -> None:
    """It is called `cannot_fit`, and cost as much as any: it is not tried again and again (behaviour 7)."""
    talk.model.answers = [WORDY]
    big = "one message that alone is larger than all there may be " * times
    await talk.service.append("s", {"role": "user", "content": big})
    first = await talk.compact(FULL, RecursiveSummary(1, 0, verify=False), budget=200)
    assert first.outcome is Outcome.CANNOT_FIT
    calls = talk.calls
    for _ in range(4):
        await talk.compact(FULL, RecursiveSummary(1, 0, verify=False), budget=200)
    assert talk.calls == calls


async def test_failures_of_one_lane_are_not_the_others(talk: Talk) -> None:
    text = "the sub-agent says something that takes a while to say " * 6
    for _ in range(4):
        await talk.service.append("s", {"role": "user", "content": text}, "sub")
    await talk.fails(3)
    result = await talk.compact(lane="sub")
    assert result.outcome is Outcome.SUMMARY_FAILED
    assert talk.calls == 4


async def test_an_undone_success_does_not_bring_old_failures_back(talk: Talk) -> None:
    """They were in a row until one worked; taking that one back does not make it a failure."""
    await talk.fails(3)
    talk.model.answers = ["They talked."]
    assert (await talk.compact(always)).outcome is Outcome.COMPACTED
    await talk.service.undo("s")
    await talk.goes_on()
    assert (await talk.compact()).outcome is Outcome.COMPACTED


async def test_an_abort_is_no_failure(talk: Talk) -> None:
    abort = Abort()

    def stops(call: Any) -> Reply:
        abort()
        return Reply("never read")

    talk.model.answers = [stops]
    await talk.goes_on()
    assert (await talk.compact(abort=abort)).outcome is Outcome.ABORTED
    assert await talk.attempts() == []


def test_blocking_callers_have_it_too() -> None:
    clock, model = Clock(), ScriptedModel(WRONG_KEY, repeat=True)
    with BlockingSessionService(MemoryStore(), summarizer=model, clock=clock) as service:
        service.create(id="s")
        for number in range(6):
            service.append("s", {"role": "user", "content": f"{number} " + "a good many words " * 20})
            service.compact("s", FULL, STRATEGY)
        assert service.compact("s", FULL, STRATEGY).outcome is Outcome.BREAKER_OPEN
        assert len(model.calls) == 3
