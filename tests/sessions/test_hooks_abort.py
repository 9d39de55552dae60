"""An abort ends hooks and strategy: nothing is written, and no fallback is tried (behaviours 12, 20)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from compaction_session import SUMMARY, EventRecorder, model_calls, never_answering, open_session
from holdfast import Abort, Outcome
from holdfast.context import Plan, Request, Skip
from holdfast.hooks import BeforeCompaction, Hooks, Veto
from holdfast.models.calls import ModelCall, Steps
from holdfast.stores import Log
from holdfast.triggers import always

pytestmark = pytest.mark.anyio


def hooks_that_abort(abort: Abort, folder: Path) -> dict[str, Any]:
    released = threading.Event()

    def blocking(before: BeforeCompaction) -> Veto:
        abort()
        released.wait(0.2)
        return Veto("too late")

    def asks(request: Request) -> Steps[Plan | Skip]:
        abort()
        yield (ModelCall("What was it about?"),)
        return request.plan.archive(10)

    return {
        "async": never_answering(abort),
        "blocking": blocking,
        "in its own strategy": lambda before: asks,
        "in a command": f"touch {folder}/begun; sleep 20; touch {folder}/ended",
    }


@pytest.mark.parametrize("where", ["async", "blocking", "in its own strategy", "in a command"])
async def test_abort_during_a_hook_changes_nothing(store: Log, where: str, tmp_path: Path) -> None:
    abort, heard = Abort(), EventRecorder()
    hook = hooks_that_abort(abort, tmp_path)[where]
    service = await open_session(Hooks(before=hook, listen=heard), store=store)
    version = (await service.get("s")).version
    async with anyio.create_task_group() as group:
        if where == "in a command":
            group.start_soon(_abort_when_created, abort, tmp_path / "begun")
        result = await service.compact("s", always, SUMMARY, abort=abort)
    assert (result.outcome, result.archived, result.fallback) == (Outcome.ABORTED, [], "")
    assert result.remarks == ()
    assert model_calls(service) == [], "the default strategy is not tried instead"
    assert heard.names == ["Started", "Failed"]
    assert (await service.get("s")).version == version
    assert not (tmp_path / "ended").exists()
    assert not service.compacting("s")
    await service.close()


async def _abort_when_created(abort: Abort, path: Path) -> None:
    while not await anyio.Path(path).exists():  # noqa: ASYNC110 - files send no event
        await anyio.sleep(0.005)
    abort()


async def test_abort_before_the_hooks_calls_none() -> None:
    abort, asked = Abort(), []

    async def record(before: BeforeCompaction) -> None:
        await checkpoint()
        asked.append(before)

    abort()
    service = await open_session(Hooks(before=record))
    result = await service.compact("s", always, SUMMARY, abort=abort)
    assert (result.outcome, asked, model_calls(service)) == (Outcome.ABORTED, [], [])


async def test_abort_during_the_strategy_emits_failed_and_calls_no_after_hook(store: Log) -> None:
    abort, heard, calls = Abort(), EventRecorder(), []
    hooks = Hooks(listen=heard, after=lambda *given: calls.append(given), session_start=calls.append)
    service = await open_session(hooks, store=store)
    version = (await service.get("s")).version
    result = await service.compact("s", always, SUMMARY, summarizer=never_answering(abort), abort=abort)
    assert (result.outcome, calls) == (Outcome.ABORTED, [])
    assert heard.names == ["Started", "Failed"]
    assert (await service.get("s")).version == version
    await service.close()
