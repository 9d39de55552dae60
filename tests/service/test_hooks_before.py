"""Before a compaction: a hook may veto it, add instructions, or plan it itself, and can never break it (G7)."""

from __future__ import annotations

import logging
import threading
from typing import Any

import anyio
import anyio.to_thread
import pytest

from holdfast import (
    EventCount,
    KeepLast,
    Message,
    Outcome,
    ScriptedModel,
    SlidingWindow,
    TokenCount,
    always,
    never,
)
from holdfast.calls import ModelCall, Steps
from holdfast.errors import InvalidInput
from holdfast.hooks import Before, Hooks, Instructions, Veto
from holdfast.messages import Text, framed
from holdfast.stores import Log
from holdfast.view import Edit, Plan, Request, Skip
from hooked import LOOKS, SAID, SUMMARY, blocking_talk, calls, found, go_on, message, remember_much, seen, talk

pytestmark = pytest.mark.anyio
FULL = EventCount(2)


async def test_it_is_told_what_is_about_to_be(store: Log) -> None:
    given: list[Before] = []
    service = await talk(Hooks(before=given.append), store=store)
    await service.compact("s", FULL, SUMMARY, budget=50_000, instructions="mind the ships")
    (before,) = given
    assert (before.session, before.lane, before.origin) == ("s", None, "auto")
    assert (before.budget, before.instructions, before.strategy) == (50_000, "mind the ships", SUMMARY)
    assert before.tokens == before.request.tokens > 500
    assert len(before.request.messages) == 12
    await service.close()


async def test_a_lane_is_named() -> None:
    given: list[Before] = []
    service = await talk(Hooks(before=given.append))
    await service.append("s", [message("u7"), message("a7")], lane="tests")
    await service.compact("s", always, KeepLast(2), lane="tests")
    assert [before.lane for before in given] == ["tests"]


@pytest.mark.parametrize(
    ("trigger", "origin"), [(None, "manual"), (always, "manual"), (FULL, "auto"), (lambda request: True, "auto")]
)
async def test_it_knows_whether_a_person_asked(trigger: Any, origin: str) -> None:
    given: list[Before] = []
    service = await talk(Hooks(before=given.append))
    await service.compact("s", trigger, SUMMARY)
    assert [before.origin for before in given] == [origin]


async def test_nobody_is_asked_while_the_trigger_is_silent() -> None:
    """(behaviour 16) Where automatic compaction is off, no hook hears of it."""
    asked: list[Before] = []
    service = await talk(Hooks(before=asked.append))
    for trigger in (never, TokenCount(100_000)):
        assert (await service.compact("s", trigger, SUMMARY)).outcome is Outcome.NOT_NEEDED
    assert asked == []


async def test_nobody_is_asked_while_the_breaker_is_open() -> None:
    asked: list[Before] = []
    service = await talk(Hooks(before=asked.append), says=" ")
    assert (await service.compact("s", FULL, SUMMARY)).outcome is Outcome.SUMMARY_FAILED
    assert (await service.compact("s", FULL, SUMMARY)).outcome is Outcome.BREAKER_OPEN
    assert len(asked) == 1


# -- veto -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trigger", [None, FULL], ids=["manual", "automatic"])
async def test_a_veto_leaves_everything_as_it_is(store: Log, trigger: Any) -> None:
    service = await talk(Hooks(before=lambda before: Veto("tests are running")), store=store)
    version = (await service.get("s")).version
    result = await service.compact("s", trigger, SUMMARY)
    assert (result.outcome, result.why) == (Outcome.VETOED, "tests are running")
    assert (result.archived, len(result.messages), calls(service)) == ([], 12, [])
    assert (await service.get("s")).version == version
    await service.close()


async def test_a_veto_without_a_reason_names_the_hook() -> None:
    def not_on_fridays(before: Before) -> Veto:
        return Veto()

    service = await talk(Hooks(before=not_on_fridays))
    assert (await service.compact("s")).why == "the hook not_on_fridays said no"


