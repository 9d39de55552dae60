"""Events of a compaction: every outcome, in order, and typed (P9, P11, G7)."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any

import anyio
import msgspec
import pytest

from compaction_session import (
    SUMMARY,
    SUMMARY_TEXT,
    EventRecorder,
    make_message,
    never_answering,
    open_blocking_session,
    open_session,
)
from holdfast import Abort, Outcome, SessionService, SlidingWindow, TokenCount
from holdfast.context import Request
from holdfast.errors import InvalidInput, SummaryFailed
from holdfast.hooks import (
    ACCURACY_NOTICE,
    CompactionBoundary,
    CompactionCompleted,
    CompactionEvent,
    CompactionFailed,
    CompactionProgress,
    CompactionSkipped,
    CompactionStarted,
    Hooks,
    Veto,
)
from holdfast.models import Failure, Limits, Notice, Reply, ScriptedModel
from holdfast.stores import Log
from holdfast.strategies import KeepLast
from holdfast.tokens import Usage
from holdfast.triggers import EventCount, always

pytestmark = pytest.mark.anyio
FULL = EventCount(2)
TOO_BIG = {"role": "user", "content": "one that alone is larger than all there may be " * 60}


async def test_events_of_a_compaction_from_start_to_boundary(store: Log) -> None:
    """P11, P15."""
    events = EventRecorder()
    service = await open_session(Hooks(listen=events), store=store, says=Reply(SUMMARY_TEXT, usage=Usage(900, 12)))
    result = await service.compact("s", FULL, SUMMARY, instructions="mind the ships")
    assert events.names == ["Started", "Completed", "Boundary"]
    start, done, boundary = events[0], events.one(CompactionCompleted), events.one(CompactionBoundary)
    name = start.compaction
    assert start == CompactionStarted("s", "auto", result.tokens_before, None, "mind the ships", name)
    assert done == CompactionCompleted(
        session="s",
        origin="auto",
        tokens_before=result.tokens_before,
        tokens_after=result.tokens_after,
        archived=8,
        kept=4,
        round=1,
        strategy=result.strategy,
        summary=SUMMARY_TEXT,
        seconds=result.duration,
        summarizer="scripted",
        cost=result.cost,
        compaction=name,
    )
    assert done.cost is not None
    assert (done.cost.calls, done.cost.usage) == (1, Usage(900, 12))
    (event,) = await service.events("s", kind="compaction")
    assert boundary == CompactionBoundary("s", event.id, 1, ACCURACY_NOTICE, name)
    assert name and {event.compaction for event in events} == {name}
    await service.close()


async def test_progress_events_describe_the_model_call() -> None:
    events = EventRecorder()
    service = await open_session(
        Hooks(listen=events), says=[Failure("transport", "Overloaded"), SUMMARY_TEXT], limits=Limits(backoff=0.001)
    )
    await service.compact("s", always, SUMMARY)
    progress = [event for event in events if isinstance(event, CompactionProgress)]
    assert events[1 : 1 + len(progress)] == progress
    assert [event.what for event in progress if event.kind != "delta"] == [
        "asking a model for the summary",
        "no summary: no answer from the model: Overloaded",
        "waiting 0 s to ask again: Overloaded",
        "asking a model for the summary, attempt 2",
        "the summary is written",
    ]
    written = [event for event in progress if event.kind == "delta"]
    assert {event.what for event in written} == {"writing the summary"}
    assert written[-1].characters == len(SUMMARY_TEXT)
    assert {event.call for event in progress} == {1}


async def test_notify_receives_notices_alongside_events() -> None:
    notices: list[Notice] = []

    def failing(notice: Notice) -> None:
        notices.append(notice)
        raise RuntimeError("no terminal")

    events = EventRecorder()
    service = await open_session(Hooks(listen=events))
    await service.compact("s", always, SUMMARY, notify=failing)
    progress = [event.kind for event in events if isinstance(event, CompactionProgress)]
    assert [notice.kind for notice in notices] == progress != []


async def test_call_listener_receives_only_its_own_events() -> None:
    everything, this = EventRecorder(), EventRecorder()
    service = await open_session(Hooks(listen=[everything]))
    await service.compact("s", always, KeepLast(8), listen=this)
    await service.compact("s", always, KeepLast(4))
    assert this.names == ["Started", "Completed", "Boundary"]
    assert everything.names == this.names * 2
    assert [event.round for event in everything if isinstance(event, CompactionBoundary)] == [1, 2]


async def test_events_name_the_lane() -> None:
    events = EventRecorder()
    service = await open_session()
    await service.append("s", [make_message("u7"), make_message("a7")], lane="tests")
    await service.compact("s", always, KeepLast(2), lane="tests", listen=events)
    assert [event.lane for event in events if isinstance(event, CompactionStarted | CompactionCompleted)] == [
        "tests"
    ] * 2


# -- nothing changed --------------------------------------------------------------------------------------


async def test_no_event_if_the_trigger_does_not_fire() -> None:
    """An agent checks its trigger at every step."""
    events = EventRecorder()
    service = await open_session(Hooks(listen=events))
    await service.compact("s", TokenCount(100_000), SUMMARY)
    await service.compact("s", budget=100_000)
    await service.compact("s", always, KeepLast(4))
    await service.undo("s")
    events.clear()
    assert (await service.compact("s", FULL, KeepLast(4))).outcome is Outcome.NOT_NEEDED
    assert events == []


async def append_meanwhile(service: SessionService, events: EventRecorder) -> Any:
    """A compaction during which a message is appended."""

    async def meanwhile(text: str) -> str:
        await service.append("s", make_message("u9"))
        return SUMMARY_TEXT

    return await service.compact("s", always, SUMMARY, summarizer=meanwhile)


async def fail_then_retry(service: SessionService, events: EventRecorder) -> Any:
    await service.compact("s", FULL, SUMMARY, summarizer=ScriptedModel(" ", repeat=True))
    events.clear()
    return await service.compact("s", FULL, SUMMARY)


SKIPS: dict[str, Any] = {
    "nothing_to_compact": lambda service, events: service.compact("s", always, KeepLast(40)),
    "no_progress": lambda service, events: service.compact(
        "s", always, SUMMARY, summarizer=ScriptedModel("They talked. " * 130, repeat=True)
    ),
    "conflict": append_meanwhile,
    "breaker_open": fail_then_retry,
}


@pytest.mark.parametrize("outcome", SKIPS)
async def test_unchanged_outcomes_emit_skipped(outcome: str) -> None:
    events = EventRecorder()
    service = await open_session(Hooks(listen=events))
    result = await SKIPS[outcome](service, events)
    assert result.outcome == outcome
    started = outcome != "breaker_open"
    assert events.names == (["Started", "Skipped"] if started else ["Skipped"])
    assert events[-1] == CompactionSkipped("s", outcome, result.why, events[0].compaction)
    assert result.why and bool(events[0].compaction) == started


async def test_veto_emits_skipped() -> None:
    events = EventRecorder()
    service = await open_session(Hooks(before=lambda before: Veto("not now"), listen=events))
    await service.compact("s", FULL, SUMMARY)
    assert events.names == ["Started", "Skipped"]
    assert (events[-1].outcome, events[-1].why) == ("vetoed", "not now")


async def cannot_fit(service: SessionService) -> Any:
    await service.append("s", TOO_BIG)
    only = SlidingWindow(1)
    await service.compact("s", always, only, budget=100)
    return await service.compact("s", always, only, budget=100)


async def aborted(service: SessionService) -> Any:
    abort = Abort()
    return await service.compact("s", always, SUMMARY, summarizer=lambda text: str(abort()), abort=abort)


FAILURES: dict[str, Any] = {
    "summary_failed": lambda service: service.compact(
        "s", always, SUMMARY, summarizer=ScriptedModel(Failure("auth", "Incorrect API key provided."))
    ),
    "cannot_fit": cannot_fit,
    "aborted": aborted,
}


@pytest.mark.parametrize("outcome", FAILURES)
async def test_failed_outcomes_emit_failed(outcome: str) -> None:
    """P9: the user decides."""
    events = EventRecorder()
    service = await open_session(Hooks(listen=events))
    result = await FAILURES[outcome](service)
    assert result.outcome == outcome
    assert events.names[-2:] == ["Started", "Failed"]
    assert events[-1] == CompactionFailed("s", outcome, result.why, events[-1].compaction)


async def test_h12_cannot_fit_emits_failed_and_commits_nothing() -> None:
    events = EventRecorder()
    service = await open_session(Hooks(listen=events))
    await service.append("s", TOO_BIG)
    result = await service.compact("s", always, SlidingWindow(4), budget=100)
    assert result.outcome is Outcome.CANNOT_FIT
    assert events.names == ["Started", "Failed"]
    assert events[-1].outcome == "cannot_fit"
    assert await service.round("s") == 0


@pytest.mark.parametrize(
    ("error", "raises", "outcome", "why"),
    [
        (LookupError("no such plan"), False, "summary_failed", "the strategy failed: no such plan"),
        (SummaryFailed("no such plan"), True, "error", "The compaction failed, nothing has changed: no such plan"),
    ],
    ids=["a strategy that breaks", "an error that was asked for"],
)
async def test_strategy_exception_emits_failed(error: Exception, raises: bool, outcome: str, why: str) -> None:
    """L11: only the policy `error` raises in an agent's loop."""

    def broken(request: Request) -> Any:
        raise error

    events = EventRecorder()
    service = await open_session(Hooks(listen=events))
    with pytest.raises(SummaryFailed) if raises else nullcontext():
        assert (await service.compact("s", always, broken)).outcome == outcome
    assert events.names == ["Started", "Failed"]
    assert events[-1].outcome == outcome and events[-1].why.startswith(why)
    assert not service.compacting("s")


