"""An abort ends hooks and strategy alike: no artefact is left, and nothing is tried instead (behaviours 12, 20)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holdfast import Abort, Outcome, always
from holdfast.calls import ModelCall, Steps
from holdfast.hooks import Before, Hooks, Veto
from holdfast.stores import Log
from holdfast.view import Plan, Request, Skip
from hooked import SUMMARY, Heard, calls, stopping, talk

pytestmark = pytest.mark.anyio


def hooks_that_abort(abort: Abort, folder: Path) -> dict[str, Any]:
    released = threading.Event()

    def blocks(before: Before) -> Veto:
        abort()
        released.wait(0.2)
        return Veto("said too late")

    def asks(request: Request) -> Steps[Plan | Skip]:
        abort()
        yield (ModelCall("What was it about?"),)
        return Plan(10)

    return {
        "async": stopping(abort),
        "blocking": blocks,
        "in its own strategy": lambda before: asks,
        "in a command": f"touch {folder}/begun; sleep 20; touch {folder}/ended",
    }


@pytest.mark.parametrize("where", ["async", "blocking", "in its own strategy", "in a command"])
async def test_an_abort_during_a_hook_leaves_nothing(store: Log, where: str, tmp_path: Path) -> None:
    abort, heard = Abort(), Heard()
    hook = hooks_that_abort(abort, tmp_path)[where]
    service = await talk(Hooks(before=hook, listen=heard), store=store)
    version = (await service.get("s")).version
    async with anyio.create_task_group() as group:
        if where == "in a command":
            group.start_soon(_abort_when_there, abort, tmp_path / "begun")
        result = await service.compact("s", always, SUMMARY, abort=abort)
    assert (result.outcome, result.archived, result.fallback) == (Outcome.ABORTED, [], "")
    assert result.remarks == ()
    assert calls(service) == [], "the ordinary strategy is not tried instead"
    assert heard.names == ["Started", "Failed"]
    assert (await service.get("s")).version == version
    assert not (tmp_path / "ended").exists()
    assert not service.compacting("s")
    await service.close()


async def _abort_when_there(abort: Abort, path: Path) -> None:
    while not await anyio.Path(path).exists():  # noqa: ASYNC110 - a file tells nobody that it is there
        await anyio.sleep(0.005)
    abort()


async def test_an_abort_before_the_hooks_asks_none_of_them() -> None:
    abort, asked = Abort(), []

    async def notes(before: Before) -> None:
        await checkpoint()
        asked.append(before)

    abort()
    service = await talk(Hooks(before=notes))
    result = await service.compact("s", always, SUMMARY, abort=abort)
    assert (result.outcome, asked, calls(service)) == (Outcome.ABORTED, [], [])


async def test_an_abort_during_the_strategy_is_told_and_asks_nobody_after(store: Log) -> None:
    abort, heard, told = Abort(), Heard(), []
    hooks = Hooks(listen=heard, after=lambda *given: told.append(given), session_start=told.append)
    service = await talk(hooks, store=store)
    version = (await service.get("s")).version
    result = await service.compact("s", always, SUMMARY, summarizer=stopping(abort), abort=abort)
    assert (result.outcome, told) == (Outcome.ABORTED, [])
    assert heard.names == ["Started", "Failed"]
    assert (await service.get("s")).version == version
    await service.close()
