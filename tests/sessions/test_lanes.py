"""Lanes: a sub-agent's branch inside a session (S16)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest

from holdfast import MemoryStore, PruneToolResults, SessionService, SlidingWindow, Summary, TokenCount
from holdfast.strategies import KeepLast
from holdfast.summaries import AsUser, FreeText
from holdfast.triggers import always

pytestmark = pytest.mark.anyio


@pytest.fixture
async def service() -> AsyncIterator[SessionService]:
    async with SessionService(MemoryStore()) as service:
        await service.create(id="s")
        yield service


async def append(service: SessionService, *names: str, lane: str | None = None) -> None:
    for name in names:
        role = "user" if name[0] in "uq" else "assistant"
        await service.append("s", {"role": role, "content": name}, lane, id=name)


async def visible(service: SessionService, lane: str | None = None) -> list[str]:
    return [str(message["content"]).partition("\n")[0] for message in await service.context("s", lane)]


async def test_lane_is_not_visible_in_the_root(service: SessionService) -> None:
    await append(service, "u1", "a1")
    await append(service, "q1", "b1", lane="research")
    await append(service, "u2")
    assert await visible(service) == ["u1", "a1", "u2"]


async def test_lane_sees_the_root_as_of_its_first_event(service: SessionService) -> None:
    await append(service, "u1", "a1")
    await append(service, "q1", lane="research")
    await append(service, "u2", "a2")
    await append(service, "b1", lane="research")
    assert await visible(service, "research") == ["u1", "a1", "q1", "b1"]


async def test_lane_still_sees_events_the_root_archived_later(service: SessionService) -> None:
    await append(service, "u1", "a1", "u2", "a2")
    await service.compact("s", always, SlidingWindow(2))
    await append(service, "q1", lane="research")
    await append(service, "u3", "a3")
    await service.compact("s", always, SlidingWindow(2))
    assert await visible(service) == ["u3", "a3"]
    assert await visible(service, "research") == ["u2", "a2", "q1"]


async def test_lane_is_compacted_separately(service: SessionService) -> None:
    await append(service, "u1", "a1")
    await append(service, "q1", "b1", "q2", "b2", lane="research")
    result = await service.compact("s", always, SlidingWindow(2), lane="research")
    assert [event.id for event in result.archived] == ["u1", "a1", "q1", "b1"]
    assert await visible(service, "research") == ["q2", "b2"]
    assert await visible(service) == ["u1", "a1"]
    assert await service.verify("s") == []
    await service.undo("s", lane="research")
    assert await visible(service, "research") == ["u1", "a1", "q1", "b1", "q2", "b2"]


async def test_lane_compaction_may_keep_part_of_the_root(service: SessionService) -> None:
    await append(service, "u1", "a1", "u2", "a2")
    await append(service, "q1", "b1", lane="research")
    await service.compact("s", always, SlidingWindow(4), lane="research")
    assert await visible(service, "research") == ["u2", "a2", "q1", "b1"]
    await append(service, "q2", lane="research")
    assert await visible(service, "research") == ["u2", "a2", "q1", "b1", "q2"]
    assert await service.verify("s") == []


async def test_lanes_survive_reopening(service: SessionService) -> None:
    await append(service, "u1", "a1")
    await append(service, "q1", "b1", lane="a_b")
    await append(service, "q2", lane="axb")
    again = SessionService(service.store)
    assert [m["content"] for m in await again.context("s", "a_b")] == ["u1", "a1", "q1", "b1"]
    assert [m["content"] for m in await again.context("s", "axb")] == ["u1", "a1", "q2"]


async def test_prune_of_a_new_lane_starts_where_the_root_was_compacted() -> None:
    """Opened again, the lane showed what the root had archived: its checkpoint has the root's boundary."""
    service = SessionService(MemoryStore())
    await service.create(id="s", format="openai-chat")
    await append(service, *(f"u{number}" for number in range(6)))
    await service.compact("s", always, SlidingWindow(2))
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    await service.append("s", {"role": "assistant", "content": None, "tool_calls": [call]})
    await service.append("s", {"role": "tool", "tool_call_id": "c1", "content": "the pier is made of oak\n" * 200})
    await append(service, "a6", "u6", "u7")
    assert (await service.prune("s", PruneToolResults(0, 0), lane="research")).outcome == "compacted"
    shown = await visible(service, "research")
    assert await visible(SessionService(service.store), "research") == shown and "u0" not in shown


async def test_automatic_compaction_of_a_lane_waits_for_the_running_one(service: SessionService) -> None:
    """Lanes have no lease: a second summary of the same messages would cost a model call and lose the race."""
    started, release, prompts = anyio.Event(), anyio.Event(), list[str]()
    await append(service, "u1", "a1")
    for number in range(20):
        await service.append("s", {"role": "user", "content": f"q{number} " + "of the harbour " * 40}, "research")

    async def summarize(prompt: str) -> str:
        prompts.append(prompt)
        started.set()
        await release.wait()
        return "They talked of the harbour."

    outcomes = list[str]()

    async def compact() -> None:
        strategy = Summary(KeepLast(2), FreeText(), AsUser(), verify=False)
        result = await service.compact("s", TokenCount(1_000), strategy, lane="research", summarizer=summarize)
        outcomes.append(result.outcome)

    async with anyio.create_task_group() as group:
        group.start_soon(compact)
        await started.wait()
        group.start_soon(compact)
        await anyio.wait_all_tasks_blocked()
        release.set()
    assert (outcomes, len(prompts)) == (["compacted", "not_needed"], 1)
