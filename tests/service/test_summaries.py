"""Summaries in sessions: what happens while a model writes, what an abort leaves, and what sets off the next one."""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast import (
    Abort,
    AsUser,
    BlockingSessionService,
    CompactionResult,
    EventCount,
    Failure,
    FreeText,
    KeepLast,
    KeepRecent,
    Limits,
    MemoryStore,
    Notice,
    Outcome,
    Reply,
    ScriptedModel,
    SessionService,
    SlidingWindow,
    StateSummary,
    StructuredSummary,
    Summary,
    TokenCount,
    Usage,
    acompact,
    always,
    check,
    compact,
    never,
)
from holdfast.calls import Answer, ModelCall
from holdfast.stores import Log

pytestmark = pytest.mark.anyio
STRATEGY = Summary(KeepLast(4), FreeText(), AsUser(), verify=False, last_resort="ledger")
PI = Summary(KeepRecent(300, fresh_only=True), FreeText(), AsUser(), verify=False, last_resort="ask")
WORDS = "goes on about the harbour and its ships and whatever else comes to mind " * 3


@pytest.fixture
async def service(store: Log) -> AsyncIterator[SessionService]:
    async with SessionService(store) as service:
        await service.create(id="s", format="openai-chat")
        yield service


def message(name: str) -> dict[str, str]:
    return {"role": "user" if name[0] == "u" else "assistant", "content": f"{name} {WORDS}"}


async def tell(service: SessionService, first: int, turns: int) -> None:
    for number in range(first, first + turns):
        for who in "ua":
            await service.append("s", message(f"{who}{number}"), id=f"{who}{number}")


async def seen(service: SessionService) -> list[str]:
    return [str(shown["content"]).split()[0] for shown in await service.context("s")]


class Meanwhile:
    """A model that lets something else happen while it writes."""

    name = "meanwhile"

    def __init__(self, happens: Callable[[], Awaitable[Any]], says: str = "They talked of the harbour.") -> None:
        self.happens, self.says, self.calls = happens, says, 0

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        self.calls += 1
        on_delta(self.says[:5])
        await self.happens()
        on_delta(self.says[5:])
        return Reply(self.says)


# -- rounds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [STRATEGY, PI, StructuredSummary(KeepLast(4), verify=False)])
async def test_no_message_falls_between_two_rounds(service: SessionService, strategy: Any) -> None:
    """(behaviour 1) What one round kept is kept, or told, in the next (P7)."""
    model = ScriptedModel(
        lambda call: "### Current State\n- Working on: it" if "### Completed" in call.prompt else "They talked.",
        repeat=True,
    )
    for start in (1, 7, 13):
        await tell(service, start, 6)
        result = await service.compact("s", always, strategy, summarizer=model)
        assert result.outcome is Outcome.COMPACTED
        told = "".join(call.prompt for call in model.calls)
        visible = str(result.messages)
        names = [f"{who}{number}" for number in range(1, start + 6) for who in "ua"]
        assert [name for name in names if f"{name} " not in told and f"'{name} " not in visible] == []
    assert await service.verify("s") == []


async def test_p7_pi_keeps_only_what_came_after_its_last_compaction(service: SessionService) -> None:
    """(behaviour 1) What the first kept, the second tells its model."""
    await tell(service, 1, 7)
    await service.compact("s", always, PI, summarizer=ScriptedModel("The first part."))
    kept = (await seen(service))[1:]
    assert kept
    await tell(service, 8, 2)
    model = ScriptedModel("Both parts.")
    await service.compact("s", always, PI, summarizer=model)
    assert "The first part." in model.calls[0].prompt
    assert all(f"{name} " in model.calls[0].prompt for name in kept)
    assert not set(kept) & set(await seen(service))


