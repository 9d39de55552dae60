"""What a checkpoint edits or hides after its boundary stays so under the checkpoints that replace it (P22, H6)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import MemoryStore, PruneToolResults, SessionService, SlidingWindow
from holdfast.strategies.pruning import CLEARED
from holdfast.triggers import always

pytestmark = pytest.mark.anyio
PRUNE = PruneToolResults(protect=0, minimum=0)


@pytest.fixture
async def service() -> AsyncIterator[SessionService]:
    async with SessionService(MemoryStore()) as service:
        await service.create(id="s", format="openai-chat")
        yield service


def calls(id: str) -> dict[str, Any]:
    function = {"name": "read", "arguments": "{}"}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


async def append_rounds(service: SessionService, first: int, count: int) -> None:
    for number in range(first, first + count):
        await service.append("s", {"role": "user", "content": f"Read berth {number}."})
        await service.append("s", calls(f"c{number}"))
        await service.append("s", {"role": "tool", "tool_call_id": f"c{number}", "content": f"depth {number}, " * 50})
        await service.append("s", {"role": "assistant", "content": f"Berth {number} is read."})


async def shown(service: SessionService) -> str:
    context = await service.context("s")
    fresh = await SessionService(service.store).context("s")
    assert context.messages == fresh.messages and await service.verify("s") == []
    return str(context.messages)


async def test_result_that_was_cleared_stays_cleared_in_what_later_compactions_keep(service: SessionService) -> None:
    await append_rounds(service, 0, 3)
    await service.compact("s", always, PRUNE)
    assert (await shown(service)).count(CLEARED) == 3
    await append_rounds(service, 3, 1)
    await service.compact("s", always, SlidingWindow(8))
    text = await shown(service)
    assert "depth 2," not in text and "depth 3," in text and text.count(CLEARED) == 1


async def test_note_that_was_moved_to_the_front_is_not_shown_in_its_old_place_again(service: SessionService) -> None:
    await append_rounds(service, 0, 3)
    await service.append("s", {"role": "user", "content": "The tide table is lost."}, synthetic=True)
    await append_rounds(service, 3, 1)
    await service.compact("s", always, SlidingWindow(8))
    assert (await shown(service)).count("The tide table is lost.") == 1
    await service.compact("s", always, PRUNE)
    text = await shown(service)
    assert CLEARED in text and text.count("The tide table is lost.") == 1
