"""While a session is being compacted, whoever wants to speak can wait for it (W13)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from holdfast import (
    Abort,
    CompactionResult,
    EventCount,
    KeepLast,
    Outcome,
    ScriptedModel,
    SessionService,
    always,
)
from holdfast.errors import InvalidInput, UnknownSession
from holdfast.hooks import Before, Hooks, Veto
from hooked import SAID, SUMMARY, Heard, Slow, blocking_talk, message, remember_much, talk

pytestmark = pytest.mark.anyio
FULL = EventCount(8)


async def test_it_waits_for_a_compaction_to_end() -> None:
    service, model, seen = await talk(), Slow(), []

    async def chat() -> None:
        seen.append(await service.ready("s"))
        seen.append(len(await service.context("s")))

    assert await service.ready("s") and not service.compacting("s")
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", always, SUMMARY, summarizer=model))
        await model.begun.wait()
        assert service.compacting("s")
        group.start_soon(chat)
        await anyio.wait_all_tasks_blocked()
        assert seen == []
        model.goes_on.set()
    assert seen == [True, 5], "and then it sees the compacted context"
    assert not service.compacting("s")


async def test_it_waits_no_longer_than_it_was_told() -> None:
    service, model = await talk(), Slow()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", always, SUMMARY, summarizer=model))
        await model.begun.wait()
        assert await service.ready("s", timeout=0.01) is False
        assert service.compacting("s")
        model.goes_on.set()


async def test_other_sessions_and_other_lanes_are_ready() -> None:
    service, model = await talk(), Slow()
    await service.create(id="t")
    await service.append("s", message("u7"), lane="tests")
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", always, SUMMARY, summarizer=model))
        await model.begun.wait()
        assert await service.ready("t", 1)
        assert await service.ready("s", 1, lane="tests")
        assert not service.compacting("s", "tests")
        model.goes_on.set()


def stops(scope: anyio.CancelScope, abort: Abort) -> dict[str, Callable[[], object]]:
    return {"an abort": abort, "a cancelled task": scope.cancel}


@pytest.mark.parametrize("how", ["an abort", "a cancelled task"])
async def test_one_that_dies_keeps_nobody_waiting(how: str) -> None:
    service, model, abort, ready = await talk(), Slow(), Abort(), []

    async def chat() -> None:
        ready.append(await service.ready("s"))

    async with anyio.create_task_group() as outer, anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", always, SUMMARY, summarizer=model, abort=abort))
        await model.begun.wait()
        outer.start_soon(chat)
        await anyio.wait_all_tasks_blocked()
        stops(group.cancel_scope, abort)[how]()
    assert ready == [True]
    assert not service.compacting("s")


async def test_one_that_raises_keeps_nobody_waiting() -> None:
    service = await talk()
    with pytest.raises(ZeroDivisionError):
        await service.compact("s", always, lambda request: 1 / 0)  # type: ignore[arg-type, return-value]
    assert await service.ready("s") and not service.compacting("s")


async def test_blending_the_memory_is_waited_for_too() -> None:
    service, model = await talk(), Slow("All that was remembered, in short.")
    service.model = None
    await remember_much(service)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.blend_memory("s", summarizer=model))
        await model.begun.wait()
        assert service.compacting("s")
        model.goes_on.set()
    assert await service.ready("s")


async def test_a_hook_does_not_wait_for_the_compaction_that_it_is_a_part_of() -> None:
    async def asks(before: Before) -> Veto:
        return Veto(f"ready: {await service.ready('s')}")

    service = await talk(Hooks(before=asks))
    assert (await service.compact("s")).why == "ready: False"


async def test_a_wrong_id_or_time_is_an_error() -> None:
    service = await talk()
    with pytest.raises(UnknownSession):
        await service.ready("nobody")
    for timeout in (0, -1, "soon"):
        with pytest.raises(InvalidInput, match="timeout must be a number of seconds above 0"):
            await service.ready("s", timeout)  # type: ignore[arg-type]


def test_blocking_callers_wait_too() -> None:
    begun, goes_on, ready = threading.Event(), threading.Event(), []

    def slow(text: str) -> str:
        begun.set()
        assert goes_on.wait(20)
        return SAID

    with blocking_talk(summarizer=slow) as service:
        compacts = threading.Thread(target=lambda: service.compact("s", always, SUMMARY))
        compacts.start()
        assert begun.wait(20)
        assert service.compacting("s") and not service.ready("s", 0.01)
        chats = threading.Thread(target=lambda: ready.append(service.ready("s")))
        chats.start()
        goes_on.set()
        for thread in (compacts, chats):
            thread.join(20)
        assert ready == [True] and not service.compacting("s")


# -- two at once ----------------------------------------------------------------------------------------------------


async def together(service: SessionService, trigger: Any, model: Any, **second: Any) -> list[CompactionResult]:
    """Two compactions, the second of which begins while the first one's model writes."""
    results: list[CompactionResult] = []

    async def one(**options: Any) -> None:
        results.append(await service.compact("s", trigger, SUMMARY, "rebase", **options))

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: one(summarizer=model))
        await model.begun.wait()
        group.start_soon(lambda: one(**second))
        group.start_soon(lambda: one(**second))
        await anyio.wait_all_tasks_blocked()
        model.goes_on.set()
    return results


async def test_an_automatic_one_waits_for_the_one_that_runs_and_asks_its_trigger_again() -> None:
    """Nobody pays for two summaries of the same."""
    service, model = await talk(), Slow()
    results = await together(service, FULL, model)
    assert [result.outcome for result in results] == [Outcome.COMPACTED, Outcome.NOT_NEEDED, Outcome.NOT_NEEDED]
    assert len(model.calls) == 1
    assert isinstance(service.model, ScriptedModel) and service.model.calls == []


async def test_one_that_waits_can_be_aborted() -> None:
    service, model, abort = await talk(), Slow(" "), Abort()
    results: list[CompactionResult] = []

    async def second() -> None:
        results.append(await service.compact("s", lambda request: True, KeepLast(2), abort=abort))

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", always, SUMMARY, summarizer=model))
        await model.begun.wait()
        group.start_soon(second)
        await anyio.wait_all_tasks_blocked()
        assert results == []
        abort()
        await anyio.wait_all_tasks_blocked()
        assert [result.outcome for result in results] == [Outcome.ABORTED], "it does not wait any longer"
        model.goes_on.set()


async def test_a_person_who_asks_does_not_wait_and_the_faster_one_wins() -> None:
    """S3."""
    service, model = await talk(), Slow()
    results = await together(service, always, model, summarizer=ScriptedModel(SAID, repeat=True))
    assert sorted(result.outcome for result in results) == ["compacted", "conflict", "conflict"]
    assert len(await service.events("s", kind="compaction")) == 1


async def test_an_automatic_one_inside_a_hook_of_another_does_not_wait_for_itself() -> None:
    """Nor is that hook asked about the one that it started itself."""
    inner: list[CompactionResult] = []
    heard = Heard()

    async def compacts(before: Before) -> None:
        inner.append(await service.compact("s", FULL, KeepLast(2)))

    service = await talk(Hooks(before=compacts, listen=heard))
    outer = await service.compact("s", FULL, SUMMARY, "rebase")
    assert [result.outcome for result in (*inner, outer)] == [Outcome.COMPACTED, Outcome.CONFLICT]
    assert heard.names == ["Started", "Started", "Completed", "Boundary", "Skipped"]
    assert heard[0].compaction == heard[-1].compaction != heard[1].compaction