async def test_after_a_veto_no_other_hook_is_asked() -> None:
    asked: list[Before] = []
    service = await talk(Hooks(before=[lambda before: Veto("no"), asked.append]))
    assert (await service.compact("s")).outcome is Outcome.VETOED
    assert asked == []


async def test_a_hook_may_mind_who_asked() -> None:
    service = await talk(Hooks(before=lambda before: Veto("later") if before.origin == "auto" else None))
    assert (await service.compact("s", FULL, SUMMARY)).outcome is Outcome.VETOED
    assert (await service.compact("s", None, SUMMARY)).outcome is Outcome.COMPACTED


# -- instructions ---------------------------------------------------------------------------------------------------


async def test_instructions_add_up_with_the_persons_own_and_reach_the_model() -> None:
    """P1."""
    given: list[Before] = []
    hooks = Hooks(
        before=[
            lambda before: Instructions("Name every file."),
            lambda before: Instructions("  "),
            given.append,
            lambda before: Instructions("Write German."),
        ]
    )
    service = await talk(hooks)
    await service.compact("s", always, SUMMARY, instructions="Keep the schema.")
    prompt = calls(service)[0].prompt
    assert "Keep the schema.\n\nName every file.\n\nWrite German." in prompt
    assert given[0].instructions == "Keep the schema.\n\nName every file."


async def test_without_the_persons_own_they_stand_alone() -> None:
    service = await talk(Hooks(before=lambda before: Instructions("Name every file.")))
    await service.compact("s", always, SUMMARY)
    assert "Name every file." in calls(service)[0].prompt


# -- another plan ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [SlidingWindow(2), KeepLast(2)])
async def test_a_strategy_of_a_hook_takes_the_place_of_the_ordinary_one(store: Log, strategy: Any) -> None:
    service = await talk(Hooks(before=lambda before: strategy), store=store)
    result = await service.compact("s", always, SUMMARY)
    assert (result.outcome, result.remarks, calls(service)) == (Outcome.COMPACTED, (), [])
    assert await seen(service) == ["u6", "a6"]
    assert await service.verify("s") == []
    await service.close()


async def test_a_plan_of_a_hook_is_committed_like_any_other(store: Log) -> None:
    def my_notes(before: Before) -> Plan:
        cut = before.request.view.turns[-1]
        return Plan(cut, notes=(framed("Five turns about the harbour."),), summary="Five turns about the harbour.")

    service = await talk(Hooks(before=my_notes), store=store)
    result = await service.compact("s", always, SUMMARY)
    assert (result.outcome, result.strategy, result.removed) == (Outcome.COMPACTED, "my_notes", 10)
    assert await seen(service) == ["Five", "u6", "a6"]
    assert await service.undo("s") is None
    assert len(await seen(service)) == 12
    await service.close()


async def test_a_strategy_of_a_hook_may_ask_the_model() -> None:
    def asks(request: Request) -> Steps[Plan | Skip]:
        (answer,) = yield (ModelCall("What was it about?"),)
        return Plan(10, notes=(framed(f"In short: {getattr(answer, 'text', '')}"),))

    service = await talk(Hooks(before=lambda before: asks))
    assert (await service.compact("s", always, SlidingWindow(2))).outcome is Outcome.COMPACTED
    assert [call.prompt for call in calls(service)] == ["What was it about?"]
    assert str((await service.context("s"))[0]["content"]).startswith(f"In short: {SAID}")


async def test_a_hook_may_wrap_what_another_one_chose() -> None:
    chosen: list[Any] = []

    def wrap(before: Before) -> Any:
        chosen.append(before.strategy)
        return before.strategy

    window = SlidingWindow(4)
    service = await talk(Hooks(before=[lambda before: window, wrap]))
    await service.compact("s", always, SUMMARY)
    assert chosen == [window]
    assert await seen(service) == ["u5", "a5", "u6", "a6"]


def raises(request: Request) -> Plan:
    raise RuntimeError("the disk is full")


def too_long(request: Request) -> Plan:
    return Plan(2, notes=(framed("blah " * 5_000),))