@pytest.mark.parametrize("answer", [Reply(" "), Reply("cut o", finish="length"), Failure("auth", "wrong key")])
async def test_what_is_no_summary_leaves_the_one_before(service: SessionService, answer: Any) -> None:
    """(behaviour 6)"""
    strategy = Summary(KeepLast(4), FreeText(), AsUser(), verify=False, last_resort="unchanged")
    await tell(service, 1, 6)
    await service.compact("s", always, strategy, summarizer=ScriptedModel("The first part."))
    await tell(service, 7, 6)
    before = await service.context("s")
    failed = await service.compact("s", always, strategy, summarizer=ScriptedModel(answer, repeat=True))
    assert (failed.outcome, failed.archived) == (Outcome.SUMMARY_FAILED, [])
    assert (await service.context("s")).messages == before.messages == failed.messages
    assert len(await service.events("s", kind="compaction")) == 1
    model = ScriptedModel("Both parts.")
    await service.compact("s", always, strategy, summarizer=model)
    assert "The first part." in model.calls[0].prompt


async def test_where_nothing_was_said_since_the_last_round_nobody_is_asked(service: SessionService) -> None:
    """(behaviour 7)"""
    await tell(service, 1, 6)
    await service.compact("s", always, STRATEGY, summarizer=ScriptedModel("The first part."))
    version, model = (await service.get("s")).version, ScriptedModel("never")
    again = await service.compact("s", always, STRATEGY, summarizer=model)
    assert (again.outcome, model.calls) == (Outcome.NOTHING_TO_COMPACT, [])
    assert (await service.get("s")).version == version


async def test_an_automatic_compaction_must_be_worth_a_tenth_and_a_person_gets_what_there_is(
    service: SessionService,
) -> None:
    """(behaviour 7)"""
    await tell(service, 1, 12)
    strategy = Summary(KeepLast(22), FreeText(), AsUser(prefix=""), verify=False, last_resort="unchanged")
    little = ScriptedModel("Two messages about the harbour. ", repeat=True)
    automatic = await service.compact("s", EventCount(1), strategy, summarizer=little)
    assert (automatic.outcome, len(await seen(service))) == (Outcome.NO_PROGRESS, 24)
    by_hand = await service.compact("s", None, strategy, summarizer=little)
    assert by_hand.outcome is Outcome.COMPACTED


# -- usage (behaviours 3, 15, 16) -----------------------------------------------------------------------------------


async def fill(service: SessionService, tokens: int) -> None:
    """Six turns of which the provider says that they came to so many tokens."""
    await tell(service, 1, 5)
    await service.append("s", message("u6"), id="u6")
    usage = {"prompt_tokens": tokens - 50, "completion_tokens": 50, "total_tokens": tokens}
    await service.append("s", message("a6"), id="a6", usage=usage)


async def test_the_usage_of_a_reply_from_before_a_compaction_sets_nothing_off(service: SessionService) -> None:
    """(behaviour 3) It is still visible, but it speaks of a context that is no more: the size is unknown until a
    reply comes."""
    full = TokenCount(1_900)
    await fill(service, 2_000)
    assert (await service.context("s")).known
    first = await service.compact("s", full, STRATEGY, summarizer=ScriptedModel("They talked."))
    assert first.outcome is Outcome.COMPACTED
    assert "a6" in await seen(service)
    context = await service.context("s")
    assert not context.known
    assert context.tokens < 1_900
    model = ScriptedModel("never")
    await service.append("s", message("u7"), id="u7")
    assert (await service.compact("s", full, STRATEGY, summarizer=model)).outcome is Outcome.NOT_NEEDED
    await service.append("s", message("a7"), id="a7", usage={"prompt_tokens": 700, "completion_tokens": 20})
    assert (await service.context("s")).known
    assert (await service.context("s")).tokens == 720
    assert model.calls == []


async def test_it_is_so_for_a_service_that_opens_the_session_anew(service: SessionService) -> None:
    """(behaviour 3)"""
    await fill(service, 2_000)
    await service.compact("s", TokenCount(1_900), STRATEGY, summarizer=ScriptedModel("They talked."))
    other = SessionService(service.store)
    assert not (await other.context("s")).known
    assert (await other.compact("s", TokenCount(1_900), STRATEGY)).outcome is Outcome.NOT_NEEDED


