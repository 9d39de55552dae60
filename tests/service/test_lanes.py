"""Lanes: a sub-agent's line inside a session (S16)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast import MemoryStore, SessionService, SlidingWindow, always

pytestmark = pytest.mark.anyio


@pytest.fixture
async def service() -> AsyncIterator[SessionService]:
    async with SessionService(MemoryStore()) as service:
        await service.create(id="s")
        yield service


async def tell(service: SessionService, *names: str, lane: str | None = None) -> None:
    for name in names:
        role = "user" if name[0] in "uq" else "assistant"
        await service.append("s", {"role": role, "content": name}, lane, id=name)


async def seen(service: SessionService, lane: str | None = None) -> list[str]:
    return [str(message["content"]).partition("\n")[0] for message in await service.context("s", lane)]


async def test_a_lane_never_shows_in_the_root(service: SessionService) -> None:
    await tell(service, "u1", "a1")
    await tell(service, "q1", "b1", lane="research")
    await tell(service, "u2")
    assert await seen(service) == ["u1", "a1", "u2"]


async def test_a_lane_sees_the_root_as_it_was_when_it_started(service: SessionService) -> None:
    await tell(service, "u1", "a1")
    await tell(service, "q1", lane="research")
    await tell(service, "u2", "a2")
    await tell(service, "b1", lane="research")
    assert await seen(service, "research") == ["u1", "a1", "q1", "b1"]


async def test_a_lane_keeps_seeing_what_the_root_has_archived_since(service: SessionService) -> None:
    await tell(service, "u1", "a1", "u2", "a2")
    await service.compact("s", always, SlidingWindow(2))
    await tell(service, "q1", lane="research")
    await tell(service, "u3", "a3")
    await service.compact("s", always, SlidingWindow(2))
    assert await seen(service) == ["u3", "a3"]
    assert await seen(service, "research") == ["u2", "a2", "q1"]


async def test_a_lane_has_compactions_of_its_own(service: SessionService) -> None:
    await tell(service, "u1", "a1")
    await tell(service, "q1", "b1", "q2", "b2", lane="research")
    result = await service.compact("s", always, SlidingWindow(2), lane="research")
    assert [event.id for event in result.archived] == ["u1", "a1", "q1", "b1"]
    assert await seen(service, "research") == ["q2", "b2"]
    assert await seen(service) == ["u1", "a1"]
    assert await service.verify("s") == []
    await service.undo("s", lane="research")
    assert await seen(service, "research") == ["u1", "a1", "q1", "b1", "q2", "b2"]


async def test_a_lane_compaction_may_keep_part_of_the_root(service: SessionService) -> None:
    await tell(service, "u1", "a1", "u2", "a2")
    await tell(service, "q1", "b1", lane="research")
    await service.compact("s", always, SlidingWindow(4), lane="research")
    assert await seen(service, "research") == ["u2", "a2", "q1", "b1"]
    await tell(service, "q2", lane="research")
    assert await seen(service, "research") == ["u2", "a2", "q1", "b1", "q2"]
    assert await service.verify("s") == []


async def test_lanes_survive_reopening(service: SessionService) -> None:
    await tell(service, "u1", "a1")
    await tell(service, "q1", "b1", lane="a_b")
    await tell(service, "q2", lane="axb")
    again = SessionService(service.store)
    assert [m["content"] for m in await again.context("s", "a_b")] == ["u1", "a1", "q1", "b1"]
    assert [m["content"] for m in await again.context("s", "axb")] == ["u1", "a1", "q2"]
