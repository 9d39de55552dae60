"""Many tasks of one process on one session: each sees its acknowledged events once (S3, H1)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast import MemoryStore, Outcome, SessionService, SlidingWindow, open_store
from holdfast.triggers import always
from stress.two_writers import store_address
from stress.writer import SESSION, complaints

pytestmark = pytest.mark.anyio

TASKS, STEPS = 8, 12


@pytest.mark.parametrize("compacting", [False, True])
@pytest.mark.parametrize("kind", ["memory", "sqlite", "jsonl"])
async def test_session_concurrent_tasks_see_own_appends_once(kind: str, compacting: bool, tmp_path: Path) -> None:
    store = MemoryStore() if kind == "memory" else open_store(store_address(kind, tmp_path))
    async with SessionService(store, estimator="chars/4") as service:
        other = SessionService(store, estimator="chars/4")
        await service.create(id=SESSION, format="openai-chat")
        services = [other, *[service] * (TASKS - 1)]
        await asyncio.gather(*(work(s, number, compacting) for number, s in enumerate(services)))
        assert await service.verify(SESSION) == []
        assert await other.verify(SESSION) == []
        assert len(await service.events(SESSION, kind="message")) == TASKS * STEPS * 2


async def work(service: SessionService, number: int, compacting: bool) -> None:
    for step in range(STEPS):
        name = f"{number}-{step}"
        await service.append(SESSION, {"role": "user", "content": f"{name} asks"})
        await service.append(SESSION, {"role": "assistant", "content": f"{name} says"})
        if compacting and step % 3 == number % 3:
            result = await service.compact(SESSION, always, SlidingWindow(9), "rebase" if step % 2 else "skip")
            assert result.outcome in (Outcome.COMPACTED, Outcome.CONFLICT, Outcome.NOTHING_TO_COMPACT)
            assert complaints(list(result.messages)) == []
        context = await service.context(SESSION)
        assert complaints(context.messages) == []
        if not compacting:
            assert {"role": "assistant", "content": f"{name} says"} in context.messages
