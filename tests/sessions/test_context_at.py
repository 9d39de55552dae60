"""Time travel: the context at any earlier event equals what the service returned there, and nothing is written."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from holdfast import MemoryStore, SessionService, SlidingWindow
from holdfast.context.events import Event
from holdfast.errors import HoldfastError, UnknownEvent
from holdfast.messages import Json
from holdfast.stores import Slice
from holdfast.strategies import KeepLedger
from holdfast.triggers import TokenCount, always
from real_sessions import each_nth_session, transcript

pytestmark = pytest.mark.anyio
SAMPLES = 40
"""Events compared in each session: 200 in the four examples and one real session."""
MAX_MESSAGES = 240


class Walk:
    """Appends a real session with compactions, undos, pins and a sub-agent's lane among its messages."""

    def __init__(self, service: SessionService, messages: list[Json], seed: int) -> None:
        self.service, self.messages, self.random = service, messages[:MAX_MESSAGES], Random(seed)
        self.seen: list[tuple[Event, list[Json], int]] = []

    async def run(self) -> None:
        every = max(1, len(self.messages) // SAMPLES)
        for number, message in enumerate(self.messages):
            await self.service.append("s", message)
            if number % every == every - 1:
                await self.act()
                await self.note(self.random.choice([None, None, "helper"]))

    async def act(self) -> None:
        match self.random.randrange(6):
            case 0:
                await self.service.compact("s", TokenCount(6_000), KeepLedger(3_000))
            case 1:
                await self.service.compact("s", always, SlidingWindow(12))
            case 2 if (await self.service.size("s")).is_compacted:
                await self.service.undo("s")
            case 3:
                events = await self.service.events("s", kind="message", lane="")
                await self.service.pin("s", self.random.choice(events).id, pinned=self.random.random() < 0.7)
            case 4:
                await self.service.append("s", {"role": "user", "content": "Look at the quay."}, "helper")

    async def note(self, lane: str | None) -> None:
        events = await self.service.events("s", lane=lane or "")
        if events:
            context = await self.service.context("s", lane)
            self.seen.append((events[-1], list(context.messages), context.tokens))


@each_nth_session(60)
async def test_context_at_equals_the_context_that_was_returned_there(path: Path) -> None:
    given = transcript(path)
    service = SessionService(MemoryStore())
    await service.create(id="s", format=given.format, system="You keep the harbour's files.")
    walk = Walk(service, given.messages, seed=len(given.messages))
    await walk.run()
    before = await service.get("s"), await service.store.read("s", Slice(any_lane=True))
    assert len(walk.seen) >= min(SAMPLES, len(given.messages)) // 2
    for event, messages, tokens in walk.seen:
        context = await service.context_at("s", event.id)
        assert (context.messages, context.tokens, context.version) == (messages, tokens, event.seq)
    assert (await service.get("s"), await service.store.read("s", Slice(any_lane=True))) == before


async def test_context_at_has_a_fork_s_shared_events() -> None:
    service = SessionService(MemoryStore())
    await service.create(id="s")
    for number in range(20):
        await service.append("s", {"role": "user", "content": f"Ship {number} arrived."}, id=f"m{number}")
    await service.compact("s", always, SlidingWindow(4))
    fork = await service.fork("s", "m9")
    assert await service.context_at(fork.id, "m5") == (await service.context_at("s", "m5")).messages
    assert len(await service.context_at(fork.id, "m9")) == 10


async def test_context_at_unknown_event_is_an_error() -> None:
    service = SessionService(MemoryStore())
    await service.create(id="s")
    with pytest.raises(UnknownEvent) as caught:
        await service.context_at("s", "missing")
    assert isinstance(caught.value, HoldfastError)
