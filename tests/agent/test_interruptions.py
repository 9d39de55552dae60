"""Stopped or broken at any moment, an agent loses nothing that was said, and leaves a conversation that can go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from agents import Harbor, read
from loops import asks, keeper_of, worked

from holdfast import Failure, check
from holdfast.agent import Keeper
from holdfast.agent.events import AgentEvent, Replied, Said, Unsent
from holdfast.agent.nudge import INTERRUPTED
from holdfast.calls import StepReply
from holdfast.errors import StoreError
from holdfast.messages import ToolCall
from holdfast.models import ScriptedAgentModel

pytestmark = pytest.mark.anyio


async def shown(harbor: Harbor, session: str) -> list[dict[str, Any]]:
    return list(await harbor.sessions.context(session))


def stops_at(agent: Any, kind: type, harbor: Harbor) -> None:
    """Says stop when the first event of this kind is told."""

    def tell(event: AgentEvent) -> None:
        harbor.tell(event)
        if isinstance(event, kind):
            agent.tell = harbor.tell
            agent.abort()

    agent.tell = tell


async def test_a_reply_that_was_read_is_stored_whenever_it_is_stopped(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["All of it was read."])
    agent = await harbor.agent()
    append = harbor.sessions.append

    async def stopped(*args: Any, **options: Any) -> Any:
        if isinstance(args[1], list):
            agent.abort()
        return await append(*args, **options)

    harbor.sessions.append = stopped  # type: ignore[method-assign]
    await agent.run("Tell me.")
    assert [message["content"] for message in await shown(harbor, agent.session)] == ["Tell me.", "All of it was read."]


async def test_stopped_between_a_reply_and_its_tools_every_call_has_a_result(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [[read(), read()], "Going on."])
    agent = await harbor.agent()
    stops_at(agent, Replied, harbor)
    assert (await agent.run("Look twice.")).status == "aborted"
    context = await shown(harbor, agent.session)
    assert [message["role"] for message in context] == ["user", "assistant", "tool", "tool"]
    assert not check(context, "openai-chat")


async def test_calls_that_a_crash_left_open_are_closed_before_the_model_is_asked(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["Then I do something else."])
    agent = await harbor.agent()
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    asked = [{"role": "user", "content": "Look."}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    await harbor.sessions.append(agent.session, asked)
    assert (await agent.run()).status == "done"
    assert not check(list(harbor.model.steps[0].messages), "openai-chat")
    assert "interrupted" in harbor.model.steps[0].messages[-1]["content"]


async def test_going_on_after_half_a_reply_does_not_end_with_the_model_s_own_words(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ScriptedAgentModel(["I will now explain at length.", "The rest of it."], delay=0.01))
    agent = await harbor.agent()
    stops_at(agent, Said, harbor)
    await agent.run("Explain.")
    assert (await agent.run()).status == "done"
    last = harbor.model.steps[1].messages[-1]
    assert last["role"] == "user" and INTERRUPTED in last["content"]


async def test_what_cannot_be_stored_is_given_back(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["never"])
    agent = await harbor.agent()

    async def broken(*args: Any, **options: Any) -> Any:
        raise StoreError("the disk is full")

    harbor.sessions.append = broken  # type: ignore[method-assign]
    with pytest.raises(StoreError):
        await agent.run("An important prompt.")
    assert [event.text for event in harbor.told if isinstance(event, Unsent)] == ["An important prompt."]


async def test_a_prompt_is_stored_even_if_it_is_stopped_at_once(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["never"])
    agent = await harbor.agent()
    stops_at(agent, object, harbor)
    await agent.run("An important prompt.")
    assert (await shown(harbor, agent.session))[0]["content"] == "An important prompt."


async def test_stopped_in_the_last_compaction_the_work_is_done_all_the_same(tmp_path: Path) -> None:
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


async def test_half_characters_are_mended_on_their_way_in(tmp_path: Path) -> None:
    """(behaviour 18)"""
    harbor = Harbor(tmp_path, [StepReply((), "half \ud83d a smile"), "Fine."])
    agent = await harbor.agent()
    assert (await agent.run("a \udc80 byte")).status == "done"
    assert [message["content"] for message in await shown(harbor, agent.session)] == [
        "a \ufffd byte",
        "half \ufffd a smile",
    ]


async def test_an_overflow_may_be_mended_again_once_something_new_was_said(tmp_path: Path) -> None:
    """(behaviour 5)"""
    too_long = Failure("overflow", "prompt is too long", window=9_000)
    steps = [*([read("long.txt")] * 4), too_long, too_long, *([read("long.txt")] * 3), too_long, "Done."]
    harbor = Harbor(tmp_path, steps)
    agent = await harbor.agent()
    assert (await agent.run("Read it.")).status == "failed"
    assert (await agent.run("Again.")).status == "done"


async def test_a_listener_that_breaks_does_not_break_a_step(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["never"])
    agent = await harbor.agent()
    await harbor.sessions.append(agent.session, {"role": "user", "content": "word " * 3_000})
    await harbor.sessions.append(agent.session, {"role": "assistant", "content": "word " * 6_000})

    def broken(event: Any) -> None:
        raise ValueError("the screen is gone")

    keeper = Keeper(harbor.sessions, agent.session, window=8_000, listen=broken)
    assert (await keeper.prepare_step()).tokens < 8_000


async def test_a_tool_without_arguments_can_be_told_in_a_line(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [ToolCall("", "unknown", {}), "Fine."])
    assert (await (await harbor.agent()).run("Try.")).status == "done"


async def test_stopped_while_a_compaction_is_written_it_is_told_as_what_it_is(tmp_path: Path) -> None:
    heard: list[Any] = []
    keeper = await keeper_of([asks(), *worked(20)], listen=heard.append)
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
