"""Hooks after a compaction, and session-start hooks that add text to the context again (G7)."""

from __future__ import annotations

from typing import Any

import pytest

from compaction_session import (
    SUMMARY,
    TOOL_CALL_MESSAGE,
    EventRecorder,
    append_turns,
    make_message,
    make_turns,
    model_calls,
    never_answering,
    open_session,
    tool_result,
    visible_names,
)
from holdfast import (
    Abort,
    CompactionResult,
    Outcome,
    PruneToolResults,
    SessionService,
    SlidingWindow,
    TokenCount,
    check,
)
from holdfast.hooks import CompactionCompleted, Hooks, SessionStart, Veto
from holdfast.models import ScriptedModel
from holdfast.stores import Log
from holdfast.strategies import KeepLast
from holdfast.triggers import EventCount, always

pytestmark = pytest.mark.anyio
RULES = "Rules: never push to main."


def rules(start: SessionStart) -> str:
    return RULES


async def session_start_texts(service: SessionService) -> list[str]:
    return [str(shown["content"]) for shown in await service.context("s") if str(shown["content"]).startswith("Rules")]


# -- after ----------------------------------------------------------------------------------------------------------


async def test_after_hook_receives_event_and_result() -> None:
    calls: list[tuple[CompactionCompleted, CompactionResult]] = []
    heard = EventRecorder()
    service = await open_session(Hooks(after=lambda done, result: calls.append((done, result)), listen=heard))
    result = await service.compact("s", always, SUMMARY)
    assert calls == [(heard.one(CompactionCompleted), result)]


async def test_after_hook_runs_without_a_listener() -> None:
    calls: list[CompactionCompleted] = []

    async def later(done: CompactionCompleted, result: CompactionResult) -> None:
        calls.append(done)

    service = await open_session(Hooks(after=later))
    await service.compact("s", always, SUMMARY)
    assert [(done.archived, done.round) for done in calls] == [(8, 1)]


async def test_after_hook_runs_only_on_success() -> None:
    calls: list[Any] = []
    hooks = Hooks(
        before=lambda before: Veto("no"), after=lambda *given: calls.append(given), session_start=calls.append
    )
    service = await open_session(hooks)
    await service.compact("s", always, SUMMARY)
    service.hooks = Hooks(after=lambda *given: calls.append(given), session_start=calls.append)
    await service.compact("s", always, SUMMARY, summarizer=ScriptedModel(" ", repeat=True))
    await service.compact("s", EventCount(40), SUMMARY)
    assert calls == []


async def test_failing_after_hook_adds_a_remark() -> None:
    calls: list[Any] = []

    def broken(done: CompactionCompleted, result: CompactionResult) -> None:
        raise OSError("no space left")

    def broken_start(start: SessionStart) -> str:
        raise LookupError("no rules")

    service = await open_session(
        Hooks(after=[broken, lambda *given: calls.append(given)], session_start=[broken_start, rules, lambda start: 7])
    )
    result = await service.compact("s", always, SUMMARY)
    assert (result.outcome, len(calls)) == (Outcome.COMPACTED, 1)
    assert result.remarks == (
        "the hook broken_start was skipped: LookupError: no rules",
        "the hook <lambda> was skipped: it returned int, not a text",
        "the hook broken was skipped: OSError: no space left",
    )
    assert len(await session_start_texts(service)) == 1


# -- session start --------------------------------------------------------------------------------------------------


async def test_session_start_hook_receives_its_source() -> None:
    given: list[SessionStart] = []
    service = await open_session(Hooks(session_start=given.append))
    result = await service.compact("s", EventCount(2), SUMMARY)
    (start,) = given
    assert (start.session, start.source, start.origin, start.round, start.lane) == ("s", "compact", "auto", 1, None)
    assert start.tokens == (await service.context("s")).tokens
    assert result.remarks == ()


async def test_session_start_text_is_appended_to_the_context(store: Log) -> None:
    service = await open_session(
        Hooks(session_start=[rules, lambda start: "", lambda start: "And be kind."]), store=store
    )
    result = await service.compact("s", always, SUMMARY)
    context = await service.context("s")
    assert str(context[-1]["content"]).startswith(f"{RULES}\n\nAnd be kind.")
    assert (result.messages, result.version) == (context.messages, context.version)
    assert check(context.messages, "openai-chat") == []
    assert await service.verify("s") == []
    await service.close()


async def test_session_start_text_is_not_a_turn_or_event() -> None:
    service = await open_session(Hooks(session_start=rules))
    await service.compact("s", always, SUMMARY)
    assert (await service.compact("s", EventCount(4), SUMMARY)).outcome is Outcome.NOT_NEEDED
    (aside,) = await service.events("s", text=RULES)
    assert aside.body["aside"] is True


