"""What listeners are told of a compaction: every kind of end, in order, and typed (P9, P11, G7)."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import msgspec
import pytest

from holdfast import (
    Abort,
    EventCount,
    Failure,
    KeepLast,
    Limits,
    Notice,
    Outcome,
    Reply,
    ScriptedModel,
    SessionService,
    SlidingWindow,
    TokenCount,
    Usage,
    always,
)
from holdfast.errors import InvalidInput
from holdfast.hooks import (
    ACCURACY,
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
from holdfast.stores import Log
from holdfast.view import Request
from hooked import SAID, SUMMARY, Heard, blocking_talk, message, stopping, talk

pytestmark = pytest.mark.anyio
FULL = EventCount(2)
TOO_BIG = {"role": "user", "content": "one that alone is larger than all there may be " * 60}


async def test_a_compaction_is_told_from_its_start_to_its_boundary(store: Log) -> None:
    """P11, P15."""
    heard = Heard()
    service = await talk(Hooks(listen=heard), store=store, says=Reply(SAID, usage=Usage(900, 12)))
    result = await service.compact("s", FULL, SUMMARY, instructions="mind the ships")
    assert heard.names == ["Started", "Completed", "Boundary"]
    start, done, boundary = heard[0], heard.one(CompactionCompleted), heard.one(CompactionBoundary)
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
        summary=SAID,
        seconds=result.duration,
        summarizer="scripted",
        cost=result.cost,
        compaction=name,
    )
    assert done.cost is not None
    assert (done.cost.calls, done.cost.usage) == (1, Usage(900, 12))
    (event,) = await service.events("s", kind="compaction")
    assert boundary == CompactionBoundary("s", event.id, 1, ACCURACY, name)
    assert name and {event.compaction for event in heard} == {name}
    await service.close()


async def test_the_progress_of_the_model_stands_in_between_in_words() -> None:
    heard = Heard()
    service = await talk(
        Hooks(listen=heard), says=[Failure("transport", "Overloaded"), SAID], limits=Limits(backoff=0.001)
    )
    await service.compact("s", always, SUMMARY)
    progress = [event for event in heard if isinstance(event, CompactionProgress)]
    assert heard[1 : 1 + len(progress)] == progress
    assert [event.what for event in progress if event.kind != "delta"] == [
        "asking a model for the summary",
        "no summary: transport: Overloaded",
        "waiting 0 s to ask again: Overloaded",
        "asking a model for the summary, attempt 2",
        "the summary is written",
    ]
    written = [event for event in progress if event.kind == "delta"]
    assert {event.what for event in written} == {"writing the summary"}
    assert written[-1].characters == len(SAID)
    assert {event.call for event in progress} == {1}


async def test_who_asked_for_notices_gets_them_still() -> None:
    notices: list[Notice] = []

    def breaks(notice: Notice) -> None:
        notices.append(notice)
        raise RuntimeError("no terminal")

    heard = Heard()
    service = await talk(Hooks(listen=heard))
    await service.compact("s", always, SUMMARY, notify=breaks)
    progress = [event.kind for event in heard if isinstance(event, CompactionProgress)]
    assert [notice.kind for notice in notices] == progress != []


async def test_one_call_may_have_a_listener_of_its_own() -> None:
    everything, this = Heard(), Heard()
    service = await talk(Hooks(listen=[everything]))
    await service.compact("s", always, KeepLast(8), listen=this)
    await service.compact("s", always, KeepLast(4))
    assert this.names == ["Started", "Completed", "Boundary"]
    assert everything.names == this.names * 2
    assert [event.round for event in everything if isinstance(event, CompactionBoundary)] == [1, 2]


async def test_a_lane_is_named() -> None:
    heard = Heard()
    service = await talk()
    await service.append("s", [message("u7"), message("a7")], lane="tests")
    await service.compact("s", always, KeepLast(2), lane="tests", listen=heard)
    assert [event.lane for event in heard if isinstance(event, CompactionStarted | CompactionCompleted)] == [
        "tests"
    ] * 2


# -- where nothing was changed --------------------------------------------------------------------------------------


async def test_that_nothing_was_due_is_not_told() -> None:
    """It is so at every step of an agent."""
    heard = Heard()
    service = await talk(Hooks(listen=heard))
    await service.compact("s", TokenCount(100_000), SUMMARY)
    await service.compact("s", budget=100_000)
    await service.compact("s", always, KeepLast(4))
    await service.undo("s")
    heard.clear()
    assert (await service.compact("s", FULL, KeepLast(4))).outcome is Outcome.NOT_NEEDED
    assert heard == []


async def lost(service: SessionService, heard: Heard) -> Any:
    """A compaction during which something is said."""

    async def meanwhile(text: str) -> str:
        await service.append("s", message("u9"))
        return SAID

    return await service.compact("s", always, SUMMARY, summarizer=meanwhile)


async def twice(service: SessionService, heard: Heard) -> Any:
    await service.compact("s", FULL, SUMMARY, summarizer=ScriptedModel(" ", repeat=True))
    heard.clear()
    return await service.compact("s", FULL, SUMMARY)


SKIPS: dict[str, Any] = {
    "nothing_to_compact": lambda service, heard: service.compact("s", always, KeepLast(40)),
    "no_progress": lambda service, heard: service.compact(
        "s", always, SUMMARY, summarizer=ScriptedModel("They talked. " * 130, repeat=True)
    ),
    "conflict": lost,
    "breaker_open": twice,
}


@pytest.mark.parametrize("outcome", SKIPS)
async def test_what_was_right_and_changed_nothing_is_told_as_skipped(outcome: str) -> None:
    heard = Heard()
    service = await talk(Hooks(listen=heard))
    result = await SKIPS[outcome](service, heard)
    assert result.outcome == outcome
    begun = outcome != "breaker_open"
    assert heard.names == (["Started", "Skipped"] if begun else ["Skipped"])
    assert heard[-1] == CompactionSkipped("s", outcome, result.why, heard[0].compaction)
    assert result.why and bool(heard[0].compaction) == begun


async def test_a_veto_is_told_as_skipped() -> None:
    heard = Heard()
    service = await talk(Hooks(before=lambda before: Veto("not now"), listen=heard))
    await service.compact("s", FULL, SUMMARY)
    assert heard.names == ["Started", "Skipped"]
    assert (heard[-1].outcome, heard[-1].why) == ("vetoed", "not now")


async def big(service: SessionService) -> Any:
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
    "cannot_fit": big,
    "aborted": aborted,
}


@pytest.mark.parametrize("outcome", FAILURES)
async def test_what_was_tried_and_changed_nothing_is_told_as_failed(outcome: str) -> None:
    """P9: the person decides."""
    heard = Heard()
    service = await talk(Hooks(listen=heard))
    result = await FAILURES[outcome](service)
    assert result.outcome == outcome
    assert heard.names[-2:] == ["Started", "Failed"]
    assert heard[-1] == CompactionFailed("s", outcome, result.why, heard[-1].compaction)


async def test_the_smallest_valid_context_is_committed_and_told_even_where_it_does_not_fit() -> None:
    heard = Heard()
    service = await talk(Hooks(listen=heard))
    await service.append("s", TOO_BIG)
    result = await service.compact("s", always, SlidingWindow(4), budget=100)
    assert result.outcome is Outcome.CANNOT_FIT
    assert heard.names == ["Started", "Completed", "Boundary"]
    assert heard.one(CompactionCompleted).outcome == "cannot_fit"


async def test_a_strategy_that_raises_is_told_as_failed_and_still_raises() -> None:
    def broken(request: Request) -> Any:
        raise LookupError("no such plan")

    heard = Heard()
    service = await talk(Hooks(listen=heard))
    with pytest.raises(LookupError):
        await service.compact("s", always, broken)
    assert heard.names == ["Started", "Failed"]
    assert (heard[-1].outcome, heard[-1].why) == ("error", "LookupError: no such plan")
    assert not service.compacting("s")


async def test_a_cancelled_task_is_told_as_aborted() -> None:
    heard = Heard()
    service = await talk(Hooks(listen=heard))
    with anyio.CancelScope() as scope:
        await service.compact("s", always, SUMMARY, summarizer=stopping(scope.cancel))
    assert heard.names == ["Started", "Failed"]
    assert heard[-1].outcome == "aborted"


# -- listeners ------------------------------------------------------------------------------------------------------


async def test_a_listener_that_raises_is_logged_and_the_others_hear_all(caplog: pytest.LogCaptureFixture) -> None:
    def deaf(event: CompactionEvent) -> None:
        raise RuntimeError("I do not want to know")

    heard = Heard()
    service = await talk(Hooks(listen=[deaf, heard]))
    with caplog.at_level(logging.ERROR, "holdfast"):
        result = await service.compact("s", always, SUMMARY, listen=deaf)
    assert (result.outcome, result.remarks) == (Outcome.COMPACTED, ())
    assert heard.names == ["Started", "Completed", "Boundary"]
    assert "a listener broke on CompactionStarted" in caplog.text
    assert "I do not want to know" in caplog.text


async def later(event: CompactionEvent) -> None: ...


@pytest.mark.parametrize("given", ["./tell.sh", 7, Heard, [None]])
async def test_who_cannot_listen_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match="A listener is a function that takes an event"):
        Hooks(listen=given)
    service = await talk()
    with pytest.raises(InvalidInput, match="A listener is a function that takes an event"):
        await service.compact("s", always, SUMMARY, listen=given)


def test_a_listener_is_a_plain_function() -> None:
    with pytest.raises(InvalidInput, match="A listener is a plain function"):
        Hooks(listen=later)


def test_blocking_callers_are_told_too() -> None:
    everything, this = Heard(), Heard()
    with blocking_talk(Hooks(listen=everything)) as service:
        service.compact("s", always, KeepLast(4), listen=this)
    assert everything == this
    assert this.names == ["Started", "Completed", "Boundary"]


async def test_an_event_is_a_json_record_with_its_type() -> None:
    """P11: print and RPC modes write them as they are."""
    heard = Heard()
    service = await talk(Hooks(listen=heard))
    await service.compact("s", always, SUMMARY)
    written = msgspec.json.encode(list(heard))
    assert msgspec.json.decode(written)[0]["type"] == "compaction_started"
    assert msgspec.json.decode(written, type=list[CompactionEvent]) == heard