async def test_the_summary_calls_own_usage_sets_nothing_off(service: SessionService) -> None:
    """(behaviour 15) It read all of it and more: that is what it cost, not how large the context is."""
    await fill(service, 2_000)
    model = ScriptedModel(Reply("They talked.", usage=Usage(400_000, 9_000)), repeat=True)
    first = await service.compact("s", TokenCount(1_900), STRATEGY, summarizer=model)
    assert first.cost is not None
    assert first.tokens_after < 1_900
    assert not (await service.context("s")).known
    for number in (7, 8):
        await service.append("s", message(f"u{number}"), id=f"u{number}")
        again = await service.compact("s", TokenCount(1_900), STRATEGY, summarizer=model)
        assert again.outcome is Outcome.NOT_NEEDED
    assert len(model.calls) == 1


async def test_off_is_off(service: SessionService) -> None:
    """(behaviour 16) Where automatic compaction is off, no size sets it off. The reactive path, after an overflow of
    the agent's own call, comes with the agent's loop and will have to mind the same switch."""
    await fill(service, 1_900_000)
    model = ScriptedModel("never")
    for options in ({}, {"budget": 100}, {"budget": 100, "target": 50}):
        result = await service.compact("s", never, STRATEGY, summarizer=model, **options)
        assert result.outcome is Outcome.NOT_NEEDED
    assert model.calls == []


async def test_amp_does_nothing_by_itself(store: Log) -> None:
    """(behaviour 16) P23."""
    model = ScriptedModel("never")
    async with SessionService(store, preset="amp", summarizer=model) as service:
        await service.create(id="s", format="openai-chat")
        await fill(service, 1_900_000)
        assert (await service.compact("s")).outcome is Outcome.NOT_NEEDED
    assert model.calls == []


# -- what happens while a model writes (behaviour 9) ----------------------------------------------------------------


async def test_what_is_said_while_a_model_writes_stands_behind_the_summary(service: SessionService) -> None:
    """(behaviour 9) With `rebase`, appended messages do not matter to it, and nothing of them is lost."""
    await tell(service, 1, 6)
    model = Meanwhile(lambda: service.append("s", message("u7"), id="u7"))
    result = await service.compact("s", always, STRATEGY, "rebase", summarizer=model)
    assert result.outcome is Outcome.COMPACTED
    assert await seen(service) == ["Summary", "u5", "a5", "u6", "a6", "u7"]
    assert [str(shown["content"]).split()[0] for shown in result.messages][-1] == "u7"
    assert await service.verify("s") == []


async def test_a_careful_caller_is_told_that_something_was_said(service: SessionService) -> None:
    """(behaviour 9) With `skip`, the default, any append is a conflict, and the summary is dropped (S3)."""
    await tell(service, 1, 6)
    model = Meanwhile(lambda: service.append("s", message("u7"), id="u7"))
    result = await service.compact("s", always, STRATEGY, summarizer=model)
    assert (result.outcome, model.calls) == (Outcome.CONFLICT, 1)
    assert "another writer" in result.why
    assert len(await seen(service)) == 13
    assert await service.events("s", kind="compaction") == []


@pytest.mark.parametrize("on_conflict", ["skip", "rebase"])
async def test_an_undo_while_a_model_writes_discards_the_summary(service: SessionService, on_conflict: Any) -> None:
    """(behaviour 9) The prefix is another one: a summary of the old one must not be put before it."""
    await tell(service, 1, 6)
    await service.compact("s", always, STRATEGY, summarizer=ScriptedModel("The first part."))
    await tell(service, 7, 4)
    model = Meanwhile(lambda: service.undo("s"))
    result = await service.compact("s", always, STRATEGY, on_conflict, summarizer=model)
    assert result.outcome is Outcome.CONFLICT
    assert await seen(service) == [f"{who}{number}" for number in range(1, 11) for who in "ua"]
    assert len(await service.events("s", kind="compaction")) == 1


@pytest.mark.parametrize("on_conflict", ["skip", "rebase"])
async def test_another_compaction_while_a_model_writes_wins(service: SessionService, on_conflict: Any) -> None:
    """(behaviour 9)"""
    await tell(service, 1, 8)

    async def other() -> None:
        faster = await service.compact("s", always, KeepLast(2))
        assert faster.outcome is Outcome.COMPACTED

    result = await service.compact("s", always, STRATEGY, on_conflict, summarizer=Meanwhile(other))
    assert result.outcome is Outcome.CONFLICT
    assert await seen(service) == ["u8", "a8"]
    assert [str(shown["content"]).split()[0] for shown in result.messages] == ["u8", "a8"]