async def test_session_start_text_is_added_again_by_the_next_compaction() -> None:
    service = await open_session(Hooks(session_start=rules))
    for first in (1, 7, 13):
        if first > 1:
            await append_turns(service, first)
        await service.compact("s", always, SUMMARY)
        assert len(await session_start_texts(service)) == 1
        assert (await visible_names(service))[-1] == "Rules:"
    assert len(await service.events("s", text=RULES, archived=True)) == 2
    assert not [call for call in model_calls(service) if RULES in call.prompt], "the text is never summarized"


async def test_session_start_text_still_visible_is_not_repeated() -> None:
    service = await open_session(Hooks(session_start=rules))
    await service.compact("s", always, SUMMARY)
    await append_turns(service, 7, 1)
    await service.compact("s", always, KeepLast(4))
    assert await visible_names(service) == ["They", "a6", "Rules:", "u7", "a7"]


async def test_session_start_hook_is_not_called_by_a_prune() -> None:
    service = await open_session(Hooks(session_start=rules))
    await service.append("s", TOOL_CALL_MESSAGE)
    await service.append("s", tool_result("a long result " * 900))
    await append_turns(service, 7, 1)
    pruned = await service.prune("s", PruneToolResults(protect=0, minimum=10))
    assert (pruned.outcome, pruned.round, await session_start_texts(service)) == (Outcome.COMPACTED, 0, [])


async def test_session_start_long_text_is_clipped() -> None:
    service = await open_session(Hooks(session_start=lambda start: "Rules: " + "be kind. " * 5_000))
    await service.compact("s", always, SUMMARY)
    (text,) = await session_start_texts(service)
    assert "[… 35,006 more characters]" in text
    assert len(text) < 10_100


@pytest.mark.parametrize("how", ["trigger", "budget"])
async def test_session_start_text_does_not_trigger_the_next_compaction(how: str) -> None:
    """(behaviour 21) The text is clipped so that the next turn fits."""
    service = await open_session(
        Hooks(session_start=lambda start: "Rules: " + "be kind to everybody on the pier. " * 200)
    )
    full: dict[str, Any] = {"trigger": TokenCount(500)} if how == "trigger" else {"budget": 500}
    first = await service.compact("s", strategy=SUMMARY, **full)
    (text,) = await session_start_texts(service)
    assert (first.outcome, "more characters]" in text) == (Outcome.COMPACTED, True)
    assert (await service.compact("s", strategy=SUMMARY, **full)).outcome is Outcome.NOT_NEEDED
    await service.append("s", make_message("u7"))
    assert (await service.compact("s", strategy=SUMMARY, **full)).outcome is Outcome.NOT_NEEDED


async def test_session_start_text_without_room_is_omitted_with_a_remark() -> None:
    service = await open_session(
        Hooks(session_start=lambda start: "Rules: " + "be kind to everybody on the pier. " * 200)
    )
    result = await service.compact("s", TokenCount(300), SUMMARY)
    assert await session_start_texts(service) == []
    assert result.remarks == ("the session-start text was omitted: it would set off the next compaction",)


async def test_session_start_text_is_added_if_the_trigger_fires_anyway() -> None:
    service = await open_session(Hooks(session_start=rules))
    await service.compact("s", lambda request: True, SUMMARY)
    assert len(await session_start_texts(service)) == 1


async def test_session_start_text_waits_for_pending_tool_results() -> None:
    """Nothing may come between a call and its result: the text is added after the results."""
    service = await open_session(Hooks(session_start=rules))
    await service.append("s", TOOL_CALL_MESSAGE)
    await service.compact("s", always, SUMMARY)
    assert await session_start_texts(service) == []
    assert (await service.compact("s", TokenCount(9_000), SUMMARY)).outcome is Outcome.NOT_NEEDED
    await service.append("s", tool_result())
    result = await service.compact("s", TokenCount(9_000), SUMMARY)
    assert len(await session_start_texts(service)) == 1
    assert str(result.messages[-1]["content"]).startswith("Rules")
    await service.compact("s", TokenCount(9_000), SUMMARY)
    assert len(await session_start_texts(service)) == 1
    assert check((await service.context("s")).messages, "openai-chat") == []


async def test_session_start_hook_in_a_lane() -> None:
    service = await open_session(Hooks(session_start=lambda start: f"Rules of {start.lane}."))
    await service.append("s", make_turns(7, 5), lane="tests")
    await service.compact("s", always, SlidingWindow(2), lane="tests")
    assert await session_start_texts(service) == []
    assert str((await service.context("s", "tests"))[-1]["content"]).startswith("Rules of tests.")


async def test_abort_during_hooks_keeps_the_commit() -> None:
    abort, calls = Abort(), list[Any]()
    service = await open_session(Hooks(session_start=never_answering(abort), after=lambda *given: calls.append(given)))
    result = await service.compact("s", always, SUMMARY, abort=abort)
    assert (result.outcome, calls, await session_start_texts(service)) == (Outcome.COMPACTED, [], [])
    assert len(await service.events("s", kind="compaction")) == 1
