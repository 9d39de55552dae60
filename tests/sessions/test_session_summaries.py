"""Summaries in sessions: changes while a model writes, aborts, and triggers of the next compaction."""

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
    BlockingSessionService,
    CompactionResult,
    MemoryStore,
    Outcome,
    SessionService,
    SlidingWindow,
    StructuredSummary,
    Summary,
    TokenCount,
    acompact,
    check,
    compact,
)
from holdfast.models import Failure, Limits, Notice, Reply, ScriptedModel
from holdfast.models.calls import Answer, ModelCall
from holdfast.stores import Log
from holdfast.strategies import KeepLast, KeepRecent, StateSummary
from holdfast.summaries import AsUser, FreeText
from holdfast.tokens import Usage
from holdfast.triggers import EventCount, always, never

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


async def append_turns(service: SessionService, first: int, turns: int) -> None:
    for number in range(first, first + turns):
        for who in "ua":
            await service.append("s", message(f"{who}{number}"), id=f"{who}{number}")


async def visible_names(service: SessionService) -> list[str]:
    return [str(shown["content"]).split()[0] for shown in await service.context("s")]


class Meanwhile:
    """A model that runs a callback while it writes."""

    name = "meanwhile"

    def __init__(self, callback: Callable[[], Awaitable[Any]], says: str = "They talked of the harbour.") -> None:
        self.callback, self.says, self.calls = callback, says, 0

    async def __call__(self, call: ModelCall, on_delta: Callable[[str], None]) -> Answer:
        self.calls += 1
        on_delta(self.says[:5])
        await self.callback()
        on_delta(self.says[5:])
        return Reply(self.says)


async def test_reasoning_appended_while_a_model_writes_is_not_sent(store: Log) -> None:
    """Its signature covers the messages before the compaction; that of later replies covers the new ones."""

    def reply(name: str) -> dict[str, Any]:
        thinking = {"type": "thinking", "thinking": f"Hm {name}.", "signature": "c2ln"}
        return {"role": "assistant", "content": [thinking, {"type": "text", "text": f"{name} {WORDS}"}]}

    async with SessionService(store) as service:
        await service.create(id="s", format="anthropic")
        await append_turns(service, 1, 6)

        async def meanwhile() -> None:
            await service.append("s", [message("u7"), reply("a7"), message("u8")])

        await service.compact("s", always, STRATEGY, "rebase", summarizer=Meanwhile(meanwhile))
        await service.append("s", [reply("a8"), message("u9")])
        shown = str((await service.context("s")).messages)
        assert "a7 goes" in shown and "Hm a7." not in shown and "Hm a8." in shown
        reread = await SessionService(store).context("s")
        assert str(reread.messages) == shown
        await service.compact("s", always, SlidingWindow(5), "rebase")
        shown = str((await service.context("s")).messages)
        assert "a7 goes" in shown and "u1 goes" not in shown and "Hm" not in shown
        assert await service.verify("s") == []


async def test_reasoning_of_a_reply_requested_before_a_compaction_is_not_sent_after_it(store: Log) -> None:
    """Its signature covers the context that it was requested with, which is another one by now."""
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    reply = {"role": "assistant", "content": [thinking, {"type": "text", "text": "The tide is low."}]}
    async with SessionService(store) as service:
        await service.create(id="s", format="anthropic")
        await append_turns(service, 1, 6)
        await service.append("s", message("u7"))
        requested = await service.context("s")
        await service.compact("s", always, SlidingWindow(3))
        await service.append("s", [reply, message("u8")], made_on=requested.checkpoint)
        for reader in (service, SessionService(store)):
            shown = (await reader.context("s")).messages
            assert shown[-2]["content"] == reply["content"][1:]
        await service.append("s", [reply, message("u9")], made_on=(await service.context("s")).checkpoint)
        for reader in (service, SessionService(store)):
            assert (await reader.context("s")).messages[-2]["content"] == reply["content"]


# -- rounds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [STRATEGY, PI, StructuredSummary(KeepLast(4), verify=False)])
async def test_every_message_is_kept_or_summarized_in_the_next_round(service: SessionService, strategy: Any) -> None:
    """(behaviour 1) A message kept by one round is kept or summarized by the next (P7)."""
    model = ScriptedModel(
        lambda call: "### Current State\n- Working on: it" if "### Completed" in call.prompt else "They talked.",
        repeat=True,
    )
    for start in (1, 7, 13):
        await append_turns(service, start, 6)
        result = await service.compact("s", always, strategy, summarizer=model)
        assert result.outcome is Outcome.COMPACTED
        prompts = "".join(call.prompt for call in model.calls)
        visible = str(result.messages)
        names = [f"{who}{number}" for number in range(1, start + 6) for who in "ua"]
        assert [name for name in names if f"{name} " not in prompts and f"'{name} " not in visible] == []
    assert await service.verify("s") == []