BAD: dict[str, tuple[Any, str]] = {
    "raising": (raises, "it broke: RuntimeError: the disk is full"),
    "coming to nothing": (lambda request: None, "it came to NoneType, not to a plan"),
    "skipping": (lambda request: Skip(Outcome.NOTHING_TO_COMPACT, "I see nothing"), "I see nothing"),
    "archiving nothing": (Plan(0), "tokens would become"),
    "not shrinking": (too_long, "tokens would become"),
    "a cut behind the end": (Plan(13), "it names messages that are not there: there are 12"),
    "a cut before the start": (Plan(-2), "it names messages that are not there"),
    "a preamble that is kept anyway": (Plan(2, preamble=(5,)), "it names messages that are not there"),
    "an edit of nothing": (Plan(2, edits={40: (Edit(0),)}), "it names messages that are not there"),
    "a blank summary": (Plan(4, notes=(framed("Notes."),), summary=" "), "its summary is blank"),
    "a blank note": (Plan(4, notes=(framed(" \n"),)), "its summary is blank"),
    "a blank note of another's": (Plan(4, notes=(Message("user", (Text(""),)),)), "its summary is blank"),
    "nonsense inside": (Plan("two"), "it broke: TypeError"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("budget", [None, 300], ids=["without a budget", "over it"])
async def test_a_plan_that_will_not_do_leaves_it_to_the_ordinary_strategy(case: str, budget: int | None) -> None:
    """(behaviour 20) Throwing, empty, not shrinking: the ordinary strategy has its turn, and it is said."""
    answer, why = BAD[case]
    service = await talk(Hooks(before=lambda before: answer))
    result = await service.compact("s", always, SUMMARY, budget=budget)
    assert result.outcome in (Outcome.COMPACTED, Outcome.CANNOT_FIT)
    assert [call.purpose for call in calls(service)] == ["summary"]
    (remark,) = result.remarks
    assert remark.startswith("the plan of the hook <lambda> was not used: ")
    assert why in remark
    (event,) = await service.events("s", kind="compaction")
    assert event.body["remarks"] == [remark], "it is recorded, too"


async def test_a_plan_that_parts_a_call_from_its_result_is_not_used() -> None:
    """H2."""
    service = await talk(Hooks(before=lambda before: Plan(len(before.request.messages) - 1)))
    await service.append("s", LOOKS)
    await service.append("s", found())
    result = await service.compact("s", always, SUMMARY)
    assert "the result would be invalid" in result.remarks[0]
    assert (result.outcome, result.summary) == (Outcome.COMPACTED, SAID)


# -- hooks that break -----------------------------------------------------------------------------------------------


class Unreasonable:
    def __call__(self, before: Before) -> Any:
        raise StopIteration("enough")


def broken(before: Before) -> None:
    raise ValueError("the key is sk-abcdefghij")


async def broken_later(before: Before) -> None:
    raise LookupError("no such file")


def says_nonsense(before: Before) -> Any:
    return "please do not"


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        (broken, "the hook broken was passed over: ValueError: the key is [hidden]"),
        (broken_later, "the hook broken_later was passed over: LookupError: no such file"),
        (Unreasonable(), "the hook Unreasonable was passed over: RuntimeError: StopIteration: enough"),
        (says_nonsense, "the hook says_nonsense was passed over: it answered with str, which is no answer"),
        (lambda before: Veto(7), "What a hook has to say is a text, not int."),
        (lambda before: Instructions(None), "What a hook has to say is a text, not NoneType."),
        (lambda: None, "TypeError"),
    ],
)
async def test_a_hook_that_breaks_is_passed_over_and_logged(
    hook: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    service = await talk(Hooks(before=[hook, lambda before: Instructions("Name every file.")]))
    with caplog.at_level(logging.WARNING, "holdfast"):
        result = await service.compact("s", always, SUMMARY)
    assert result.outcome is Outcome.COMPACTED
    assert why in result.remarks[0]
    assert result.remarks[0] in caplog.text
    assert "Name every file." in calls(service)[0].prompt, "the others are asked all the same"


@pytest.mark.parametrize("colour", ["async", "blocking"])
async def test_a_hook_that_takes_too_long_is_left_behind(colour: str) -> None:
    released = threading.Event()

    async def slow(before: Before) -> Veto:
        await anyio.sleep_forever()
        return Veto("never said")

    def slow_too(before: Before) -> Veto:
        released.wait(20)
        return Veto("said too late")

    service = await talk(Hooks(before=slow if colour == "async" else slow_too, timeout=0.05))
    result = await service.compact("s", always, SUMMARY)
    released.set()
    assert result.outcome is Outcome.COMPACTED
    assert "it took over 0.05 s" in result.remarks[0]


async def test_a_hook_of_any_colour_is_heard() -> None:
    class Object:
        async def __call__(self, before: Before) -> Veto:
            return Veto("as an object")

    async def later(before: Before) -> Veto:
        return Veto("as a coroutine")

    async def soon(before: Before) -> Veto:
        return Veto("as a promise")

    for hook in (Object(), later, lambda before: soon(before)):
        service = await talk(Hooks(before=hook))
        result = await service.compact("s", always, SUMMARY)
        assert (result.outcome, result.why[:4]) == (Outcome.VETOED, "as a")


async def test_a_blocking_hook_does_not_hold_up_the_others() -> None:
    """It runs in a thread of its own: the event loop goes on, and with it what would let it go on."""
    waiting, released = threading.Event(), threading.Event()

    def waits(before: Before) -> None:
        waiting.set()
        assert released.wait(20)

    service = await talk(Hooks(before=waits))
    async with anyio.create_task_group() as group:
        group.start_soon(service.compact, "s", always, SUMMARY)
        await anyio.to_thread.run_sync(waiting.wait)
        await go_on(service, 7, 1)
        released.set()
    assert len(await service.events("s", kind="message")) == 14


def test_blocking_callers_have_hooks_too() -> None:
    hooks = Hooks(before=[lambda before: Instructions("Name every file.")])
    model = ScriptedModel(SAID, repeat=True)
    with blocking_talk(hooks, summarizer=model) as service:
        assert service.compact("s", always, SUMMARY).outcome is Outcome.COMPACTED
    assert "Name every file." in model.calls[0].prompt


def test_a_hook_may_ask_the_blocking_service_that_called_it() -> None:
    def looks(before: Before) -> Veto:
        return Veto(f"{len(service.events('s'))} events, compacting: {service.compacting('s')}")

    with blocking_talk(Hooks(before=looks)) as service:
        assert service.compact("s").why == "12 events, compacting: True"
        assert not service.compacting("s")


# -- what else is a compaction --------------------------------------------------------------------------------------


async def test_pruning_asks_too_and_blending_memory_does_not() -> None:
    """Blending takes nothing out of the conversation: a plan that a hook has for that would be out of place."""
    asked: list[Before] = []
    service = await talk(Hooks(before=asked.append), says="All that was remembered, in short.")
    await service.prune("s")
    assert len(asked) == 1
    await remember_much(service)
    assert (await service.memory("s")).summary
    assert len(asked) == 1


@pytest.mark.parametrize(
    "given", [{"before": 7}, {"after": [lambda *_: None, None]}, {"session_start": Veto}, {"before": [b"echo"]}]
)
def test_what_is_no_hook_is_refused_at_once(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="A hook is a function, a Command or the text of one"):
        Hooks(**given)


@pytest.mark.parametrize("timeout", [0, -1, True, "60", float("nan")])
def test_a_hook_has_some_time(timeout: Any) -> None:
    with pytest.raises(InvalidInput, match="timeout must be a number of seconds above 0"):
        Hooks(timeout=timeout)


async def test_a_service_takes_hooks_and_nothing_else() -> None:
    with pytest.raises(InvalidInput, match=r"hooks= takes Hooks\(before=…"):
        await talk(lambda before: None)