async def test_cancelled_task_emits_failed_aborted() -> None:
    events = EventRecorder()
    service = await open_session(Hooks(listen=events))
    with anyio.CancelScope() as scope:
        await service.compact("s", always, SUMMARY, summarizer=never_answering(scope.cancel))
    assert events.names == ["Started", "Failed"]
    assert events[-1].outcome == "aborted"


# -- listeners ------------------------------------------------------------------------------------------------------


async def test_failing_listener_is_logged_and_others_still_called(caplog: pytest.LogCaptureFixture) -> None:
    def failing(event: CompactionEvent) -> None:
        raise RuntimeError("I do not want to know")

    events = EventRecorder()
    service = await open_session(Hooks(listen=[failing, events]))
    with caplog.at_level(logging.ERROR, "holdfast"):
        result = await service.compact("s", always, SUMMARY, listen=failing)
    assert (result.outcome, result.remarks) == (Outcome.COMPACTED, ())
    assert events.names == ["Started", "Completed", "Boundary"]
    assert "the listener for CompactionStarted failed" in caplog.text
    assert "I do not want to know" in caplog.text


async def later(event: CompactionEvent) -> None: ...


@pytest.mark.parametrize("given", ["./tell.sh", 7, EventRecorder, [None]])
async def test_invalid_listener_is_rejected(given: Any) -> None:
    with pytest.raises(InvalidInput, match="A listener is a function that takes an event"):
        Hooks(listen=given)
    service = await open_session()
    with pytest.raises(InvalidInput, match="A listener is a function that takes an event"):
        await service.compact("s", always, SUMMARY, listen=given)


def test_async_listener_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="A listener is a plain function"):
        Hooks(listen=later)


def test_blocking_service_emits_events() -> None:
    everything, this = EventRecorder(), EventRecorder()
    with open_blocking_session(Hooks(listen=everything)) as service:
        service.compact("s", always, KeepLast(4), listen=this)
    assert everything == this
    assert this.names == ["Started", "Completed", "Boundary"]


async def test_events_round_trip_through_json() -> None:
    """P11: print and RPC modes write events as they are."""
    events = EventRecorder()
    service = await open_session(Hooks(listen=events))
    await service.compact("s", always, SUMMARY)
    written = msgspec.json.encode(list(events))
    assert msgspec.json.decode(written)[0]["type"] == "compaction_started"
    assert msgspec.json.decode(written, type=list[CompactionEvent]) == events
