"""After a compaction: it is told to hooks, and what must be in the context again is said again (G7)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import (
    Abort,
    CompactionResult,
    EventCount,
    KeepLast,
    Outcome,
    PruneToolResults,
    ScriptedModel,
    SessionService,
    SlidingWindow,
    TokenCount,
    always,
    check,
)
from holdfast.hooks import CompactionCompleted, Hooks, SessionStart, Veto
from holdfast.stores import Log
from hooked import LOOKS, SUMMARY, Heard, calls, found, go_on, message, seen, stopping, talk, turns

pytestmark = pytest.mark.anyio
RULES = "Rules: never push to main."


def rules(start: SessionStart) -> str:
    return RULES


async def asides(service: SessionService) -> list[str]:
    return [str(shown["content"]) for shown in await service.context("s") if str(shown["content"]).startswith("Rules")]


# -- after ----------------------------------------------------------------------------------------------------------


async def test_it_is_told_what_was_done() -> None:
    told: list[tuple[CompactionCompleted, CompactionResult]] = []
    heard = Heard()
    service = await talk(Hooks(after=lambda done, result: told.append((done, result)), listen=heard))
    result = await service.compact("s", always, SUMMARY)
    assert told == [(heard.one(CompactionCompleted), result)]


async def test_without_a_listener_it_is_told_all_the_same() -> None:
    told: list[CompactionCompleted] = []

    async def later(done: CompactionCompleted, result: CompactionResult) -> None:
        told.append(done)

    service = await talk(Hooks(after=later))
    await service.compact("s", always, SUMMARY)
    assert [(done.archived, done.round) for done in told] == [(8, 1)]


async def test_it_is_told_only_of_success() -> None:
    told: list[Any] = []
    hooks = Hooks(before=lambda before: Veto("no"), after=lambda *given: told.append(given), session_start=told.append)
    service = await talk(hooks)
    await service.compact("s", always, SUMMARY)
    service.hooks = Hooks(after=lambda *given: told.append(given), session_start=told.append)
    await service.compact("s", always, SUMMARY, summarizer=ScriptedModel(" ", repeat=True))
    await service.compact("s", EventCount(40), SUMMARY)
    assert told == []


async def test_one_that_breaks_changes_nothing_and_is_remarked_upon() -> None:
    told: list[Any] = []

    def broken(done: CompactionCompleted, result: CompactionResult) -> None:
        raise OSError("no space left")

    def broken_start(start: SessionStart) -> str:
        raise LookupError("no rules")

    service = await talk(
        Hooks(after=[broken, lambda *given: told.append(given)], session_start=[broken_start, rules, lambda start: 7])
    )
    result = await service.compact("s", always, SUMMARY)
    assert (result.outcome, len(told)) == (Outcome.COMPACTED, 1)
    assert result.remarks == (
        "the hook broken_start was passed over: LookupError: no rules",
        "the hook <lambda> was passed over: it answered with int, not with a text",
        "the hook broken was passed over: OSError: no space left",
    )
    assert len(await asides(service)) == 1


# -- session start --------------------------------------------------------------------------------------------------


async def test_it_knows_why_the_session_starts() -> None:
    given: list[SessionStart] = []
    service = await talk(Hooks(session_start=given.append))
    result = await service.compact("s", EventCount(2), SUMMARY)
    (start,) = given
    assert (start.session, start.source, start.origin, start.round, start.lane) == ("s", "compact", "auto", 1, None)
    assert start.tokens == (await service.context("s")).tokens
    assert result.remarks == ()


async def test_what_it_says_is_in_the_context_and_in_what_to_send(store: Log) -> None:
    service = await talk(Hooks(session_start=[rules, lambda start: "", lambda start: "And be kind."]), store=store)
    result = await service.compact("s", always, SUMMARY)
    context = await service.context("s")
    assert str(context[-1]["content"]).startswith(f"{RULES}\n\nAnd be kind.")
    assert (result.messages, result.version) == (context.messages, context.version)
    assert check(context.messages, "openai-chat") == []
    assert await service.verify("s") == []
    await service.close()


async def test_it_counts_as_no_turn_and_no_event() -> None:
    service = await talk(Hooks(session_start=rules))
    await service.compact("s", always, SUMMARY)
    assert (await service.compact("s", EventCount(4), SUMMARY)).outcome is Outcome.NOT_NEEDED
    (aside,) = await service.events("s", text=RULES)
    assert aside.body["aside"] is True


async def test_the_next_compaction_archives_it_and_it_is_said_again() -> None:
    service = await talk(Hooks(session_start=rules))
    for first in (1, 7, 13):
        if first > 1:
            await go_on(service, first)
        await service.compact("s", always, SUMMARY)
        assert len(await asides(service)) == 1
        assert (await seen(service))[-1] == "Rules:"
    assert len(await service.events("s", text=RULES, archived=True)) == 2
    assert not [call for call in calls(service) if RULES in call.prompt], "and no summary is made of it"


async def test_what_can_still_be_seen_is_not_said_again() -> None:
    service = await talk(Hooks(session_start=rules))
    await service.compact("s", always, SUMMARY)
    await go_on(service, 7, 1)
    await service.compact("s", always, KeepLast(4))
    assert await seen(service) == ["They", "a6", "Rules:", "u7", "a7"]


async def test_a_prune_takes_no_rules_away_and_brings_none() -> None:
    service = await talk(Hooks(session_start=rules))
    await service.append("s", LOOKS)
    await service.append("s", found("a long result " * 900))
    await go_on(service, 7, 1)
    pruned = await service.prune("s", PruneToolResults(protect=0, minimum=10))
    assert (pruned.outcome, pruned.round, await asides(service)) == (Outcome.COMPACTED, 0, [])


async def test_a_long_text_is_cut_and_the_cut_is_marked() -> None:
    service = await talk(Hooks(session_start=lambda start: "Rules: " + "be kind. " * 5_000))
    await service.compact("s", always, SUMMARY)
    (said,) = await asides(service)
    assert "[… 35,006 more characters]" in said
    assert len(said) < 10_100


@pytest.mark.parametrize("how", ["trigger", "budget"])
async def test_it_does_not_set_off_the_next_compaction(how: str) -> None:
    """(behaviour 21) As much is said as leaves room for the next turn."""
    service = await talk(Hooks(session_start=lambda start: "Rules: " + "be kind to everybody on the pier. " * 200))
    full: dict[str, Any] = {"trigger": TokenCount(500)} if how == "trigger" else {"budget": 500}
    first = await service.compact("s", strategy=SUMMARY, **full)
    (said,) = await asides(service)
    assert (first.outcome, "more characters]" in said) == (Outcome.COMPACTED, True)
    assert (await service.compact("s", strategy=SUMMARY, **full)).outcome is Outcome.NOT_NEEDED
    await service.append("s", message("u7"))
    assert (await service.compact("s", strategy=SUMMARY, **full)).outcome is Outcome.NOT_NEEDED


async def test_where_there_is_no_room_at_all_it_is_left_out_and_said_so() -> None:
    service = await talk(Hooks(session_start=lambda start: "Rules: " + "be kind to everybody on the pier. " * 200))
    result = await service.compact("s", TokenCount(300), SUMMARY)
    assert await asides(service) == []
    assert result.remarks == ("what the session is to start with was left out: it would set off the next compaction",)


async def test_a_trigger_that_fires_anyway_leaves_it_alone() -> None:
    service = await talk(Hooks(session_start=rules))
    await service.compact("s", lambda request: True, SUMMARY)
    assert len(await asides(service)) == 1


async def test_while_calls_wait_for_their_results_it_waits_too() -> None:
    """Nothing may come between a call and its result: it is said once they are there."""
    service = await talk(Hooks(session_start=rules))
    await service.append("s", LOOKS)
    await service.compact("s", always, SUMMARY)
    assert await asides(service) == []
    assert (await service.compact("s", TokenCount(9_000), SUMMARY)).outcome is Outcome.NOT_NEEDED
    await service.append("s", found())
    result = await service.compact("s", TokenCount(9_000), SUMMARY)
    assert len(await asides(service)) == 1
    assert str(result.messages[-1]["content"]).startswith("Rules")
    await service.compact("s", TokenCount(9_000), SUMMARY)
    assert len(await asides(service)) == 1
    assert check((await service.context("s")).messages, "openai-chat") == []


async def test_a_lane_starts_for_itself() -> None:
    service = await talk(Hooks(session_start=lambda start: f"Rules of {start.lane}."))
    await service.append("s", turns(7, 5), lane="tests")
    await service.compact("s", always, SlidingWindow(2), lane="tests")
    assert await asides(service) == []
    assert str((await service.context("s", "tests"))[-1]["content"]).startswith("Rules of tests.")


async def test_an_abort_ends_the_hooks_and_leaves_what_is_committed() -> None:
    abort, told = Abort(), list[Any]()
    service = await talk(Hooks(session_start=stopping(abort), after=lambda *given: told.append(given)))
    result = await service.compact("s", always, SUMMARY, abort=abort)
    assert (result.outcome, told, await asides(service)) == (Outcome.COMPACTED, [], [])
    assert len(await service.events("s", kind="compaction")) == 1