async def test_p7_pi_keeps_only_events_after_its_last_compaction(service: SessionService) -> None:
    """(behaviour 1) Messages kept by the first round are sent to the second round's model."""
    await append_turns(service, 1, 7)
    await service.compact("s", always, PI, summarizer=ScriptedModel("The first part."))
    kept = (await visible_names(service))[1:]
    assert kept
    await append_turns(service, 8, 2)
    model = ScriptedModel("Both parts.")
    await service.compact("s", always, PI, summarizer=model)
    assert "The first part." in model.calls[0].prompt
    assert all(f"{name} " in model.calls[0].prompt for name in kept)
    assert not set(kept) & set(await visible_names(service))


@pytest.mark.parametrize("answer", [Reply(" "), Reply("cut o", finish="length"), Failure("auth", "wrong key")])
async def test_invalid_summary_keeps_the_previous_one(service: SessionService, answer: Any) -> None:
    """(behaviour 6)"""
    strategy = Summary(KeepLast(4), FreeText(), AsUser(), verify=False, last_resort="unchanged")
    await append_turns(service, 1, 6)
    await service.compact("s", always, strategy, summarizer=ScriptedModel("The first part."))
    await append_turns(service, 7, 6)
    before = await service.context("s")
    failed = await service.compact("s", always, strategy, summarizer=ScriptedModel(answer, repeat=True))
    assert (failed.outcome, failed.archived) == (Outcome.SUMMARY_FAILED, [])
    assert (await service.context("s")).messages == before.messages == failed.messages
    assert len(await service.events("s", kind="compaction")) == 1
    model = ScriptedModel("Both parts.")
    await service.compact("s", always, strategy, summarizer=model)
    assert "The first part." in model.calls[0].prompt


async def test_nothing_new_since_the_last_round_calls_no_model(service: SessionService) -> None:
    """(behaviour 7)"""
    await append_turns(service, 1, 6)
    await service.compact("s", always, STRATEGY, summarizer=ScriptedModel("The first part."))
    version, model = (await service.get("s")).version, ScriptedModel("never")
    again = await service.compact("s", always, STRATEGY, summarizer=model)
    assert (again.outcome, model.calls) == (Outcome.NOTHING_TO_COMPACT, [])
    assert (await service.get("s")).version == version


async def test_automatic_compaction_needs_min_saving_and_manual_does_not(
    service: SessionService,
) -> None:
    """(behaviour 7)"""
    await append_turns(service, 1, 12)
    strategy = Summary(KeepLast(22), FreeText(), AsUser(prefix=""), verify=False, last_resort="unchanged")
    little = ScriptedModel("Two messages about the harbour. ", repeat=True)
    automatic = await service.compact("s", EventCount(1), strategy, summarizer=little)
    assert (automatic.outcome, len(await visible_names(service))) == (Outcome.NO_PROGRESS, 24)
    by_hand = await service.compact("s", None, strategy, summarizer=little)
    assert by_hand.outcome is Outcome.COMPACTED


# -- usage (behaviours 3, 15, 16) -----------------------------------------------------------------------------------


async def fill(service: SessionService, tokens: int) -> None:
    """Appends six turns with the provider's token usage."""
    await append_turns(service, 1, 5)
    await service.append("s", message("u6"), id="u6")
    usage = {"prompt_tokens": tokens - 50, "completion_tokens": 50, "total_tokens": tokens}
    await service.append("s", message("a6"), id="a6", usage=usage)


async def test_usage_from_before_a_compaction_does_not_trigger(service: SessionService) -> None:
    """(behaviour 3) The reply is still visible, but its usage describes the old context: the size is unknown until the
    next reply."""
    full = TokenCount(1_900)
    await fill(service, 2_000)
    assert (await service.context("s")).known
    first = await service.compact("s", full, STRATEGY, summarizer=ScriptedModel("They talked."))
    assert first.outcome is Outcome.COMPACTED
    assert "a6" in await visible_names(service)
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


async def test_usage_from_before_a_compaction_does_not_trigger_after_reopening(service: SessionService) -> None:
    """(behaviour 3)"""
    await fill(service, 2_000)
    await service.compact("s", TokenCount(1_900), STRATEGY, summarizer=ScriptedModel("They talked."))
    other = SessionService(service.store)
    assert not (await other.context("s")).known
    assert (await other.compact("s", TokenCount(1_900), STRATEGY)).outcome is Outcome.NOT_NEEDED


async def test_usage_of_the_summary_call_does_not_trigger(service: SessionService) -> None:
    """(behaviour 15) The usage of the summary call is its cost, not the size of the context."""
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


