"""An agent aborted or failing at any moment loses no message and leaves a conversation that can be continued."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from agent_harness import Harbor, read
from keeper_conversations import open_keeper, tool_steps, user_message

from holdfast import check
from holdfast.agent import Keeper
from holdfast.agent.events import AgentEvent, ReplyStored, TextDelta, Unsent, WindowUsage
from holdfast.errors import StoreError
from holdfast.messages import INTERRUPTED_MARK, ToolCall
from holdfast.models import Failure, ScriptedAgentModel
from holdfast.models.calls import StepReply
from holdfast.sessions.continuation import INTERRUPTED_PROMPT

pytestmark = pytest.mark.anyio


async def context_of(harbor: Harbor, session: str) -> list[dict[str, Any]]:
    return list(await harbor.sessions.context(session))


def abort_at(agent: Any, kind: type, harbor: Harbor) -> None:
    """Aborts the agent at the first event of this kind."""

    def on_event(event: AgentEvent) -> None:
        harbor.on_event(event)
        if isinstance(event, kind):
            agent.on_event = harbor.on_event
            agent.abort()

    agent.on_event = on_event


async def test_abort_while_storing_reply_keeps_the_reply(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["All of it was read."])
    agent = await harbor.agent()
    append = harbor.sessions.append

    async def stopped(*args: Any, **options: Any) -> Any:
        if isinstance(args[1], list):
            agent.abort()
        return await append(*args, **options)

    harbor.sessions.append = stopped  # type: ignore[method-assign]
    await agent.run("Tell me.")
    assert [message["content"] for message in await context_of(harbor, agent.session)] == [
        "Tell me.",
        "All of it was read.",
    ]


async def test_abort_after_reply_adds_a_result_to_every_call(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [[read(), read()], "Going on."])
    agent = await harbor.agent()
    abort_at(agent, ReplyStored, harbor)
    assert (await agent.run("Look twice.")).status == "aborted"
    context = await context_of(harbor, agent.session)
    assert [message["role"] for message in context] == ["user", "assistant", "tool", "tool"]
    assert not check(context, "openai-chat")


async def test_calls_left_open_by_a_crash_are_closed_before_the_next_step(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["Then I do something else."])
    agent = await harbor.agent()
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    asked = [{"role": "user", "content": "Look."}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    await harbor.sessions.append(agent.session, asked)
    assert (await agent.run()).status == "done"
    assert not check(list(harbor.model.steps[0].messages), "openai-chat")
    assert "interrupted" in harbor.model.steps[0].messages[-1]["content"]


async def test_continuing_a_partial_reply_ends_with_a_user_message(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ScriptedAgentModel(["I will now explain at length.", "The rest of it."], delay=0.01))
    agent = await harbor.agent()
    abort_at(agent, TextDelta, harbor)
    await agent.run("Explain.")
    assert (await agent.run()).status == "done"
    last = harbor.model.steps[1].messages[-1]
    assert last["role"] == "user" and INTERRUPTED_PROMPT in last["content"]


async def test_prompt_that_cannot_be_stored_is_returned_as_unsent(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["never"])
    agent = await harbor.agent()

    async def broken(*args: Any, **options: Any) -> Any:
        raise StoreError("the disk is full")

    harbor.sessions.append = broken  # type: ignore[method-assign]
    with pytest.raises(StoreError):
        await agent.run("An important prompt.")
    assert [event.text for event in harbor.events if isinstance(event, Unsent)] == ["An important prompt."]


async def test_prompt_is_stored_when_aborted_at_once(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["never"])
    agent = await harbor.agent()
    abort_at(agent, object, harbor)
    await agent.run("An important prompt.")
    assert (await context_of(harbor, agent.session))[0]["content"] == "An important prompt."


async def test_abort_in_last_compaction_still_finishes_as_done(tmp_path: Path) -> None:
    """(behaviour 22)"""
    harbor = Harbor(tmp_path, [read(), "Done."])
    agent = await harbor.agent()

    async def stopped() -> bool:
        if len(harbor.model.steps) == 2:
            agent.abort()
            await agent.keeper.sessions.context(agent.session)
        return False

    agent.keeper.compact_if_due = stopped  # type: ignore[method-assign]
    assert (await agent.run("Look.")).status == "done"


async def test_lone_surrogates_are_replaced_before_storing(tmp_path: Path) -> None:
    """(behaviour 18)"""
    harbor = Harbor(tmp_path, [StepReply((), "half \ud83d a smile"), "Fine."])
    agent = await harbor.agent()
    assert (await agent.run("a \udc80 byte")).status == "done"
    assert [message["content"] for message in await context_of(harbor, agent.session)] == [
        "a \ufffd byte",
        "half \ufffd a smile",
    ]


async def test_overflow_is_recovered_again_after_a_new_prompt(tmp_path: Path) -> None:
    """(behaviour 5)"""
    too_long = Failure("overflow", "prompt is too long", window=9_000)
    steps = [*([read("long.txt")] * 4), too_long, too_long, *([read("long.txt")] * 3), too_long, "Done."]
    harbor = Harbor(tmp_path, steps)
    agent = await harbor.agent()
    assert (await agent.run("Read it.")).status == "failed"
    assert (await agent.run("Again.")).status == "done"


async def test_failing_listener_does_not_break_a_step(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["never"])
    agent = await harbor.agent()
    await harbor.sessions.append(agent.session, {"role": "user", "content": "word " * 3_000})
    await harbor.sessions.append(agent.session, {"role": "assistant", "content": "word " * 6_000})

    def broken(event: Any) -> None:
        raise ValueError("the screen is gone")

    keeper = Keeper(harbor.sessions, agent.session, window=8_000, listen=broken)
    assert (await keeper.prepare_step()).tokens < 8_000


async def test_tool_call_without_arguments_runs(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [ToolCall("", "unknown", {}), "Fine."])
    assert (await (await harbor.agent()).run("Try.")).status == "done"


async def test_cancel_during_commit_still_emits_completed(tmp_path: Path) -> None:
    heard: list[Any] = []
    keeper = await open_keeper([user_message(), *tool_steps(20)], listen=heard.append)
    store = keeper.sessions.store
    append = store.append
    with anyio.CancelScope() as scope:

        async def stopped(*args: Any, **options: Any) -> Any:
            if options.get("tip") is not None:
                scope.cancel()
            return await append(*args, **options)

        store.append = stopped  # type: ignore[method-assign]
        await keeper.prepare_step()
    assert scope.cancelled_caught
    assert len(await keeper.sessions.events(keeper.session_id, kind="compaction")) == 1
    assert [type(event).__name__ for event in heard] == [
        "CompactionStarted",
        "CompactionCompleted",
        "CompactionBoundary",
    ]


async def test_interrupted_reply_is_marked_for_the_model(tmp_path: Path) -> None:
    """By the user before and in the middle of a reply, and by a lost connection."""
    harbor = Harbor(tmp_path, ScriptedAgentModel(["At length.", "Then not.", "Done."], delay=0.02))
    agent = await harbor.agent()
    abort_at(agent, TextDelta, harbor)
    await agent.run("Explain.")
    abort_at(agent, WindowUsage, harbor)
    await agent.run("Or explain this.")
    assert (await agent.run("Never mind.")).status == "done"
    replies = [message["content"] for message in harbor.model.steps[-1].messages if message["role"] == "assistant"]
    assert (
        len(replies) == 2 and replies[0].startswith("At") and all(text.endswith(INTERRUPTED_MARK) for text in replies)
    )


@pytest.mark.parametrize("arguments", ['{"path": "tides.t', "[1]", '"tides.txt"'])
async def test_call_with_invalid_json_goes_back_to_the_model_as_an_error(tmp_path: Path, arguments: str) -> None:
    """Beside a valid call, which runs."""
    broken = ToolCall("c1", "read_file", arguments)
    harbor = Harbor(tmp_path, [[broken, read()], "The tide is low."])
    agent = await harbor.agent()
    finished = await agent.run("When?")
    assert (finished.status, len(harbor.model.steps)) == ("done", 2)
    sent = list(harbor.model.steps[1].messages)
    assert not check(sent, "openai-chat")
    results = {message["tool_call_id"]: message["content"] for message in sent if message["role"] == "tool"}
    assert "not a valid JSON object" in results["c1"] and len(results) == 2
    calls = [call for message in sent for call in message.get("tool_calls", ())]
    assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls)
    assert any(arguments in json.loads(call["function"]["arguments"]).values() for call in calls)


async def test_empty_reply_is_a_failure_that_says_so(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [StepReply((), "  ")])
    finished = await (await harbor.agent()).run("When?")
    assert (finished.status, finished.why) == ("failed", "the model replied with nothing")
