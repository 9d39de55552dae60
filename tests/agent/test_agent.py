"""A run of the agent: what it tells, what it stores, and how it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from agents import Harbor, read

from holdfast import Failure, Limits, check, never, preset_named
from holdfast.agent.events import Gauged, Replied, Retrying, RunFinished, Said, ToolFinished
from holdfast.agent.nudge import GO_ON
from holdfast.calls import StepCall, StepReply
from holdfast.hooks.events import CompactionCompleted
from holdfast.messages import ToolCall
from holdfast.models import ScriptedAgentModel
from holdfast.tokens import Usage

pytestmark = pytest.mark.anyio
QUICK = Limits(backoff=0.01, timeout=2.0)


async def roles(harbor: Harbor, session: str) -> list[str]:
    return [message["role"] for message in await harbor.sessions.context(session)]


async def test_a_question_a_look_and_an_answer(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [read(), "High water is at nine."])
    agent = await harbor.agent()
    finished = await agent.run("When is high water?")
    assert (finished.status, finished.steps) == ("done", 2)
    assert harbor.kinds("Gauged") == [
        "RunStarted", "Said", "Replied", "ToolStarted", "ToolFinished", "Said", "Replied", "RunFinished",
    ]  # fmt: skip
    assert await roles(harbor, agent.session) == ["user", "assistant", "tool", "assistant"]
    assert "".join(event.text for event in harbor.told if isinstance(event, Said) and event.kind == "text") == (
        "High water is at nine."
    )
    (result,) = [event for event in harbor.told if isinstance(event, ToolFinished)]
    assert result.text == "low 3\nhigh 9\n" and not result.is_error


async def test_the_model_is_given_the_system_prompt_and_the_tools(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["Yes."])
    await (await harbor.agent()).run("Are you there?")
    (step,) = harbor.model.steps
    assert "recall_search" in step.system
    assert {tool.name for tool in step.tools} >= {"read_file", "edit_file", "run_command"}


async def test_several_calls_at_once_are_answered_in_one_go(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [[read(), read("gone.txt")], "One of them is gone."])
    agent = await harbor.agent()
    await agent.run("Look at both.")
    context = list(await harbor.sessions.context(agent.session))
    assert [message["role"] for message in context] == ["user", "assistant", "tool", "tool", "assistant"]
    assert "no file gone.txt" in context[3]["content"]
    assert not check(context, "openai-chat")


async def test_what_is_said_to_a_working_agent_is_heard_before_its_next_step(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [read(), "As you say."])
    agent = await harbor.agent()
    harbor.model.scenes[0] = lambda call: (agent.steer("Only the morning."), read())[1]
    await agent.run("When is high water?")
    assert await roles(harbor, agent.session) == ["user", "assistant", "tool", "user", "assistant"]
    assert harbor.model.steps[1].messages[-1]["content"] == "Only the morning."


async def test_what_is_said_during_the_last_reply_is_answered_too(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["First.", "Second."])
    agent = await harbor.agent()
    harbor.model.scenes[0] = lambda call: (agent.steer("And then?"), "First.")[1]
    assert (await agent.run("What now?")).steps == 2
    assert await roles(harbor, agent.session) == ["user", "assistant", "user", "assistant"]


# -- stopping ----------------------------------------------------------------------------------------------


async def test_stopped_in_mid_sentence_what_was_said_stays_and_counts_for_nothing(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ScriptedAgentModel(["A long answer in four parts.", "Going on."], delay=0.01))
    agent = await harbor.agent()
    tell = agent.tell

    def stop(event: Any) -> None:
        tell(event)
        if isinstance(event, Said):
            agent.abort()

    agent.tell = stop
    finished = await agent.run("Tell me.")
    assert finished.status == "aborted"
    agent.tell = tell
    context = list(await harbor.sessions.context(agent.session))
    assert context[-1] == {"role": "assistant", "content": "A long"}
    await agent.run("Go on.")
    assert await roles(harbor, agent.session) == ["user", "assistant", "user", "assistant"]


async def test_stopped_while_a_tool_runs_every_call_has_a_result(tmp_path: Path) -> None:
    calls = [ToolCall("", "run_command", {"command": "sleep 60"}), read()]
    harbor = Harbor(tmp_path, [calls, "Fine."])
    agent = await harbor.agent()
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "Wait a while.")
        await harbor.hears("ToolStarted")
        agent.abort()
    assert harbor.told[-1] == RunFinished(agent.session, "aborted", "stopped by the user", 1)
    context = list(await harbor.sessions.context(agent.session))
    assert ["Stopped by the user" in message["content"] for message in context[2:]] == [True, True]
    assert not check(context, "openai-chat")
    assert (await agent.run()).status == "done", "what is unfinished can go on"


async def test_any_thread_may_stop_it(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ScriptedAgentModel(["word " * 50], pieces=50, delay=0.05))
    agent = await harbor.agent()
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "Speak.")
        await harbor.hears("Said")
        await anyio.to_thread.run_sync(agent.abort)
    assert isinstance(harbor.told[-1], RunFinished) and harbor.told[-1].status == "aborted"


# -- going wrong -------------------------------------------------------------------------------------------


async def test_a_model_that_cannot_be_reached_is_asked_again_and_then_reported(tmp_path: Path) -> None:
    dead = Failure("transport", "the line is dead")
    harbor = Harbor(tmp_path, [dead, dead, "Back again."], limits=QUICK)
    assert (await (await harbor.agent()).run("Hello?")).status == "done"
    assert sum(isinstance(event, Retrying) for event in harbor.told) == 2
    harbor = Harbor(tmp_path, [dead] * 3, limits=QUICK)
    finished = await (await harbor.agent()).run("Hello?")
    assert (finished.status, finished.why) == ("failed", "transport: the line is dead")


async def test_what_may_not_be_retried_is_not(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [Failure("auth", "wrong key"), "never"], limits=QUICK)
    assert (await (await harbor.agent()).run("Hello?")).why == "auth: wrong key"
    assert len(harbor.model.steps) == 1


async def test_a_refusal_is_no_answer(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [StepReply((), "I will not.", finish="refused")])
    finished = await (await harbor.agent()).run("Do it.")
    assert (finished.status, finished.why) == ("failed", "the model refused to answer")


async def test_so_many_steps_and_no_more(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ScriptedAgentModel(read(), repeat=True), max_steps=5)
    finished = await (await harbor.agent()).run("For ever.")
    assert (finished.status, finished.steps) == ("max_steps", 5)


async def test_whatever_listens_may_not_break_it(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, ["Fine."])
    agent = await harbor.agent()
    agent.tell = lambda event: 1 / 0
    assert (await agent.run("Hello?")).status == "done"


# -- inside the window -------------------------------------------------------------------------------------


def long_work(steps: int, then: str = "All read.") -> list[Any]:
    return [*([read("long.txt")] * steps), then]


async def test_g2_a_long_run_stays_inside_its_window(tmp_path: Path) -> None:
    sizes: list[int] = []
    harbor = Harbor(tmp_path, long_work(40), window=12_000)
    agent = await harbor.agent()
    tell = agent.tell
    agent.tell = lambda event: (tell(event), sizes.append(event.tokens) if isinstance(event, Gauged) else None)
    assert (await agent.run("Read everything.")).status == "done"
    compactions = sum(isinstance(event, CompactionCompleted) for event in harbor.told)
    assert compactions >= 3 and max(sizes) < 12_000
    for step in harbor.model.steps:
        assert not check(list(step.messages), "openai-chat")
    logged = await harbor.sessions.events(agent.session, kind="message")
    assert sum(event.body["message"]["role"] == "tool" for event in logged) == 40, "nothing is lost"


async def test_p2_after_the_last_reply_too_and_then_nothing_goes_on(tmp_path: Path) -> None:
    done = StepReply((), "All read.", usage=Usage(input=11_900, output=10))
    harbor = Harbor(tmp_path, [*([read("long.txt")] * 3), done], window=12_000)
    agent = await harbor.agent()
    finished = await agent.run("Read everything.")
    assert finished.status == "done"
    kinds = harbor.kinds("Gauged")
    assert kinds.index("CompactionCompleted") > kinds.index("Replied")
    assert "Continued" not in kinds
    assert len(harbor.model.steps) == 4
    assert all(GO_ON not in str(message) for message in await harbor.sessions.context(agent.session))


async def test_the_gauge_knows_estimates_or_says_that_it_does_not_know(tmp_path: Path) -> None:
    def counted(call: StepCall) -> StepReply:
        return StepReply((), calls=(read("long.txt"),), usage=Usage(input=2_500 * len(harbor.model.steps), output=9))

    harbor = Harbor(tmp_path, [*([counted] * 6), "Done."], window=12_000)
    await (await harbor.agent()).run("Read it.")
    states = [event.known for event in harbor.told if isinstance(event, Gauged)]
    assert states[:3] == ["estimated", "known", "estimated"]
    after = next(place for place, event in enumerate(harbor.told) if isinstance(event, CompactionCompleted))
    later = [event for event in harbor.told[after:] if isinstance(event, Gauged | Replied)]
    assert isinstance(later[0], Gauged) and later[0].known == "unknown"
    assert any(isinstance(event, Gauged) and event.known == "known" for event in later)


async def test_g3_an_overflow_is_mended_and_asked_again_once(tmp_path: Path) -> None:
    too_long = Failure("overflow", "prompt is too long", window=9_000)
    harbor = Harbor(tmp_path, [*([read("long.txt")] * 4), too_long, "Got it."])
    agent = await harbor.agent()
    assert (await agent.run("Read it.")).status == "done"
    assert agent.keeper.window.size == 9_000
    assert "Continued" in harbor.kinds()
    harbor = Harbor(tmp_path, [*([read("long.txt")] * 4), too_long, too_long, "never"])
    finished = await (await harbor.agent()).run("Read it.")
    assert finished.status == "failed" and "too long" in finished.why
    assert len(harbor.model.steps) == 6


async def test_g3_a_reply_that_is_cut_off_with_room_left_ends_the_run(tmp_path: Path) -> None:
    harbor = Harbor(tmp_path, [StepReply((), "Once upon a ti", finish="length"), "never"])
    finished = await (await harbor.agent()).run("Tell me a story.")
    assert finished.status == "max_tokens"
    assert len(harbor.model.steps) == 1


async def test_g3_a_reply_that_is_cut_off_by_the_window_goes_on(tmp_path: Path) -> None:
    cut = StepReply((), "It is at ni", finish="length")
    late = msgspec.structs.replace(preset_named("holdfast"), trigger_in=lambda window: never)
    harbor = Harbor(tmp_path, [*([read("long.txt")] * 14), cut, "ne."], window=40_000, preset=late)
    agent = await harbor.agent()
    assert (await agent.run("When?")).status == "done"
    assert GO_ON in str(harbor.model.steps[-1].messages[-1])
    assert "It is at ni" in str(harbor.model.steps[-1].messages)


async def test_g3_the_whole_calls_of_a_reply_that_was_cut_off_are_run(tmp_path: Path) -> None:
    broken = ToolCall("x", "read_file", '{"path": "lo')
    harbor = Harbor(tmp_path, [StepReply((), "Both.", (read(id="a"), broken), "length"), "Done."])
    agent = await harbor.agent()
    assert (await agent.run("Read both.")).status == "done"
    assert await roles(harbor, agent.session) == ["user", "assistant", "tool", "assistant"]