async def test_never_trigger_never_compacts(service: SessionService) -> None:
    """(behaviour 16) With automatic compaction off, no size triggers it. `Keeper` tests the reactive path."""
    await fill(service, 1_900_000)
    model = ScriptedModel("never")
    for options in ({}, {"budget": 100}, {"budget": 100, "target": 50}):
        result = await service.compact("s", never, STRATEGY, summarizer=model, **options)
        assert result.outcome is Outcome.NOT_NEEDED
    assert model.calls == []


async def test_amp_never_compacts_automatically(store: Log) -> None:
    """(behaviour 16) P23."""
    model = ScriptedModel("never")
    async with SessionService(store, preset="amp", summarizer=model) as service:
        await service.create(id="s", format="openai-chat")
        await fill(service, 1_900_000)
        assert (await service.compact("s")).outcome is Outcome.NOT_NEEDED
    assert model.calls == []


# -- changes while a model writes (behaviour 9) ----------------------------------------------------------------


async def test_rebase_keeps_messages_appended_during_the_summary(service: SessionService) -> None:
    """(behaviour 9) With `rebase`, appended messages are no conflict and are kept."""
    await append_turns(service, 1, 6)
    model = Meanwhile(lambda: service.append("s", message("u7"), id="u7"))
    result = await service.compact("s", always, STRATEGY, "rebase", summarizer=model)
    assert result.outcome is Outcome.COMPACTED
    assert await visible_names(service) == ["Summary", "u5", "a5", "u6", "a6", "u7"]
    assert [str(shown["content"]).split()[0] for shown in result.messages][-1] == "u7"
    assert await service.verify("s") == []


async def test_skip_conflicts_with_messages_appended_during_the_summary(service: SessionService) -> None:
    """(behaviour 9) With `skip`, the default, any append is a conflict, and the summary is dropped (S3)."""
    await append_turns(service, 1, 6)
    model = Meanwhile(lambda: service.append("s", message("u7"), id="u7"))
    result = await service.compact("s", always, STRATEGY, summarizer=model)
    assert (result.outcome, model.calls) == (Outcome.CONFLICT, 1)
    assert "another writer" in result.why
    assert len(await visible_names(service)) == 13
    assert await service.events("s", kind="compaction") == []


@pytest.mark.parametrize("on_conflict", ["skip", "rebase"])
async def test_undo_during_the_summary_discards_it(service: SessionService, on_conflict: Any) -> None:
    """(behaviour 9) The prefix changed: a summary of the old one may not be committed."""
    await append_turns(service, 1, 6)
    await service.compact("s", always, STRATEGY, summarizer=ScriptedModel("The first part."))
    await append_turns(service, 7, 4)
    model = Meanwhile(lambda: service.undo("s"))
    result = await service.compact("s", always, STRATEGY, on_conflict, summarizer=model)
    assert result.outcome is Outcome.CONFLICT
    assert await visible_names(service) == [f"{who}{number}" for number in range(1, 11) for who in "ua"]
    assert len(await service.events("s", kind="compaction")) == 1


@pytest.mark.parametrize("on_conflict", ["skip", "rebase"])
async def test_other_compaction_during_the_summary_wins(service: SessionService, on_conflict: Any) -> None:
    """(behaviour 9)"""
    await append_turns(service, 1, 8)

    async def other() -> None:
        faster = await service.compact("s", always, KeepLast(2))
        assert faster.outcome is Outcome.COMPACTED

    result = await service.compact("s", always, STRATEGY, on_conflict, summarizer=Meanwhile(other))
    assert result.outcome is Outcome.CONFLICT
    assert await visible_names(service) == ["u8", "a8"]
    assert [str(shown["content"]).split()[0] for shown in result.messages] == ["u8", "a8"]


async def test_pin_during_the_summary_is_kept(service: SessionService) -> None:
    """(behaviour 9)"""
    await append_turns(service, 1, 6)
    model = Meanwhile(lambda: service.pin("s", "u1"))
    result = await service.compact("s", always, STRATEGY, "rebase", summarizer=model)
    assert result.outcome is Outcome.CONFLICT
    assert (await visible_names(service))[0] == "u1"


async def test_redaction_during_the_summary_discards_it(service: SessionService) -> None:
    """(behaviour 9, H1) A redacted text does not come back in a summary started before."""
    await service.append("s", {"role": "user", "content": f"u0 the code word is heliotrope {WORDS}"}, id="u0")
    await append_turns(service, 1, 6)
    model = Meanwhile(lambda: service.redact("s", "u0"), says="The code word is heliotrope.")
    result = await service.compact("s", always, STRATEGY, "rebase", summarizer=model)
    assert result.outcome is Outcome.CONFLICT
    assert "heliotrope" not in str(await service.export("s"))


