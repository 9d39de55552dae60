"""The circuit breaker: repeated failures, stored with the session, pause automatic compactions (rule 5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import (
    Abort,
    BlockingSessionService,
    CompactionResult,
    MemoryStore,
    Outcome,
    SessionService,
    SlidingWindow,
)
from holdfast.models import Failure, Reply, ScriptedModel
from holdfast.stores import Log
from holdfast.strategies import RecursiveSummary
from holdfast.triggers import EventCount, always

pytestmark = pytest.mark.anyio
STRATEGY = RecursiveSummary(2, 0, verify=False)
FULL = EventCount(2)
WORDY = "word " * 160
"""Shorter than the model's input, longer than the messages it would replace."""
WRONG_KEY = Failure("auth", "Incorrect API key provided.")


class Clock:
    """A clock that only moves when it is set."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.0

    def __call__(self) -> float:
        return self.time


class FailingSession:
    """A session that is due for compaction, and a model that fails until its answers are replaced."""

    def __init__(self, service: SessionService, clock: Clock, model: ScriptedModel) -> None:
        self.service, self.clock, self.model = service, clock, model
        self.messages = 0

    async def append_turn(self) -> None:
        for role in ("user", "assistant"):
            self.messages += 1
            text = f"{role} {self.messages} " + "says something that takes a while to say " * 6
            await self.service.append("s", {"role": role, "content": text})

    async def compact(self, trigger: Any = FULL, strategy: Any = STRATEGY, **more: Any) -> CompactionResult:
        return await self.service.compact("s", trigger, strategy, **more)

    async def fail(self, times: int) -> None:
        for _ in range(times):
            await self.append_turn()
            assert (await self.compact()).outcome is Outcome.SUMMARY_FAILED

    @property
    def calls(self) -> int:
        return len(self.model.calls)

    async def attempts(self) -> list[dict[str, Any]]:
        return [event.body for event in await self.service.events("s", kind="attempt")]


@pytest.fixture
async def session(store: Log) -> AsyncIterator[FailingSession]:
    clock, model = Clock(), ScriptedModel(WRONG_KEY, repeat=True)
    async with SessionService(store, summarizer=model, clock=clock) as service:
        await service.create(id="s")
        session = FailingSession(service, clock, model)
        await session.append_turn()
        yield session


async def test_breaker_opens_after_three_failures(session: FailingSession) -> None:
    await session.fail(3)
    await session.append_turn()
    result = await session.compact()
    assert result.outcome is Outcome.BREAKER_OPEN
    assert "3 compactions in a row have failed" in result.why
    assert session.calls == 3
    assert len(result.messages) == session.messages, "the context is unchanged"


async def test_breaker_reports_when_it_closes(session: FailingSession) -> None:
    await session.fail(3)
    await session.append_turn()
    assert "2023-11-14T22:18:20+00:00" in (await session.compact()).why  # five minutes after the clock's time


async def test_breaker_stays_open_longer_after_each_failure(session: FailingSession) -> None:
    await session.fail(3)
    for minutes in (5, 10, 20, 40, 60, 60):
        await session.append_turn()
        session.clock.time += 60 * minutes - 1
        assert (await session.compact()).outcome is Outcome.BREAKER_OPEN
        session.clock.time += 1
        before = session.calls
        assert (await session.compact()).outcome is Outcome.SUMMARY_FAILED
        assert session.calls == before + 1


async def test_breaker_closes_after_a_success(session: FailingSession) -> None:
    await session.fail(3)
    await session.append_turn()
    session.clock.time += 301
    session.model.answers = ["They talked."]
    assert (await session.compact()).outcome is Outcome.COMPACTED
    session.model.answers = [WRONG_KEY]
    await session.fail(2)
    await session.append_turn()
    assert (await session.compact()).outcome is Outcome.SUMMARY_FAILED, "two failures since the success are not three"


async def test_breaker_is_stored_and_seen_by_another_service(session: FailingSession) -> None:
    await session.fail(3)
    await session.append_turn()
    other = SessionService(session.service.store, summarizer=session.model, clock=session.clock)
    result = await other.compact("s", FULL, STRATEGY)
    assert (result.outcome, session.calls) == (Outcome.BREAKER_OPEN, 3)
    session.clock.time += 300
    assert (await other.compact("s", FULL, STRATEGY)).outcome is Outcome.SUMMARY_FAILED


async def test_breaker_is_exported_with_the_session(session: FailingSession) -> None:
    await session.fail(3)
    await session.append_turn()
    elsewhere = SessionService(MemoryStore(), summarizer=session.model, clock=session.clock)
    await elsewhere.import_(await session.service.export("s"))
    assert (await elsewhere.compact("s", FULL, STRATEGY)).outcome is Outcome.BREAKER_OPEN
    await elsewhere.close()


async def test_failure_is_not_retried_without_new_messages(session: FailingSession) -> None:
    """(behaviour 7: nothing new since the last)"""
    await session.fail(1)
    for _ in range(5):
        result = await session.compact()
        assert result.outcome is Outcome.BREAKER_OPEN
        assert "no new message since" in result.why
    assert session.calls == 1
    await session.append_turn()
    assert (await session.compact()).outcome is Outcome.SUMMARY_FAILED
    assert session.calls == 2


@pytest.mark.parametrize("trigger", [None, always], ids=["no trigger", "always"])
async def test_manual_compaction_ignores_the_breaker(session: FailingSession, trigger: Any) -> None:
    await session.fail(3)
    assert (await session.compact(trigger)).outcome is Outcome.SUMMARY_FAILED
    session.model.answers = ["They talked."]
    assert (await session.compact(trigger)).outcome is Outcome.COMPACTED
    assert session.calls == 5


async def test_attempt_records_reason_and_cost(session: FailingSession) -> None:
    await session.fail(1)
    (attempt,) = await session.attempts()
    assert attempt["outcome"] == "summary_failed"
    assert "Incorrect API key" in attempt["why"]
    assert (attempt["failures"], attempt["calls"]) == (1, 1)


async def test_attempt_does_not_change_the_context(session: FailingSession) -> None:
    await session.append_turn()
    before = await session.service.context("s")
    assert (await session.compact()).outcome is Outcome.SUMMARY_FAILED
    after = await session.service.context("s")
    assert (after.messages, after.tokens) == (before.messages, before.tokens)
    assert await session.service.verify("s") == []


async def test_attempt_without_a_model_call_is_not_recorded(session: FailingSession) -> None:
    await session.append_turn()
    version = (await session.service.get("s")).version
    alone = SessionService(session.service.store, clock=session.clock)
    assert (await alone.compact("s", FULL, STRATEGY)).outcome is Outcome.SUMMARY_FAILED  # no model
    assert (await session.compact(EventCount(99))).outcome is Outcome.NOT_NEEDED
    assert (await session.compact(FULL, SlidingWindow(99))).outcome is Outcome.NOTHING_TO_COMPACT
    assert (await session.service.get("s")).version == version
    assert await session.attempts() == []


async def test_summary_that_does_not_shrink_counts_as_a_failure(session: FailingSession) -> None:
    """(behaviour 7: no progress is not tried again at once)"""
    await session.append_turn()
    session.model.answers = [WORDY]
    assert (await session.compact()).outcome is Outcome.NO_PROGRESS
    assert (await session.compact()).outcome is Outcome.BREAKER_OPEN
    assert session.calls == 1
    assert [attempt["outcome"] for attempt in await session.attempts()] == ["no_progress"]


@pytest.mark.parametrize("times", [60, 300], ids=["a little can go", "less than a tenth can go"])
async def test_cannot_fit_counts_as_a_failure(session: FailingSession, times: int) -> None:
    """A `cannot_fit` that cost a model call is not tried again without new messages (behaviour 7)."""
    session.model.answers = [WORDY]
    big = "one message that alone is larger than all there may be " * times
    await session.service.append("s", {"role": "user", "content": big})
    first = await session.compact(FULL, RecursiveSummary(1, 0, verify=False), budget=200)
    assert first.outcome is Outcome.CANNOT_FIT
    calls = session.calls
    for _ in range(4):
        await session.compact(FULL, RecursiveSummary(1, 0, verify=False), budget=200)
    assert session.calls == calls


async def test_breaker_of_one_lane_does_not_affect_another(session: FailingSession) -> None:
    text = "the sub-agent says something that takes a while to say " * 6
    for _ in range(4):
        await session.service.append("s", {"role": "user", "content": text}, "sub")
    await session.fail(3)
    result = await session.compact(lane="sub")
    assert result.outcome is Outcome.SUMMARY_FAILED
    assert session.calls == 4


async def test_undo_of_a_success_does_not_restore_old_failures(session: FailingSession) -> None:
    """The undone success still ends the row of failures."""
    await session.fail(3)
    session.model.answers = ["They talked."]
    assert (await session.compact(always)).outcome is Outcome.COMPACTED
    await session.service.undo("s")
    await session.append_turn()
    assert (await session.compact()).outcome is Outcome.COMPACTED


async def test_abort_is_not_a_failure(session: FailingSession) -> None:
    abort = Abort()

    def abort_call(call: Any) -> Reply:
        abort()
        return Reply("never read")

    session.model.answers = [abort_call]
    await session.append_turn()
    assert (await session.compact(abort=abort)).outcome is Outcome.ABORTED
    assert await session.attempts() == []


def test_breaker_blocking() -> None:
    clock, model = Clock(), ScriptedModel(WRONG_KEY, repeat=True)
    with BlockingSessionService(MemoryStore(), summarizer=model, clock=clock) as service:
        service.create(id="s")
        for number in range(6):
            service.append("s", {"role": "user", "content": f"{number} " + "a good many words " * 20})
            service.compact("s", FULL, STRATEGY)
        assert service.compact("s", FULL, STRATEGY).outcome is Outcome.BREAKER_OPEN
        assert len(model.calls) == 3
