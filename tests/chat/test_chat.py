"""A conversation: prompts in their order, input that waits for a compaction, and moving between sessions (P14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chats import Room, read_long

from holdfast import Failure, InvalidInput
from holdfast.agent.events import Queued, RunFinished, Said, SessionChanged, ToolStarted, Unsent
from holdfast.agent.nudge import GO_ON
from holdfast.calls import ModelCall
from holdfast.hooks.events import CompactionBoundary, CompactionCompleted, CompactionFailed, CompactionStarted
from holdfast.messages import ToolCall
from holdfast.models import ScriptedAgentModel

pytestmark = pytest.mark.anyio


async def test_prompts_are_answered_in_their_order(tmp_path: Path) -> None:
    room = Room(tmp_path, ["One.", "Two.", "Three."])
    async with room.open() as chat:
        chat.say("First?")
        await chat.wait_idle()
        chat.say("Second?")
        await chat.wait_idle()
    assert await room.texts() == ["First?", "One.", "Second?", "Two."]


async def test_what_is_typed_while_the_agent_works_is_heard_before_its_next_step(tmp_path: Path) -> None:
    room = Room(tmp_path, [read_long(), "As you say."])
    async with room.open() as chat:
        room.on = lambda event: chat.say("Only the deep ones.") if isinstance(event, ToolStarted) else None
        chat.say("List the berths.")
        await chat.wait_idle()
    texts = await room.texts()
    assert [texts[0], texts[3], texts[4]] == ["List the berths.", "Only the deep ones.", "As you say."]


async def test_p14_a_compaction_in_the_middle_of_work_keeps_the_order_that_is_asked_for(tmp_path: Path) -> None:
    """Stop taking events, abort the step, wait until idle, compact, rebuild, take events again, tell, go on."""
    order: list[str] = []
    room = Room(tmp_path, [*([read_long()] * 9), "All is read."], window=40_000)
    chat = room.chat

    def watch(event: Any) -> None:
        name = type(event).__name__
        if name in ("CompactionStarted", "CompactionCompleted", "CompactionBoundary", "RunFinished", "RunStarted"):
            order.append(f"{name} running={chat.agent.running} taking={chat._intake.open}")
        if isinstance(event, CompactionStarted):
            chat.say("Typed meanwhile.")

    async with room.open():
        room.on = watch
        chat.say("Read it nine times.")
        for _ in range(7):
            await room.hears("ToolFinished")
        compacted = await chat.compact("mind the depths")
        await chat.wait_idle()
    assert compacted.outcome == "compacted" and compacted.continued
    assert order == [
        "RunStarted running=True taking=True",
        "CompactionStarted running=False taking=False",
        "CompactionCompleted running=False taking=True",
        "CompactionBoundary running=False taking=True",
        "RunStarted running=True taking=True",
        "RunFinished running=False taking=True",
    ], "nobody is told that the agent stopped: it goes on"
    assert [event.text for event in room.told if isinstance(event, Queued)] == ["Typed meanwhile."]
    texts = await room.texts()
    assert texts[-1] == "All is read." and "Typed meanwhile." in texts
    assert "mind the depths" in room.model.calls[0].prompt


async def test_p14_work_that_is_done_does_not_go_on(tmp_path: Path) -> None:
    room = Room(tmp_path, [*([read_long()] * 6), "All is read.", "never"], window=40_000)
    async with room.open() as chat:
        chat.say("Read it.")
        await chat.wait_idle()
        compacted = await chat.compact()
        await chat.wait_idle()
    assert compacted.outcome == "compacted" and not compacted.continued
    assert len(room.model.steps) == 7
    assert GO_ON not in "".join(await room.texts())


async def test_p14_what_is_typed_during_a_compaction_is_sent_after_it(tmp_path: Path) -> None:
    room = Room(tmp_path, [*([read_long()] * 6), "All is read.", "Two.", "Three."], window=40_000)
    async with room.open() as chat:
        chat.say("Read it.")
        await chat.wait_idle()

        def type_two(event: Any) -> None:
            if isinstance(event, CompactionStarted):
                chat.say("Second?")
                chat.say("Third?")

        room.on = type_two
        await chat.compact()
        await chat.wait_idle()
    assert room.kinds("Queued", "CompactionCompleted", "RunStarted")[1:] == [
        "Queued", "Queued", "CompactionCompleted", "RunStarted", "RunStarted",
    ]  # fmt: skip
    assert (await room.texts())[-4:] == ["Second?", "Two.", "Third?", "Three."]


async def test_what_is_typed_during_an_automatic_compaction_is_in_the_next_request(tmp_path: Path) -> None:
    """(behaviour 11)"""
    room = Room(tmp_path, [*([read_long()] * 9), "Done."], window=20_000)
    async with room.open() as chat:
        room.on = lambda event: chat.say("And the lights.") if isinstance(event, CompactionStarted) else None
        chat.say("Read it all.")
        await chat.wait_idle()
    place = next(n for n, step in enumerate(room.model.steps) if "And the lights." in str(step.messages))
    assert room.model.steps[place].messages[-1]["content"] == "And the lights."
    assert "And the lights." not in str(room.model.steps[place - 1].messages)


async def test_a_compaction_that_is_aborted_leaves_everything_as_it_was(tmp_path: Path) -> None:
    """(behaviour 12)"""

    def stop(call: ModelCall) -> str:
        room.chat.abort()
        return "never read"

    model = ScriptedAgentModel([*([read_long()] * 6), "All is read."], answers=stop)
    room = Room(tmp_path, model, window=40_000)
    async with room.open() as chat:
        chat.say("Read it.")
        await chat.wait_idle()
        before = await room.texts()
        compacted = await chat.compact()
        assert compacted.outcome == "aborted"
        assert await room.texts() == before
        assert room.kinds("CompactionStarted", "CompactionFailed", "CompactionCompleted") == [
            "CompactionStarted",
            "CompactionFailed",
        ]
        assert not await room.sessions.events(chat.record.id, kind="compaction")


async def test_p9_a_failure_is_told_and_the_person_decides(tmp_path: Path) -> None:
    model = ScriptedAgentModel(["Hello.", "Still here."], answers=Failure("auth", "no such key"))
    room = Room(tmp_path, model, preset="pi")
    async with room.open() as chat:
        chat.say("word " * 60_000)
        await chat.wait_idle()
        compacted = await chat.compact()
        assert compacted.outcome == "summary_failed" and "no such key" in compacted.why
        chat.say("Are you there?")
        await chat.wait_idle()
    assert (await room.texts())[-1] == "Still here."
    assert any(isinstance(event, CompactionFailed) for event in room.told)


async def test_escape_stops_the_agent_and_gives_back_what_it_did_not_hear(tmp_path: Path) -> None:
    room = Room(tmp_path, ScriptedAgentModel(["A very long answer."], delay=0.02))
    async with room.open() as chat:

        def stop(event: Any) -> None:
            if isinstance(event, Said):
                chat.say("Wait, one more thing.")
                chat.abort()

        room.on = stop
        chat.say("Tell me.")
        await chat.wait_idle()
    assert [event.status for event in room.told if isinstance(event, RunFinished)] == ["aborted"]
    assert [event.text for event in room.told if isinstance(event, Unsent)] == ["Wait, one more thing."]


async def test_nothing_changes_the_session_under_a_working_agent(tmp_path: Path) -> None:
    room = Room(tmp_path, ["Hello.", ToolCall("", "run_command", {"command": "sleep 30"})])
    async with room.open() as chat:
        chat.say("Hi.")
        await chat.wait_idle()
        chat.say("Sleep.")
        await room.hears("ToolStarted")
        for change in (chat.new, chat.undo, lambda: chat.fork(None), lambda: chat.switch(chat.record.id)):
            with pytest.raises(InvalidInput, match="The agent is working"):
                await change()
        with pytest.raises(InvalidInput, match="The agent is working"):
            chat.go_on()
        chat.abort()
        await chat.wait_idle()


async def test_p10_a_fork_goes_on_by_itself_and_its_source_is_untouched(tmp_path: Path) -> None:
    room = Room(tmp_path, ["One.", "Two.", "Another."])
    async with room.open() as chat:
        for text in ("First?", "Second?"):
            chat.say(text)
            await chat.wait_idle()
        source = chat.record.id
        first = (await room.sessions.events(source, kind="message"))[0]
        record = await chat.fork(first.id)
        chat.go_on()
        await chat.wait_idle()
        assert await room.texts() == ["First?", "Another."]
        assert any(event == SessionChanged(record.id, "forked", source) for event in room.told)
        await chat.switch(source)
        assert await room.texts() == ["First?", "One.", "Second?", "Two."]


async def test_undo_restores_the_context_byte_for_byte(tmp_path: Path) -> None:
    room = Room(tmp_path, [*([read_long()] * 6), "All is read."], window=40_000)
    async with room.open() as chat:
        chat.say("Read it.")
        await chat.wait_idle()
        before = await room.sessions.context(chat.record.id)
        await chat.compact()
        assert len(await room.sessions.context(chat.record.id)) < len(before)
        await chat.undo()
        assert list(await room.sessions.context(chat.record.id)) == list(before)


async def test_the_state_says_where_it_stands(tmp_path: Path) -> None:
    room = Room(tmp_path, [*([read_long()] * 6), "All is read."], window=40_000)
    async with room.open() as chat:
        chat.use(auto=False)
        chat.say("Read it.")
        await chat.wait_idle()
        await chat.compact()
        state = await chat.state()
    assert (state.activity, state.auto, state.window, state.known, state.round) == ("idle", False, 40_000, "unknown", 1)
    assert 0 < state.tokens < 40_000
    completed = next(event for event in room.told if isinstance(event, CompactionCompleted))
    assert completed.origin == "manual" and completed.tokens_after < completed.tokens_before
    boundary = next(event for event in room.told if isinstance(event, CompactionBoundary))
    assert "less accurate" in boundary.notice


async def test_leaving_in_the_middle_keeps_what_was_said(tmp_path: Path) -> None:
    room = Room(tmp_path, ScriptedAgentModel(["A very long answer indeed."], delay=0.02))
    async with room.open() as chat:
        chat.say("Tell me.")
        await room.hears("Said")
    texts = await room.texts()
    assert texts[0] == "Tell me." and texts[1].startswith("A very")
    assert not await room.sessions.verify(chat.record.id)