async def test_concurrent_compactions_commit_one_summary(service: SessionService) -> None:
    """(behaviour 9)"""
    await append_turns(service, 1, 6)
    results: list[CompactionResult] = []

    async def one(says: str) -> None:
        model = Meanwhile(checkpoint, says=says)
        results.append(await service.compact("s", always, STRATEGY, "rebase", summarizer=model))

    async with anyio.create_task_group() as group:
        group.start_soon(one, "The one.")
        group.start_soon(one, "The other.")
    assert sorted(result.outcome for result in results)[0] is Outcome.COMPACTED
    assert len(await service.events("s", kind="compaction")) == 1
    assert await visible_names(service) == ["Summary", "u5", "a5", "u6", "a6"]


async def test_fork_during_the_summary_has_the_old_context(service: SessionService) -> None:
    """(behaviour 9)"""
    await append_turns(service, 1, 6)
    model = Meanwhile(lambda: service.fork("s", id="f"))
    assert (await service.compact("s", always, STRATEGY, summarizer=model)).outcome is Outcome.COMPACTED
    assert len(await service.context("f")) == 12


# -- abort (behaviour 12) -------------------------------------------------------------------------------------


class AbortingModel:
    """A model that triggers an abort at a given point of the call."""

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
LONG_WAITS = Limits(backoff=50.0, timeout=50.0)


@pytest.mark.parametrize("point", POINTS)
async def test_abort_changes_nothing(service: SessionService, point: str) -> None:
    """(behaviour 12) P8: nothing is written, not even an attempt, and no fallback is used."""
    await append_turns(service, 1, 6)
    version, before = (await service.get("s")).version, (await service.context("s")).messages
    service.limits, stage = LONG_WAITS, AbortingModel(point)
    result = await service.compact(
        "s", EventCount(1), STRATEGY, summarizer=stage, abort=stage.abort, notify=stage.notify
    )
    assert (result.outcome, result.fallback, result.summary) == (Outcome.ABORTED, "", None)
    assert (await service.get("s")).version == version
    assert (await service.context("s")).messages == before == result.messages
    assert stage.calls == (point != "before the call")
    later = await service.compact("s", EventCount(1), STRATEGY, summarizer=ScriptedModel("They talked."))
    assert later.outcome is Outcome.COMPACTED, "the next attempt is allowed at once"


@pytest.mark.parametrize("point", POINTS)
def test_abort_in_a_blocking_session(point: str) -> None:
    """(behaviour 12)"""
    stage = AbortingModel(point)
    with BlockingSessionService(MemoryStore(), limits=LONG_WAITS) as service:
        service.create(id="s")
        for number in range(12):
            service.append("s", message(f"{'ua'[number % 2]}{number}"))
        options: Any = {"summarizer": stage, "abort": stage.abort, "notify": stage.notify}
        result = service.compact("s", always, STRATEGY, **options)
        assert result.outcome is Outcome.ABORTED
        assert service.get("s").version == 12
        assert len(service.context("s")) == 12


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("kind", ["blocking", "async"])
def test_abort_without_a_session(point: str, kind: str) -> None:
    """(behaviour 12)"""
    stage, given = AbortingModel(point), [message(f"{'ua'[number % 2]}{number}") for number in range(12)]
    options: Any = {"budget": 10**6, "trigger": always, "strategy": STRATEGY, "limits": LONG_WAITS}
    options |= {"summarizer": stage, "abort": stage.abort, "notify": stage.notify}
    result = compact(given, **options) if kind == "blocking" else anyio.run(lambda: acompact(given, **options))
    assert (result.outcome, result.messages, result.checkpoint) == (Outcome.ABORTED, given, None)
    assert (result.archived, result.fallback) == ([], "")
    assert stage.calls == (point != "before the call")


@pytest.mark.parametrize("point", ["in mid-stream", "in backoff"])
async def test_cancelled_task_changes_nothing(service: SessionService, point: str) -> None:
    """(behaviour 12) The cancellation propagates; nothing is written."""
    await append_turns(service, 1, 6)
    version = (await service.get("s")).version
    service.limits = LONG_WAITS
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
    assert len(await visible_names(service)) == 12
    assert check((await service.context("s")).messages, "openai-chat") == []


async def test_abort_of_a_multi_part_state_summary_changes_nothing(
    service: SessionService,
) -> None:
    """(behaviour 12) The first part alone is not committed (W6, W8)."""
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


async def test_summary_survives_a_window_compaction(service: SessionService) -> None:
    """S12: the next round receives the summary verbatim, even after another kind of compaction."""
    await append_turns(service, 1, 6)
    await service.compact("s", always, STRATEGY, summarizer=ScriptedModel("They talked about ships."))
    await append_turns(service, 7, 6)
    await service.compact("s", always, SlidingWindow(4))
    model = ScriptedModel("They talked about ships and tides.")
    await append_turns(service, 13, 6)
    await service.compact("s", always, STRATEGY, summarizer=model)
    assert re.search(r"<earlier-summary-\w+>\nThey talked about ships.\n</", model.calls[0].prompt)
