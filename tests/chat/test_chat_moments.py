"""A conversation at its awkward moments: commands and prompts that come at the same time, and things that break."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from chats import SUMMARY, Room, read_long

from holdfast import Failure, HoldfastError, InvalidInput
from holdfast.agent.events import Problem, Replied, RunFinished
from holdfast.calls import ModelCall
from holdfast.hooks.events import CompactionCompleted, CompactionFailed
from holdfast.models import ScriptedAgentModel

pytestmark = pytest.mark.anyio
WORK = [*([read_long()] * 6), "All is read."]


async def test_what_is_said_right_after_a_branch_is_said_in_the_branch(tmp_path: Path) -> None:
    room = Room(tmp_path, ["One.", "Two.", "Three."])
    async with room.open() as chat:
        chat.say("First?")
        await chat.wait_idle()
        source, first = chat.record.id, (await room.sessions.events(chat.record.id, kind="message"))[0]
        async with anyio.create_task_group() as group:
            group.start_soon(chat.fork, first.id)
            await anyio.lowlevel.checkpoint()
            chat.say("Second?")
        await chat.wait_idle()
        assert chat.record.id != source
        assert await room.texts() == ["First?", "Second?", "Two."]
        assert len(await room.sessions.context(source)) == 2


async def test_a_finished_agent_is_not_woken_by_a_compaction_that_meets_its_last_one(tmp_path: Path) -> None:
    """(behaviour 22)"""
    room = Room(tmp_path, [*WORK, "never"], window=40_000)
    async with room.open() as chat:
        results: list[Any] = []

        async def compact() -> None:
            results.append(await chat.compact())

        async with anyio.create_task_group() as group:
            room.on = lambda event: (
                group.start_soon(compact) if isinstance(event, Replied) and event.text == "All is read." else None
            )
            chat.say("Read it.")
            await room.hears("CompactionCompleted")
        await chat.wait_idle()
    assert not results[0].continued and len(room.model.steps) == len(WORK)
    assert [event.status for event in room.told if isinstance(event, RunFinished)] == ["done"]


async def test_a_second_compaction_is_refused_and_the_first_can_still_be_stopped(tmp_path: Path) -> None:
    begun, release = anyio.Event(), anyio.Event()

    class Slow(ScriptedAgentModel):
        async def __call__(self, call: ModelCall, on_delta: Any) -> Any:
            begun.set()
            await release.wait()
            raise AssertionError("it was stopped")

    room = Room(tmp_path, Slow(list(WORK)), window=40_000)
    async with room.open() as chat:
        chat.say("Read it.")
        await chat.wait_idle()
        async with anyio.create_task_group() as group:
            group.start_soon(chat.compact)
            await begun.wait()
            with pytest.raises(InvalidInput, match="running already"):
                await chat.compact()
            chat.abort()
        await chat.wait_idle()
    assert [event.outcome for event in room.told if isinstance(event, CompactionFailed)] == ["aborted"]


async def test_l11_a_bug_in_a_compaction_ends_nothing_but_itself(tmp_path: Path) -> None:
    room = Room(tmp_path, ["One.", "Two."])

    async def broken(*args: Any, **options: Any) -> Any:
        raise KeyError("a bug in a strategy")

    async with room.open() as chat:
        chat.say("First?")
        await chat.wait_idle()
        room.sessions.compact = broken  # type: ignore[method-assign]
        with pytest.raises(HoldfastError, match="a bug in a strategy"):
            await chat.compact()
        chat.say("Second?")
        await chat.wait_idle()
    assert (await room.texts())[-1] == "Two."


async def test_a_bug_in_a_run_is_told_and_the_conversation_goes_on(tmp_path: Path) -> None:
    room = Room(tmp_path, ["One."])
    async with room.open() as chat:
        prepare = chat.agent.keeper.prepare_step

        async def broken() -> Any:
            raise KeyError("a bug")

        chat.agent.keeper.prepare_step = broken  # type: ignore[assignment, method-assign]
        chat.say("First?")
        await chat.wait_idle()
        assert any(isinstance(event, Problem) and "a bug" in event.error for event in room.told)
        chat.agent.keeper.prepare_step = prepare  # type: ignore[method-assign]
        chat.go_on()
        await chat.wait_idle()
    assert (await room.texts())[-1] == "One."


async def test_a_run_that_ends_while_it_is_stopped_for_a_compaction_is_told_to_have_ended(tmp_path: Path) -> None:
    room = Room(tmp_path, ScriptedAgentModel(["word " * 30], pieces=30, answers=SUMMARY))
    async with room.open() as chat:
        results: list[Any] = []

        async def compact() -> None:
            results.append(await chat.compact())

        async with anyio.create_task_group() as group:
            room.on = lambda event: group.start_soon(compact) if isinstance(event, Replied) else None
            chat.say("Speak.")
            await room.hears("RunFinished")
        await chat.wait_idle()
    assert [event.status for event in room.told if isinstance(event, RunFinished)] == ["done"]
    assert not results[0].continued


async def test_a_window_that_was_learned_stays_known_in_the_next_session(tmp_path: Path) -> None:
    too_long = Failure("overflow", "prompt is too long", window=9_000)
    room = Room(tmp_path, [*([read_long()] * 4), too_long, "Done."], window=None)
    async with room.open() as chat:
        chat.say("Read it.")
        await chat.wait_idle()
        assert (await chat.state()).window == 9_000
        await chat.fork(None)
        assert (await chat.state()).window == 9_000


async def test_the_round_is_that_of_the_context(tmp_path: Path) -> None:
    room = Room(tmp_path, list(WORK), window=40_000)
    async with room.open() as chat:
        chat.say("Read it.")
        await chat.wait_idle()
        await chat.compact()
        assert (await chat.state()).round == 1
        await chat.undo()
        assert (await chat.state()).round == 0
    assert sum(isinstance(event, CompactionCompleted) for event in room.told) == 1