async def test_a_pin_while_a_model_writes_is_not_lost(service: SessionService) -> None:
    """(behaviour 9)"""
    await tell(service, 1, 6)
    model = Meanwhile(lambda: service.pin("s", "u1"))
    result = await service.compact("s", always, STRATEGY, "rebase", summarizer=model)
    assert result.outcome is Outcome.CONFLICT
    assert (await seen(service))[0] == "u1"


async def test_a_redaction_while_a_model_writes_is_not_undone_by_its_summary(service: SessionService) -> None:
    """(behaviour 9, H1) What the owner has taken out does not come back in a summary that was begun before."""
    await service.append("s", {"role": "user", "content": f"u0 the code word is heliotrope {WORDS}"}, id="u0")
    await tell(service, 1, 6)
    model = Meanwhile(lambda: service.redact("s", "u0"), says="The code word is heliotrope.")
    result = await service.compact("s", always, STRATEGY, "rebase", summarizer=model)
    assert result.outcome is Outcome.CONFLICT
    assert "heliotrope" not in str(await service.export("s"))


async def test_two_at_once_make_one_summary(service: SessionService) -> None:
    """(behaviour 9)"""
    await tell(service, 1, 6)
    results: list[CompactionResult] = []

    async def one(says: str) -> None:
        model = Meanwhile(checkpoint, says=says)
        results.append(await service.compact("s", always, STRATEGY, "rebase", summarizer=model))

    async with anyio.create_task_group() as group:
        group.start_soon(one, "The one.")
        group.start_soon(one, "The other.")
    assert sorted(result.outcome for result in results)[0] is Outcome.COMPACTED
    assert len(await service.events("s", kind="compaction")) == 1
    assert await seen(service) == ["Summary", "u5", "a5", "u6", "a6"]


async def test_a_fork_made_while_a_model_writes_has_the_context_it_was_made_from(service: SessionService) -> None:
    """(behaviour 9)"""
    await tell(service, 1, 6)
    model = Meanwhile(lambda: service.fork("s", id="f"))
    assert (await service.compact("s", always, STRATEGY, summarizer=model)).outcome is Outcome.COMPACTED
    assert len(await service.context("f")) == 12


# -- stopping it (behaviour 12) -------------------------------------------------------------------------------------


class Stage:
    """A model that comes to some point and then says so; and an abort that is called there."""

    name = "stage"

    def __init__(self, point: str) -> None:
        self.point, self.abort, self.calls = point, Abort(), 0
        if point == "before the call":
            self.abort()

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        self.calls += 1
        if self.point == "in backoff":
            return Failure("transport", "Overloaded")
        on_delta("They ta")
        threading.Thread(target=self.abort).start()
        await anyio.sleep_forever()
        raise AssertionError("it was stopped")

    def notify(self, notice: Notice) -> None:
        if notice.kind == "waiting":
            threading.Thread(target=self.abort).start()


POINTS = ["before the call", "in mid-stream", "in backoff"]
PATIENT = Limits(backoff=50.0, timeout=50.0)


@pytest.mark.parametrize("point", POINTS)
async def test_an_abort_leaves_the_session_as_it_was(service: SessionService, point: str) -> None:
    """(behaviour 12) P8: nothing is written, not even that it was tried, and nothing stands in for the summary."""
    await tell(service, 1, 6)
    version, before = (await service.get("s")).version, (await service.context("s")).messages
    service.limits, stage = PATIENT, Stage(point)
    result = await service.compact(
        "s", EventCount(1), STRATEGY, summarizer=stage, abort=stage.abort, notify=stage.notify
    )
    assert (result.outcome, result.fallback, result.summary) == (Outcome.ABORTED, "", None)
    assert (await service.get("s")).version == version
    assert (await service.context("s")).messages == before == result.messages
    assert stage.calls == (point != "before the call")
    later = await service.compact("s", EventCount(1), STRATEGY, summarizer=ScriptedModel("They talked."))
    assert later.outcome is Outcome.COMPACTED, "and the next may be tried at once"


