"""Runs of the agent: emitted events, stored messages, and how they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from agent_harness import Harbor, read

from holdfast import check, preset
from holdfast.agent.events import ReplyStored, Retrying, RunFinished, TextDelta, ToolFinished, WindowUsage
from holdfast.agent.tools import Toolbox, WorkingFolder, approve_all, command_tool, file_tools
from holdfast.hooks.events import CompactionCompleted
from holdfast.messages import ToolCall
from holdfast.models import Failure, Limits, ScriptedAgentModel
from holdfast.models.calls import StepCall, StepReply
from holdfast.recall import Recall
from holdfast.sessions.continuation import CONTINUE_PROMPT
from holdfast.tokens import Usage
from holdfast.triggers import never

pytestmark = pytest.mark.anyio
QUICK = Limits(backoff=0.01, timeout=60.0)


async def roles(harbor: Harbor, session: str) -> list[str]:
    return [message["role"] for message in await harbor.sessions.context(session)]


async def test_run_with_tool_call_emits_events_in_order(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [read(), "High water is at nine."])
    agent = await harbor.agent()
    finished = await agent.run("When is high water?")
    assert (finished.status, finished.steps) == ("done", 2)
    assert harbor.event_names("WindowUsage") == [
        "RunStarted", "TextDelta", "ReplyStored", "ToolStarted", "ToolFinished",
        "TextDelta", "ReplyStored", "RunFinished",
    ]  # fmt: skip
    assert await roles(harbor, agent.session) == ["user", "assistant", "tool", "assistant"]
    assert "".join(event.text for event in harbor.events if isinstance(event, TextDelta) and event.kind == "text") == (
        "High water is at nine."
    )
    (result,) = [event for event in harbor.events if isinstance(event, ToolFinished)]
    assert result.text == "low 3\nhigh 9\n" and not result.is_error


async def test_model_receives_system_prompt_and_tools(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["Yes."])
    await (await harbor.agent()).run("Are you there?")
    (step,) = harbor.model.steps
    assert "recall_search" in step.system
    assert {tool.name for tool in step.tools} >= {"read_file", "edit_file", "run_command"}


async def test_parallel_calls_get_their_results_in_order(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [[read(), read("gone.txt")], "One of them is gone."])
    agent = await harbor.agent()
    await agent.run("Look at both.")
    context = list(await harbor.sessions.context(agent.session))
    assert [message["role"] for message in context] == ["user", "assistant", "tool", "tool", "assistant"]
    assert "no file gone.txt" in context[3]["content"]
    assert not check(context, "openai-chat")


async def test_steering_is_delivered_before_the_next_step(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [read(), "As you say."])
    agent = await harbor.agent()
    harbor.model.script[0] = lambda call: (agent.steer("Only the morning."), read())[1]
    await agent.run("When is high water?")
    assert await roles(harbor, agent.session) == ["user", "assistant", "tool", "user", "assistant"]
    assert harbor.model.steps[1].messages[-1]["content"] == "Only the morning."


async def test_steering_during_last_reply_is_answered(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["First.", "Second."])
    agent = await harbor.agent()
    harbor.model.script[0] = lambda call: (agent.steer("And then?"), "First.")[1]
    assert (await agent.run("What now?")).steps == 2
    assert await roles(harbor, agent.session) == ["user", "assistant", "user", "assistant"]


# -- abort -------------------------------------------------------------------------------------------------


async def test_abort_in_mid_stream_keeps_partial_reply(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ScriptedAgentModel(["A long answer in four parts.", "Going on."], delay=0.01))
    agent = await harbor.agent()
    on_event = agent.on_event

    def stop(event: Any) -> None:
        on_event(event)
        if isinstance(event, TextDelta):
            agent.abort()

    agent.on_event = stop
    finished = await agent.run("Tell me.")
    assert finished.status == "aborted"
    agent.on_event = on_event
    context = list(await harbor.sessions.context(agent.session))
    assert context[-1] == {"role": "assistant", "content": "A long\n\n[Interrupted by the user.]"}
    await agent.run("Go on.")
    assert await roles(harbor, agent.session) == ["user", "assistant", "user", "assistant"]


async def test_abort_during_tool_adds_a_result_to_every_call(tmp_path: Path) -> None:
    calls = [ToolCall("", "run_command", {"command": "sleep 60"}), read()]
    harbor = Harbor(tmp_path, [calls, "Fine."])
    agent = await harbor.agent()
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "Wait a while.")
        await harbor.wait_for("ToolStarted")
        agent.abort()
    assert harbor.events[-1] == RunFinished(agent.session, "aborted", "stopped by the user", 1)
    context = list(await harbor.sessions.context(agent.session))
    assert ["Stopped by the user" in message["content"] for message in context[2:]] == [True, True]
    assert not check(context, "openai-chat")
    assert (await agent.run()).status == "done", "unfinished work can be continued"


async def test_abort_from_another_thread_stops_the_run(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ScriptedAgentModel(["word " * 50], pieces=50, delay=0.5))
    agent = await harbor.agent()
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "Speak.")
        await harbor.wait_for("TextDelta")
        await anyio.to_thread.run_sync(agent.abort)
    assert isinstance(harbor.events[-1], RunFinished) and harbor.events[-1].status == "aborted"


# -- failures ----------------------------------------------------------------------------------------------


async def test_transport_failure_is_retried_then_reported(tmp_path: Path) -> None:
    dead = Failure("transport", "the line is dead")
    harbor = Harbor(tmp_path, [dead, dead, "Back again."], limits=QUICK)
    assert (await (await harbor.agent()).run("Hello?")).status == "done"
    assert sum(isinstance(event, Retrying) for event in harbor.events) == 2
    harbor = Harbor(tmp_path, [dead] * 3, limits=QUICK)
    finished = await (await harbor.agent()).run("Hello?")
    assert (finished.status, finished.why) == ("failed", "no answer from the model: the line is dead")


async def test_auth_failure_is_not_retried(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [Failure("auth", "wrong key"), "never"], limits=QUICK)
    assert (await (await harbor.agent()).run("Hello?")).why == "the provider refused the key: wrong key"
    assert len(harbor.model.steps) == 1


async def test_refusal_fails_the_run(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [StepReply((), "I will not.", finish="refused")])
    finished = await (await harbor.agent()).run("Do it.")
    assert (finished.status, finished.why) == ("failed", "the model refused to answer")


async def test_max_steps_ends_the_run(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ScriptedAgentModel(read(), repeat=True), max_steps=5)
    finished = await (await harbor.agent()).run("For ever.")
    assert (finished.status, finished.steps) == ("max_steps", 5)


async def test_failing_listener_does_not_break_a_run(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["Fine."])
    agent = await harbor.agent()
    agent.on_event = lambda event: 1 / 0
    assert (await agent.run("Hello?")).status == "done"


# -- inside the window -------------------------------------------------------------------------------------


def reading_steps(steps: int, then: str = "All read.") -> list[Any]:
    return [*([read("long.txt")] * steps), then]


async def test_g2_long_run_stays_inside_the_window(tmp_path: Path) -> None:
    sizes: list[int] = []
    harbor = Harbor(tmp_path, reading_steps(40), window=12_000)
    agent = await harbor.agent()
    on_event = agent.on_event
    agent.on_event = lambda event: (
        on_event(event),
        sizes.append(event.tokens) if isinstance(event, WindowUsage) else None,
    )
    assert (await agent.run("Read everything.")).status == "done"
    compactions = sum(isinstance(event, CompactionCompleted) for event in harbor.events)
    assert compactions >= 3 and max(sizes) < 12_000
    for step in harbor.model.steps:
        assert not check(list(step.messages), "openai-chat")
    logged = await harbor.sessions.events(agent.session, kind="message")
    assert sum(event.body["message"]["role"] == "tool" for event in logged) == 40, "nothing is lost"


async def test_p2_compaction_after_last_reply_adds_no_continue_prompt(tmp_path: Path) -> None:
    done = StepReply((), "All read.", usage=Usage(input=11_900, output=10))
    harbor = Harbor(tmp_path, [*([read("long.txt")] * 3), done], window=12_000)
    agent = await harbor.agent()
    finished = await agent.run("Read everything.")
    assert finished.status == "done"
    names = harbor.event_names("WindowUsage")
    assert names.index("CompactionCompleted") > names.index("ReplyStored")
    assert "Continued" not in names
    assert len(harbor.model.steps) == 4
    assert all(CONTINUE_PROMPT not in str(message) for message in await harbor.sessions.context(agent.session))


async def test_window_usage_reports_known_estimated_or_unknown(tmp_path: Path) -> None:
    def counted(call: StepCall) -> StepReply:
        return StepReply((), calls=(read("long.txt"),), usage=Usage(input=2_500 * len(harbor.model.steps), output=9))

    harbor = Harbor(tmp_path, [*([counted] * 6), "Done."], window=12_000)
    await (await harbor.agent()).run("Read it.")
    states = [event.known for event in harbor.events if isinstance(event, WindowUsage)]
    assert states[:3] == ["estimated", "known", "estimated"]
    after = next(place for place, event in enumerate(harbor.events) if isinstance(event, CompactionCompleted))
    later = [event for event in harbor.events[after:] if isinstance(event, WindowUsage | ReplyStored)]
    assert isinstance(later[0], WindowUsage) and later[0].known == "unknown"
    assert any(isinstance(event, WindowUsage) and event.known == "known" for event in later)


async def test_g3_overflow_is_compacted_and_retried_once(tmp_path: Path) -> None:
    too_long = Failure("overflow", "prompt is too long", window=9_000)
    harbor = Harbor(tmp_path, [*([read("long.txt")] * 4), too_long, "Got it."])
    agent = await harbor.agent()
    assert (await agent.run("Read it.")).status == "done"
    assert (await agent.keeper.size()).window == 9_000
    assert "Continued" in harbor.event_names()
    harbor = Harbor(tmp_path, [*([read("long.txt")] * 4), too_long, too_long, "never"])
    finished = await (await harbor.agent()).run("Read it.")
    assert finished.status == "failed" and "too long" in finished.why
    assert len(harbor.model.steps) == 6


async def test_g3_cut_off_reply_with_room_left_ends_the_run(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [StepReply((), "Once upon a ti", finish="length"), "never"])
    finished = await (await harbor.agent()).run("Tell me a story.")
    assert finished.status == "max_tokens"
    assert len(harbor.model.steps) == 1


async def test_g3_cut_off_reply_in_full_window_is_continued(tmp_path: Path) -> None:
    cut = StepReply((), "It is at ni", finish="length")
    late = preset("holdfast").changed(trigger=never)
    harbor = Harbor(tmp_path, [*([read("long.txt")] * 14), cut, "ne."], window=40_000, preset=late)
    agent = await harbor.agent()
    assert (await agent.run("When?")).status == "done"
    assert CONTINUE_PROMPT in str(harbor.model.steps[-1].messages[-1])
    assert "It is at ni" in str(harbor.model.steps[-1].messages)


async def test_g3_complete_calls_of_a_cut_off_reply_are_run(tmp_path: Path) -> None:
    broken = ToolCall("x", "read_file", '{"path": "lo')
    harbor = Harbor(tmp_path, [StepReply((), "Both.", (read(id="a"), broken), "length"), "Done."])
    agent = await harbor.agent()
    assert (await agent.run("Read both.")).status == "done"
    assert await roles(harbor, agent.session) == ["user", "assistant", "tool", "assistant"]


async def test_h8_tools_that_come_later_are_counted(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["Aye.", "Aye."])
    agent = await harbor.agent()
    await agent.run("Hello.")
    own = (await agent.keeper.size()).overhead
    folder = WorkingFolder(tmp_path)
    agent.toolbox = Toolbox(
        [*file_tools(folder), command_tool(folder)], approve_all, Recall(harbor.sessions, agent.session)
    )
    await agent.run("And now?")
    assert (await agent.keeper.size()).overhead > own + 100
