"""Chat under concurrency: commands and prompts at the same time, and exceptions in jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from chat_harness import SUMMARY, ChatHarness, read_long

from holdfast import HoldfastError
from holdfast.agent.events import ErrorEvent, ReplyStored, RunFinished
from holdfast.errors import InvalidInput
from holdfast.hooks.events import CompactionCompleted, CompactionFailed
from holdfast.models import Failure, ScriptedAgentModel
from holdfast.models.calls import ModelCall

pytestmark = pytest.mark.anyio
WORK = [*([read_long()] * 6), "All is read."]


async def test_send_right_after_fork_goes_to_the_fork(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, ["One.", "Two.", "Three."])
    async with harness.open() as chat:
        chat.send("First?")
        await chat.wait_idle()
        source, first = chat.record.id, (await harness.sessions.events(chat.record.id, kind="message"))[0]
        async with anyio.create_task_group() as group:
            group.start_soon(chat.fork, first.id)
            await anyio.lowlevel.checkpoint()
            chat.send("Second?")
        await chat.wait_idle()
        assert chat.record.id != source
        assert await harness.texts() == ["First?", "Second?", "Two."]
        assert len(await harness.sessions.context(source)) == 2


async def test_compact_at_last_reply_does_not_restart_finished_run(tmp_path: Path) -> None:
    """(behaviour 22)"""
    harness = ChatHarness(tmp_path, [*WORK, "never"], window=40_000)
    async with harness.open() as chat:
        results: list[Any] = []

        async def compact() -> None:
            results.append(await chat.compact())

        async with anyio.create_task_group() as group:
            harness.on_event = lambda event: (
                group.start_soon(compact) if isinstance(event, ReplyStored) and event.text == "All is read." else None
            )
            chat.send("Read it.")
            await harness.wait_for_event("CompactionCompleted")
        await chat.wait_idle()
    assert not results[0].continued and len(harness.model.steps) == len(WORK)
    assert [event.status for event in harness.events if isinstance(event, RunFinished)] == ["done"]


async def test_second_compaction_is_refused_and_first_can_be_aborted(tmp_path: Path) -> None:
    begun, release = anyio.Event(), anyio.Event()

    class Slow(ScriptedAgentModel):
        async def __call__(self, call: ModelCall, on_delta: Any) -> Any:
            begun.set()
            await release.wait()
            raise AssertionError("it was stopped")

    harness = ChatHarness(tmp_path, Slow(list(WORK)), window=40_000)
    async with harness.open() as chat:
        chat.send("Read it.")
        await chat.wait_idle()
        async with anyio.create_task_group() as group:
            group.start_soon(chat.compact)
            await begun.wait()
            with pytest.raises(InvalidInput, match="already running"):
                await chat.compact()
            chat.abort()
        await chat.wait_idle()
    assert [event.outcome for event in harness.events if isinstance(event, CompactionFailed)] == ["aborted"]


async def test_l11_exception_in_compaction_does_not_end_the_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = ChatHarness(tmp_path, ["One.", "Two."])

    async def broken(*args: Any, **options: Any) -> Any:
        raise KeyError("a bug in a strategy")

    async with harness.open() as chat:
        chat.send("First?")
        await chat.wait_idle()
        monkeypatch.setattr(chat.sessions, "compact", broken)
        with pytest.raises(HoldfastError, match="a bug in a strategy"):
            await chat.compact()
        chat.send("Second?")
        await chat.wait_idle()
    assert (await harness.texts())[-1] == "Two."


async def test_exception_in_run_is_reported_and_chat_continues(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, ["One."])
    async with harness.open() as chat:
        prepare = chat.agent.keeper.prepare_step

        async def broken() -> Any:
            raise KeyError("a bug")

        chat.agent.keeper.prepare_step = broken  # type: ignore[assignment, method-assign]
        chat.send("First?")
        await chat.wait_idle()
        assert any(isinstance(event, ErrorEvent) and "a bug" in event.error for event in harness.events)
        chat.agent.keeper.prepare_step = prepare  # type: ignore[method-assign]
        chat.continue_run()
        await chat.wait_idle()
    assert (await harness.texts())[-1] == "One."


async def test_run_ending_during_compaction_is_reported_finished(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, ScriptedAgentModel(["word " * 30], pieces=30, answers=SUMMARY))
    async with harness.open() as chat:
        results: list[Any] = []

        async def compact() -> None:
            results.append(await chat.compact())

        async with anyio.create_task_group() as group:
            harness.on_event = lambda event: group.start_soon(compact) if isinstance(event, ReplyStored) else None
            chat.send("Speak.")
            await harness.wait_for_event("RunFinished")
        await chat.wait_idle()
    assert [event.status for event in harness.events if isinstance(event, RunFinished)] == ["done"]
    assert not results[0].continued


async def test_learned_window_is_kept_in_next_session(tmp_path: Path) -> None:
    too_long = Failure("overflow", "prompt is too long", window=9_000)
    harness = ChatHarness(tmp_path, [*([read_long()] * 4), too_long, "Done."], window=None)
    async with harness.open() as chat:
        chat.send("Read it.")
        await chat.wait_idle()
        assert (await chat.state()).window == 9_000
        await chat.fork(None)
        assert (await chat.state()).window == 9_000


async def test_state_round_follows_compact_and_undo(tmp_path: Path) -> None:
    harness = ChatHarness(tmp_path, list(WORK), window=40_000)
    async with harness.open() as chat:
        chat.send("Read it.")
        await chat.wait_idle()
        await chat.compact()
        assert (await chat.state()).round == 1
        await chat.undo()
        assert (await chat.state()).round == 0
    assert sum(isinstance(event, CompactionCompleted) for event in harness.events) == 1