@pytest.mark.parametrize("point", POINTS)
def test_an_abort_from_a_blocking_session(point: str) -> None:
    """(behaviour 12)"""
    stage = Stage(point)
    with BlockingSessionService(MemoryStore(), limits=PATIENT) as service:
        service.create(id="s")
        for number in range(12):
            service.append("s", message(f"{'ua'[number % 2]}{number}"))
        options: Any = {"summarizer": stage, "abort": stage.abort, "notify": stage.notify}
        result = service.compact("s", always, STRATEGY, **options)
        assert result.outcome is Outcome.ABORTED
        assert service.get("s").version == 12
        assert len(service.context("s")) == 12


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("colour", ["blocking", "async"])
def test_an_abort_without_a_session(point: str, colour: str) -> None:
    """(behaviour 12)"""
    stage, given = Stage(point), [message(f"{'ua'[number % 2]}{number}") for number in range(12)]
    options: Any = {"budget": 10**6, "trigger": always, "strategy": STRATEGY, "limits": PATIENT}
    options |= {"summarizer": stage, "abort": stage.abort, "notify": stage.notify}
    result = compact(given, **options) if colour == "blocking" else anyio.run(lambda: acompact(given, **options))
    assert (result.outcome, result.messages, result.checkpoint) == (Outcome.ABORTED, given, None)
    assert (result.archived, result.fallback) == ([], "")
    assert stage.calls == (point != "before the call")


@pytest.mark.parametrize("point", ["in mid-stream", "in backoff"])
async def test_a_cancelled_task_leaves_the_session_as_it_was(service: SessionService, point: str) -> None:
    """(behaviour 12) Cancellation goes through; nothing is written on the way."""
    await tell(service, 1, 6)
    version = (await service.get("s")).version
    service.limits = PATIENT
    with anyio.CancelScope() as scope:

        async def stops() -> None:
            if point == "in backoff":
                raise ConnectionError("Overloaded")
            scope.cancel()
            await anyio.sleep_forever()

        class Flaky(Meanwhile):
            async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
                if point == "in backoff":
                    return Failure("transport", "Overloaded")
                return await super().__call__(call, on_delta)

        def waiting(notice: Notice) -> None:
            if notice.kind == "waiting":
                scope.cancel()

        await service.compact("s", always, STRATEGY, summarizer=Flaky(stops), notify=waiting)
    assert scope.cancelled_caught
    assert (await service.get("s")).version == version
    assert len(await seen(service)) == 12
    assert check((await service.context("s")).messages, "openai-chat") == []


async def test_an_abort_in_the_middle_of_a_state_summary_of_several_pieces_leaves_nothing(
    service: SessionService,
) -> None:
    """(behaviour 12) The first piece was written; it is not committed by itself (W6, W8)."""
    for number in range(30):
        text = f"{'ua'[number % 2]}{number} " + "a very long message " * 800
        await service.append("s", {"role": ("user", "assistant")[number % 2], "content": text})
    abort, answered = Abort(), []

    def stops(call: ModelCall) -> str:
        answered.append(call)
        if len(answered) == 2:
            abort()
        return '{"summary": "KEY FACTS so far", "state_delta": {"tasks": ["mend the pier"]}}'

    model = ScriptedModel(stops, repeat=True)
    result = await service.compact("s", always, StateSummary(4), summarizer=model, abort=abort)
    assert (result.outcome, len(answered)) == (Outcome.ABORTED, 2)
    assert (await service.get("s")).version == 30


async def test_a_window_or_a_prune_leaves_the_summary_standing(service: SessionService) -> None:
    """S12: what a model wrote goes back to it word for word, also if something else was done in between."""
    await tell(service, 1, 6)
    await service.compact("s", always, STRATEGY, summarizer=ScriptedModel("They talked about ships."))
    await tell(service, 7, 6)
    await service.compact("s", always, SlidingWindow(4))
    model = ScriptedModel("They talked about ships and tides.")
    await tell(service, 13, 6)
    await service.compact("s", always, STRATEGY, summarizer=model)
    assert re.search(r"<earlier-summary-\w+>\nThey talked about ships.\n</", model.calls[0].prompt)
