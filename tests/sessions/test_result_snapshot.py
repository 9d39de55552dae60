"""A result describes the session as of its compaction, even when read later (S2)."""

from __future__ import annotations

import pytest

from holdfast import MemoryStore, SessionService, SlidingWindow, TokenCount
from holdfast.triggers import always

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("trigger", "outcome"), [(TokenCount(10**9), "not_needed"), (always, "compacted")])
async def test_result_read_later_describes_its_own_compaction(trigger: TokenCount, outcome: str) -> None:
    async with SessionService(MemoryStore()) as service:
        await service.create(id="s")
        await service.append("s", [{"role": "user", "content": f"ask {n}"} for n in range(5)])
        result = await service.compact("s", trigger, SlidingWindow(2))
        context = await service.context("s")
        call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        await service.append("s", {"role": "assistant", "content": None, "tool_calls": [call]})
        await service.compact("s", always, SlidingWindow(1))
        await service.append("s", {"role": "user", "content": "later"})
        assert result.outcome == outcome
        assert result.messages == context.messages
        assert len(result.kept) == len(context)
        assert len(result.kept) + len(result.archived) == 5
