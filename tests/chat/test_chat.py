"""Chat: prompts in order, input buffered during a compaction, and session changes (P14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chat_harness import ChatHarness, read_long

from holdfast.agent.events import Queued, RunFinished, SessionChanged, TextDelta, ToolStarted, Unsent
from holdfast.errors import InvalidInput
from holdfast.hooks.events import CompactionBoundary, CompactionCompleted, CompactionFailed, CompactionStarted
from holdfast.messages import ToolCall
from holdfast.models import Failure, ScriptedAgentModel
from holdfast.models.calls import ModelCall
from holdfast.sessions.continuation import CONTINUE_PROMPT

pytestmark = pytest.mark.anyio


async def test_prompts_are_answered_in_order(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, ["One.", "Two.", "Three."])
    async with harness.open() as chat:
        chat.send("First?")
        await chat.wait_idle()
        chat.send("Second?")
        await chat.wait_idle()
    assert await harness.texts() == ["First?", "One.", "Second?", "Two."]


async def test_send_while_agent_runs_steers_it_before_next_step(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, [read_long(), "As you say."])
    async with harness.open() as chat:
        harness.on_event = lambda event: chat.send("Only the deep ones.") if isinstance(event, ToolStarted) else None
        chat.send("List the berths.")
        await chat.wait_idle()
    texts = await harness.texts()
    assert [texts[0], texts[3], texts[4]] == ["List the berths.", "Only the deep ones.", "As you say."]


async def test_p14_compact_during_run_keeps_required_order(tmp_path: Path) -> None:
    """Close input, abort the step, wait until idle, compact, rebuild, reopen input, notify, continue."""
    order: list[str] = []
    harness = ChatHarness(tmp_path, [*([read_long()] * 9), "All is read."], window=40_000)
    chat = harness.chat

    def watch(event: Any) -> None:
        name = type(event).__name__
        if name in ("CompactionStarted", "CompactionCompleted", "CompactionBoundary", "RunFinished", "RunStarted"):
            order.append(f"{name} running={chat.agent.running} taking={chat._input_buffer.is_open}")
        if isinstance(event, CompactionStarted):
            chat.send("Typed meanwhile.")

    async with harness.open():
        harness.on_event = watch
        chat.send("Read it nine times.")
        for _ in range(7):
            await harness.wait_for_event("ToolFinished")
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
    ], "no event reports the abort, because the run continues"
    assert [event.text for event in harness.events if isinstance(event, Queued)] == ["Typed meanwhile."]
    texts = await harness.texts()
    assert texts[-1] == "All is read." and "Typed meanwhile." in texts
    assert "mind the depths" in harness.model.calls[0].prompt


async def test_p14_compact_after_finished_run_does_not_continue_it(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, [*([read_long()] * 6), "All is read.", "never"], window=40_000)
    async with harness.open() as chat:
        chat.send("Read it.")
        await chat.wait_idle()
        compacted = await chat.compact()
        await chat.wait_idle()
    assert compacted.outcome == "compacted" and not compacted.continued
    assert len(harness.model.steps) == 7
    assert CONTINUE_PROMPT not in "".join(await harness.texts())


async def test_p14_input_during_compaction_is_sent_after_it(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, [*([read_long()] * 6), "All is read.", "Two.", "Three."], window=40_000)
    async with harness.open() as chat:
        chat.send("Read it.")
        await chat.wait_idle()

        def type_two(event: Any) -> None:
            if isinstance(event, CompactionStarted):
                chat.send("Second?")
                chat.send("Third?")

        harness.on_event = type_two
        await chat.compact()
        await chat.wait_idle()
    assert harness.event_names("Queued", "CompactionCompleted", "RunStarted")[1:] == [
        "Queued", "Queued", "CompactionCompleted", "RunStarted", "RunStarted",
    ]  # fmt: skip
    assert (await harness.texts())[-4:] == ["Second?", "Two.", "Third?", "Three."]


async def test_input_during_automatic_compaction_is_in_next_request(tmp_path: Path) -> None:
    """(behaviour 11)"""
    harness = ChatHarness(tmp_path, [*([read_long()] * 9), "Done."], window=20_000)
    async with harness.open() as chat:
        harness.on_event = lambda event: chat.send("And the lights.") if isinstance(event, CompactionStarted) else None
        chat.send("Read it all.")
        await chat.wait_idle()
    place = next(n for n, step in enumerate(harness.model.steps) if "And the lights." in str(step.messages))
    assert harness.model.steps[place].messages[-1]["content"] == "And the lights."
    assert "And the lights." not in str(harness.model.steps[place - 1].messages)


async def test_compact_aborted_changes_nothing(tmp_path: Path) -> None:
    """(behaviour 12)"""

    def stop(call: ModelCall) -> str:
        harness.chat.abort()
        return "never read"

    model = ScriptedAgentModel([*([read_long()] * 6), "All is read."], answers=stop)
    harness = ChatHarness(tmp_path, model, window=40_000)
    async with harness.open() as chat:
        chat.send("Read it.")
        await chat.wait_idle()
        before = await harness.texts()
        compacted = await chat.compact()
        assert compacted.outcome == "aborted"
        assert await harness.texts() == before
        assert harness.event_names("CompactionStarted", "CompactionFailed", "CompactionCompleted") == [
            "CompactionStarted",
            "CompactionFailed",
        ]
        assert not await harness.sessions.events(chat.record.id, kind="compaction")


async def test_p9_compact_failure_is_reported_and_chat_continues(tmp_path: Path) -> None:
    model = ScriptedAgentModel(["Hello.", "Still here."], answers=Failure("auth", "no such key"))
    harness = ChatHarness(tmp_path, model, preset="pi")
    async with harness.open() as chat:
        chat.send("word " * 60_000)
        await chat.wait_idle()
        compacted = await chat.compact()
        assert compacted.outcome == "summary_failed" and "no such key" in compacted.why
        chat.send("Are you there?")
        await chat.wait_idle()
    assert (await harness.texts())[-1] == "Still here."
    assert any(isinstance(event, CompactionFailed) for event in harness.events)


async def test_abort_returns_undelivered_steering_as_unsent(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, ScriptedAgentModel(["A very long answer."], delay=0.02))
    async with harness.open() as chat:

        def stop(event: Any) -> None:
            if isinstance(event, TextDelta):
                chat.send("Wait, one more thing.")
                chat.abort()

        harness.on_event = stop
        chat.send("Tell me.")
        await chat.wait_idle()
    assert [event.status for event in harness.events if isinstance(event, RunFinished)] == ["aborted"]
    assert [event.text for event in harness.events if isinstance(event, Unsent)] == ["Wait, one more thing."]


async def test_session_changes_while_agent_runs_are_refused(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, ["Hello.", ToolCall("", "run_command", {"command": "sleep 30"})])
    async with harness.open() as chat:
        chat.send("Hi.")
        await chat.wait_idle()
        chat.send("Sleep.")
        await harness.wait_for_event("ToolStarted")
        for change in (chat.new, chat.undo, lambda: chat.fork(None), lambda: chat.switch(chat.record.id)):
            with pytest.raises(InvalidInput, match="The agent is working"):
                await change()
        with pytest.raises(InvalidInput, match="The agent is working"):
            chat.continue_run()
        chat.abort()
        await chat.wait_idle()


async def test_p10_fork_continues_and_source_is_unchanged(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, ["One.", "Two.", "Another."])
    async with harness.open() as chat:
        for text in ("First?", "Second?"):
            chat.send(text)
            await chat.wait_idle()
        source = chat.record.id
        first = (await harness.sessions.events(source, kind="message"))[0]
        record = await chat.fork(first.id)
        chat.continue_run()
        await chat.wait_idle()
        assert await harness.texts() == ["First?", "Another."]
        assert any(event == SessionChanged(record.id, "forked", source) for event in harness.events)
        await chat.switch(source)
        assert await harness.texts() == ["First?", "One.", "Second?", "Two."]


async def test_chat_undo_restores_context_exactly(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, [*([read_long()] * 6), "All is read."], window=40_000)
    async with harness.open() as chat:
        chat.send("Read it.")
        await chat.wait_idle()
        before = await harness.sessions.context(chat.record.id)
        await chat.compact()
        assert len(await harness.sessions.context(chat.record.id)) < len(before)
        await chat.undo()
        assert list(await harness.sessions.context(chat.record.id)) == list(before)


async def test_state_after_compaction_reports_round_and_tokens(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, [*([read_long()] * 6), "All is read."], window=40_000)
    async with harness.open() as chat:
        chat.configure(auto=False)
        chat.send("Read it.")
        await chat.wait_idle()
        await chat.compact()
        state = await chat.state()
    assert (state.activity, state.auto, state.window, state.known, state.round) == ("idle", False, 40_000, "unknown", 1)
    assert 0 < state.tokens < 40_000
    completed = next(event for event in harness.events if isinstance(event, CompactionCompleted))
    assert completed.origin == "manual" and completed.tokens_after < completed.tokens_before
    boundary = next(event for event in harness.events if isinstance(event, CompactionBoundary))
    assert "less accurate" in boundary.notice


async def test_chat_closed_during_reply_keeps_partial_reply(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, ScriptedAgentModel(["A very long answer indeed."], delay=0.02))
    async with harness.open() as chat:
        chat.send("Tell me.")
        await harness.wait_for_event(TextDelta.__name__)
    texts = await harness.texts()
    assert texts[0] == "Tell me." and texts[1].startswith("A very")
    assert not await harness.sessions.verify(chat.record.id)
