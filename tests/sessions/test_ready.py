"""`ready()` waits for a running compaction; concurrent compactions of one session (W13)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from compaction_session import (
    SUMMARY,
    SUMMARY_TEXT,
    BlockedModel,
    EventRecorder,
    fill_memory,
    make_message,
    open_blocking_session,
    open_session,
)
from holdfast import Abort, CompactionResult, Outcome, SessionService
from holdfast.errors import InvalidInput, UnknownSession
from holdfast.hooks import BeforeCompaction, Hooks, Veto
from holdfast.models import ScriptedModel
from holdfast.strategies import KeepLast
from holdfast.triggers import EventCount, always

pytestmark = pytest.mark.anyio
FULL = EventCount(8)


async def test_ready_waits_for_a_compaction() -> None:
    service, model, seen = await open_session(), BlockedModel(), []

    async def chat() -> None:
        seen.append(await service.ready("s"))
        seen.append(len(await service.context("s")))

    assert await service.ready("s") and not service.compacting("s")
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", always, SUMMARY, summarizer=model))
        await model.started.wait()
        assert service.compacting("s")
        group.start_soon(chat)
        await anyio.wait_all_tasks_blocked()
        assert seen == []
        model.release.set()
    assert seen == [True, 5], "the context is compacted"
    assert not service.compacting("s")


async def test_ready_respects_its_timeout() -> None:
    service, model = await open_session(), BlockedModel()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", always, SUMMARY, summarizer=model))
        await model.started.wait()
        assert await service.ready("s", timeout=0.01) is False
        assert service.compacting("s")
        model.release.set()


async def test_ready_ignores_other_sessions_and_lanes() -> None:
    service, model = await open_session(), BlockedModel()
    await service.create(id="t")
    await service.append("s", make_message("u7"), lane="tests")
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", always, SUMMARY, summarizer=model))
        await model.started.wait()
        assert await service.ready("t", 60)
        assert await service.ready("s", 60, lane="tests")
        assert not service.compacting("s", "tests")
        model.release.set()


def stop_functions(scope: anyio.CancelScope, abort: Abort) -> dict[str, Callable[[], object]]:
    return {"an abort": abort, "a cancelled task": scope.cancel}


@pytest.mark.parametrize("how", ["an abort", "a cancelled task"])
async def test_ready_returns_after_abort_or_cancel(how: str) -> None:
    service, model, abort, ready = await open_session(), BlockedModel(), Abort(), []

    async def chat() -> None:
        ready.append(await service.ready("s"))

    async with anyio.create_task_group() as outer, anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", always, SUMMARY, summarizer=model, abort=abort))
        await model.started.wait()
        outer.start_soon(chat)
        await anyio.wait_all_tasks_blocked()
        stop_functions(group.cancel_scope, abort)[how]()
    assert ready == [True]
    assert not service.compacting("s")


async def test_ready_returns_after_an_exception() -> None:
    service = await open_session()
    result = await service.compact("s", always, lambda request: 1 / 0)  # type: ignore[arg-type, return-value]
    assert result.outcome is Outcome.SUMMARY_FAILED
    assert await service.ready("s") and not service.compacting("s")


async def test_ready_waits_for_memory_blending() -> None:
    service, model = await open_session(), BlockedModel("All that was remembered, in short.")
    service.model = None
    await fill_memory(service)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.blend_memory("s", summarizer=model))
        await model.started.wait()
        assert service.compacting("s")
        model.release.set()
    assert await service.ready("s")


async def test_ready_inside_a_hook_does_not_wait_for_its_own_compaction() -> None:
    async def check_ready(before: BeforeCompaction) -> Veto:
        return Veto(f"ready: {await service.ready('s')}")

    service = await open_session(Hooks(before=check_ready))
    assert (await service.compact("s")).why == "ready: False"


async def test_ready_with_invalid_id_or_timeout_raises() -> None:
    service = await open_session()
    with pytest.raises(UnknownSession):
        await service.ready("nobody")
    for timeout in (0, -1, "soon"):
        with pytest.raises(InvalidInput, match="timeout must be a number of seconds above 0"):
            await service.ready("s", timeout)  # type: ignore[arg-type]


def test_ready_blocking() -> None:
    started, release, ready = threading.Event(), threading.Event(), []

    def slow(text: str) -> str:
        started.set()
        assert release.wait(20)
        return SUMMARY_TEXT

    with open_blocking_session(summarizer=slow) as service:
        compacts = threading.Thread(target=lambda: service.compact("s", always, SUMMARY))
        compacts.start()
        assert started.wait(20)
        assert service.compacting("s") and not service.ready("s", 0.01)
        chats = threading.Thread(target=lambda: ready.append(service.ready("s")))
        chats.start()
        release.set()
        for thread in (compacts, chats):
            thread.join(20)
        assert ready == [True] and not service.compacting("s")


# -- concurrency ----------------------------------------------------------------------------------------------------


async def together(service: SessionService, trigger: Any, model: Any, **second: Any) -> list[CompactionResult]:
    """Runs three compactions; the others start while the model of the first writes."""
    results: list[CompactionResult] = []

    async def one(**options: Any) -> None:
        results.append(await service.compact("s", trigger, SUMMARY, "rebase", **options))

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: one(summarizer=model))
        await model.started.wait()
        group.start_soon(lambda: one(**second))
        group.start_soon(lambda: one(**second))
        await anyio.wait_all_tasks_blocked()
        model.release.set()
    return results


async def test_automatic_compaction_waits_and_checks_its_trigger_again() -> None:
    """Only one summary is written."""
    service, model = await open_session(), BlockedModel()
    results = await together(service, FULL, model)
    assert [result.outcome for result in results] == [Outcome.COMPACTED, Outcome.NOT_NEEDED, Outcome.NOT_NEEDED]
    assert len(model.calls) == 1
    assert isinstance(service.model, ScriptedModel) and service.model.calls == []


async def test_waiting_compaction_can_be_aborted() -> None:
    service, model, abort = await open_session(), BlockedModel(" "), Abort()
    results: list[CompactionResult] = []

    async def second() -> None:
        results.append(await service.compact("s", lambda request: True, KeepLast(2), abort=abort))

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: service.compact("s", always, SUMMARY, summarizer=model))
        await model.started.wait()
        group.start_soon(second)
        await anyio.wait_all_tasks_blocked()
        assert results == []
        abort()
        await anyio.wait_all_tasks_blocked()
        assert [result.outcome for result in results] == [Outcome.ABORTED], "it stops waiting"
        model.release.set()


async def test_manual_compaction_does_not_wait_and_first_commit_wins() -> None:
    """S3."""
    service, model = await open_session(), BlockedModel()
    results = await together(service, always, model, summarizer=ScriptedModel(SUMMARY_TEXT, repeat=True))
    assert sorted(result.outcome for result in results) == ["compacted", "conflict", "conflict"]
    assert len(await service.events("s", kind="compaction")) == 1


async def test_automatic_compaction_inside_a_hook_does_not_wait_for_itself() -> None:
    """The hook is not called for the compaction that it started."""
    inner: list[CompactionResult] = []
    events = EventRecorder()

    async def compact_again(before: BeforeCompaction) -> None:
        inner.append(await service.compact("s", FULL, KeepLast(2)))

    service = await open_session(Hooks(before=compact_again, listen=events))
    outer = await service.compact("s", FULL, SUMMARY, "rebase")
    assert [result.outcome for result in (*inner, outer)] == [Outcome.COMPACTED, Outcome.CONFLICT]
    assert events.names == ["Started", "Started", "Completed", "Boundary", "Skipped"]
    assert events[0].compaction == events[-1].compaction != events[1].compaction
