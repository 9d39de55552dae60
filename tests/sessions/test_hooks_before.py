"""Before a compaction: a hook may veto it, add instructions, or replace the plan; failing hooks are skipped (G7)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from compaction_session import (
    SUMMARY,
    SUMMARY_TEXT,
    TOOL_CALL_MESSAGE,
    append_turns,
    fill_memory,
    make_message,
    model_calls,
    open_blocking_session,
    open_session,
    tool_result,
    visible_names,
)
from holdfast import Message, Outcome, SlidingWindow, TokenCount
from holdfast.context import Plan, Request, Skip
from holdfast.errors import InvalidInput
from holdfast.hooks import BeforeCompaction, Hooks, Instructions, Veto
from holdfast.messages import Text, framed_message
from holdfast.models import ScriptedModel
from holdfast.models.calls import ModelCall, Steps
from holdfast.stores import Log
from holdfast.strategies import KeepLast
from holdfast.triggers import EventCount, always, never

pytestmark = pytest.mark.anyio
FULL = EventCount(2)


async def test_before_hook_receives_the_request(store: Log) -> None:
    given: list[BeforeCompaction] = []
    service = await open_session(Hooks(before=given.append), store=store)
    await service.compact("s", FULL, SUMMARY, budget=50_000, instructions="mind the ships")
    (before,) = given
    assert (before.session, before.lane, before.origin) == ("s", None, "auto")
    assert (before.budget, before.instructions, before.strategy) == (50_000, "mind the ships", SUMMARY)
    assert before.tokens == before.request.tokens > 500
    assert len(before.request.messages) == 12
    await service.close()


async def test_before_hook_receives_the_lane() -> None:
    given: list[BeforeCompaction] = []
    service = await open_session(Hooks(before=given.append))
    await service.append("s", [make_message("u7"), make_message("a7")], lane="tests")
    await service.compact("s", always, KeepLast(2), lane="tests")
    assert [before.lane for before in given] == ["tests"]


@pytest.mark.parametrize(
    ("trigger", "origin"), [(None, "manual"), (always, "manual"), (FULL, "auto"), (lambda request: True, "auto")]
)
async def test_before_hook_receives_the_origin(trigger: Any, origin: str) -> None:
    given: list[BeforeCompaction] = []
    service = await open_session(Hooks(before=given.append))
    await service.compact("s", trigger, SUMMARY)
    assert [before.origin for before in given] == [origin]


async def test_before_hook_is_not_called_if_the_trigger_does_not_fire() -> None:
    """(behaviour 16) With automatic compaction off, no hook is called."""
    asked: list[BeforeCompaction] = []
    service = await open_session(Hooks(before=asked.append))
    for trigger in (never, TokenCount(100_000)):
        assert (await service.compact("s", trigger, SUMMARY)).outcome is Outcome.NOT_NEEDED
    assert asked == []


async def test_before_hook_is_not_called_while_the_breaker_is_open() -> None:
    asked: list[BeforeCompaction] = []
    service = await open_session(Hooks(before=asked.append), says=" ")
    assert (await service.compact("s", FULL, SUMMARY)).outcome is Outcome.SUMMARY_FAILED
    assert (await service.compact("s", FULL, SUMMARY)).outcome is Outcome.BREAKER_OPEN
    assert len(asked) == 1


# -- veto -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trigger", [None, FULL], ids=["manual", "automatic"])
async def test_veto_changes_nothing(store: Log, trigger: Any) -> None:
    service = await open_session(Hooks(before=lambda before: Veto("tests are running")), store=store)
    version = (await service.get("s")).version
    result = await service.compact("s", trigger, SUMMARY)
    assert (result.outcome, result.why) == (Outcome.VETOED, "tests are running")
    assert (result.archived, len(result.messages), model_calls(service)) == ([], 12, [])
    assert (await service.get("s")).version == version
    await service.close()


async def test_veto_without_a_reason_names_the_hook() -> None:
    def not_on_fridays(before: BeforeCompaction) -> Veto:
        return Veto()

    service = await open_session(Hooks(before=not_on_fridays))
    assert (await service.compact("s")).why == "vetoed by the hook not_on_fridays"


async def test_veto_stops_later_hooks() -> None:
    asked: list[BeforeCompaction] = []
    service = await open_session(Hooks(before=[lambda before: Veto("no"), asked.append]))
    assert (await service.compact("s")).outcome is Outcome.VETOED
    assert asked == []


async def test_hook_may_veto_automatic_compactions_only() -> None:
    service = await open_session(Hooks(before=lambda before: Veto("later") if before.origin == "auto" else None))
    assert (await service.compact("s", FULL, SUMMARY)).outcome is Outcome.VETOED
    assert (await service.compact("s", None, SUMMARY)).outcome is Outcome.COMPACTED


# -- instructions ---------------------------------------------------------------------------------------------------


async def test_instructions_of_hooks_are_added_to_the_users() -> None:
    """P1."""
    given: list[BeforeCompaction] = []
    hooks = Hooks(
        before=[
            lambda before: Instructions("Name every file."),
            lambda before: Instructions("  "),
            given.append,
            lambda before: Instructions("Write German."),
        ]
    )
    service = await open_session(hooks)
    await service.compact("s", always, SUMMARY, instructions="Keep the schema.")
    prompt = model_calls(service)[0].prompt
    assert "Keep the schema.\n\nName every file.\n\nWrite German." in prompt
    assert given[0].instructions == "Keep the schema.\n\nName every file."


async def test_instructions_of_a_hook_alone_reach_the_model() -> None:
    service = await open_session(Hooks(before=lambda before: Instructions("Name every file.")))
    await service.compact("s", always, SUMMARY)
    assert "Name every file." in model_calls(service)[0].prompt


# -- replaced plan ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [SlidingWindow(2), KeepLast(2)])
async def test_strategy_of_a_hook_replaces_the_default(store: Log, strategy: Any) -> None:
    service = await open_session(Hooks(before=lambda before: strategy), store=store)
    result = await service.compact("s", always, SUMMARY)
    assert (result.outcome, result.remarks, model_calls(service)) == (Outcome.COMPACTED, (), [])
    assert await visible_names(service) == ["u6", "a6"]
    assert await service.verify("s") == []
    await service.close()


async def test_plan_of_a_hook_is_committed(store: Log) -> None:
    def my_notes(before: BeforeCompaction) -> Plan:
        cut = before.request.view.turns[-1]
        text = "Five turns about the harbour."
        return before.request.plan.archive(cut).show([framed_message(text)], text)

    service = await open_session(Hooks(before=my_notes), store=store)
    result = await service.compact("s", always, SUMMARY)
    assert (result.outcome, result.strategy, result.removed) == (Outcome.COMPACTED, "my_notes", 10)
    assert await visible_names(service) == ["Five", "u6", "a6"]
    assert await service.undo("s") is None
    assert len(await visible_names(service)) == 12
    await service.close()


async def test_strategy_of_a_hook_may_call_the_model() -> None:
    def asks(request: Request) -> Steps[Plan | Skip]:
        (answer,) = yield (ModelCall("What was it about?"),)
        return request.plan.archive(10).show([framed_message(f"In short: {getattr(answer, 'text', '')}")])

    service = await open_session(Hooks(before=lambda before: asks))
    assert (await service.compact("s", always, SlidingWindow(2))).outcome is Outcome.COMPACTED
    assert [call.prompt for call in model_calls(service)] == ["What was it about?"]
    assert str((await service.context("s"))[0]["content"]).startswith(f"In short: {SUMMARY_TEXT}")


async def test_hook_may_wrap_the_strategy_of_an_earlier_hook() -> None:
    chosen: list[Any] = []

    def wrap(before: BeforeCompaction) -> Any:
        chosen.append(before.strategy)
        return before.strategy

    window = SlidingWindow(4)
    service = await open_session(Hooks(before=[lambda before: window, wrap]))
    await service.compact("s", always, SUMMARY)
    assert chosen == [window]
    assert await visible_names(service) == ["u5", "a5", "u6", "a6"]


def raises(request: Request) -> Plan:
    raise RuntimeError("the disk is full")


def too_long(request: Request) -> Plan:
    return request.plan.archive(2).show([framed_message("blah " * 5_000)])


def archive_behind(note: Message, summary: str | None = None) -> Callable[[Request], Plan]:
    return lambda request: request.plan.archive(4).show([note], summary)


MISSING = "The plan refers to messages that do not exist:"
BAD: dict[str, tuple[Any, str]] = {
    "raising": (raises, "it raised RuntimeError: the disk is full"),
    "returning None": (lambda request: None, "it returned NoneType, not a plan"),
    "skipping": (lambda request: Skip(Outcome.NOTHING_TO_COMPACT, "I see nothing"), "I see nothing"),
    "archiving nothing": (lambda request: request.plan, "tokens would become"),
    "not shrinking": (too_long, "tokens would become"),
    "a cut behind the end": (lambda request: request.plan.archive(13), f"{MISSING} there are 12"),
    "a cut before the start": (lambda request: request.plan.archive(-2), MISSING),
    "a preamble that is kept anyway": (lambda request: request.plan.archive(2, [5]), "cannot keep a later one"),
    "an edit of nothing": (lambda request: request.plan.edit({40: {0: None}}), MISSING),
    "a blank summary": (archive_behind(framed_message("Notes."), " "), "its summary is blank"),
    "a blank note": (archive_behind(framed_message(" \n")), "its summary is blank"),
    "a blank note of another's": (archive_behind(Message("user", (Text(""),))), "its summary is blank"),
    "nonsense inside": (lambda request: request.plan.archive("two"), "it raised TypeError"),
    "a plan for another context": (lambda request: Plan.of(request.view.snapshot()), "it is for another context"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("budget", [None, 300], ids=["without a budget", "over it"])
async def test_rejected_plan_of_a_hook_falls_back_to_the_default(case: str, budget: int | None) -> None:
    """(behaviour 20) A raising, empty or not shrinking plan falls back to the default strategy, with a remark."""
    answer, why = BAD[case]
    service = await open_session(Hooks(before=lambda before: answer))
    result = await service.compact("s", always, SUMMARY, budget=budget)
    assert result.outcome in (Outcome.COMPACTED, Outcome.CANNOT_FIT)
    assert [call.purpose for call in model_calls(service)] == ["summary"]
    (remark,) = result.remarks
    assert remark.startswith("the plan of the hook <lambda> was rejected: ")
    assert why in remark
    (event,) = await service.events("s", kind="compaction")
    assert event.body["remarks"] == [remark], "the remark is recorded"


async def test_plan_that_separates_call_and_result_is_rejected() -> None:
    """H2."""
    service = await open_session(
        Hooks(before=lambda before: before.request.plan.archive(len(before.request.messages) - 2))
    )
    await service.append("s", [TOOL_CALL_MESSAGE, tool_result(), {"role": "assistant", "content": "Aye."}])
    result = await service.compact("s", always, SUMMARY)
    assert "the result would be invalid" in result.remarks[0]
    assert (result.outcome, result.summary) == (Outcome.COMPACTED, SUMMARY_TEXT)


# -- failing hooks --------------------------------------------------------------------------------------------------


class Unreasonable:
    def __call__(self, before: BeforeCompaction) -> Any:
        raise StopIteration("enough")


def broken(before: BeforeCompaction) -> None:
    raise ValueError("the key is sk-abcdefghij")


async def broken_later(before: BeforeCompaction) -> None:
    raise LookupError("no such file")


def says_nonsense(before: BeforeCompaction) -> Any:
    return "please do not"


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        (broken, "the hook broken was skipped: ValueError: the key is [hidden]"),
        (broken_later, "the hook broken_later was skipped: LookupError: no such file"),
        (Unreasonable(), "the hook Unreasonable was skipped: RuntimeError: StopIteration: enough"),
        (says_nonsense, "the hook says_nonsense was skipped: it returned str, which is not a valid answer"),
        (lambda before: Veto(7), "The text of a hook's answer must be a string, not int."),
        (lambda before: Instructions(None), "The text of a hook's answer must be a string, not NoneType."),
        (lambda: None, "TypeError"),
    ],
)
async def test_failing_hook_is_skipped_and_logged(hook: Any, why: str, caplog: pytest.LogCaptureFixture) -> None:
    service = await open_session(Hooks(before=[hook, lambda before: Instructions("Name every file.")]))
    with caplog.at_level(logging.WARNING, "holdfast"):
        result = await service.compact("s", always, SUMMARY)
    assert result.outcome is Outcome.COMPACTED
    assert why in result.remarks[0]
    assert result.remarks[0] in caplog.text
    assert "Name every file." in model_calls(service)[0].prompt, "later hooks are still called"


@pytest.mark.parametrize("kind", ["async", "blocking"])
async def test_hook_timeout_skips_the_hook(kind: str) -> None:
    released = threading.Event()

    async def slow(before: BeforeCompaction) -> Veto:
        await anyio.sleep_forever()
        return Veto("never")

    def slow_too(before: BeforeCompaction) -> Veto:
        released.wait(20)
        return Veto("too late")

    service = await open_session(Hooks(before=slow if kind == "async" else slow_too, timeout=0.05))
    result = await service.compact("s", always, SUMMARY)
    released.set()
    assert result.outcome is Outcome.COMPACTED
    assert "it timed out after 0.05 s" in result.remarks[0]


async def test_hooks_may_be_async_or_objects() -> None:
    class Object:
        async def __call__(self, before: BeforeCompaction) -> Veto:
            return Veto("as an object")

    async def later(before: BeforeCompaction) -> Veto:
        return Veto("as a coroutine")

    async def soon(before: BeforeCompaction) -> Veto:
        return Veto("as a promise")

    for hook in (Object(), later, lambda before: soon(before)):
        service = await open_session(Hooks(before=hook))
        result = await service.compact("s", always, SUMMARY)
        assert (result.outcome, result.why[:4]) == (Outcome.VETOED, "as a")


async def test_blocking_hook_does_not_block_the_event_loop() -> None:
    """The hook runs in a thread, so the event loop can release it."""
    waiting, released = threading.Event(), threading.Event()

    def block(before: BeforeCompaction) -> None:
        waiting.set()
        assert released.wait(20)

    service = await open_session(Hooks(before=block))
    async with anyio.create_task_group() as group:
        group.start_soon(service.compact, "s", always, SUMMARY)
        await anyio.to_thread.run_sync(waiting.wait)
        await append_turns(service, 7, 1)
        released.set()
    assert len(await service.events("s", kind="message")) == 14


def test_blocking_service_runs_hooks() -> None:
    hooks = Hooks(before=[lambda before: Instructions("Name every file.")])
    model = ScriptedModel(SUMMARY_TEXT, repeat=True)
    with open_blocking_session(hooks, summarizer=model) as service:
        assert service.compact("s", always, SUMMARY).outcome is Outcome.COMPACTED
    assert "Name every file." in model.calls[0].prompt


def test_hook_may_call_the_blocking_service() -> None:
    def inspect(before: BeforeCompaction) -> Veto:
        return Veto(f"{len(service.events('s'))} events, compacting: {service.compacting('s')}")

    with open_blocking_session(Hooks(before=inspect)) as service:
        assert service.compact("s").why == "12 events, compacting: True"
        assert not service.compacting("s")


# -- prune and memory -----------------------------------------------------------------------------------------------


async def test_prune_calls_hooks_and_memory_blending_does_not() -> None:
    """Blending archives no messages, so hooks have nothing to plan."""
    asked: list[BeforeCompaction] = []
    service = await open_session(Hooks(before=asked.append), says="All that was remembered, in short.")
    await service.prune("s")
    assert len(asked) == 1
    await fill_memory(service)
    assert (await service.memory("s")).summary
    assert len(asked) == 1


@pytest.mark.parametrize(
    "given", [{"before": 7}, {"after": [lambda *_: None, None]}, {"session_start": Veto}, {"before": [b"echo"]}]
)
def test_invalid_hook_is_rejected(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="A hook is a function, a CommandHook or the text of a command"):
        Hooks(**given)


@pytest.mark.parametrize("timeout", [0, -1, True, "60", float("nan")])
def test_invalid_hook_timeout_is_rejected(timeout: Any) -> None:
    with pytest.raises(InvalidInput, match="timeout must be a number of seconds above 0"):
        Hooks(timeout=timeout)


async def test_service_rejects_invalid_hooks() -> None:
    with pytest.raises(InvalidInput, match=r"hooks= takes Hooks\(before=…"):
        await open_session(lambda before: None)
