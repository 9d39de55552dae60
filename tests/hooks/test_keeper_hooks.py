"""Hooks of a keeper run after those of its service (G7, H7)."""

from __future__ import annotations

import pytest

from holdfast import Hooks, Keeper, MemoryStore, SessionService
from holdfast.hooks import BeforeCompaction, Veto
from sized import assistant, user

pytestmark = pytest.mark.anyio
TALK = [user(500), assistant(500)] * 10


async def test_g7_hook_of_a_keeper_may_veto() -> None:
    seen: list[BeforeCompaction] = []
    order: list[str] = []

    def refuse(before: BeforeCompaction) -> Veto:
        seen.append(before)
        order.append("keeper")
        return Veto("not during a release")

    sessions = SessionService(MemoryStore(), estimator="chars/4", hooks=Hooks(before=lambda _: order.append("service")))
    await sessions.create(id="s", format="openai-chat")
    await sessions.append("s", TALK)
    keeper = Keeper(sessions, "s", window=12_000, hooks=Hooks(before=refuse))
    context = await keeper.prepare_step()
    assert list(context)[: len(TALK)] == TALK and order == ["service", "keeper"]
    assert [before.origin for before in seen] == ["auto"]


async def test_g7_hook_of_a_keeper_without_a_service() -> None:
    order: list[str] = []
    keeper = Keeper(window=9_000, hooks=Hooks(before=lambda _: order.append("keeper")), format="openai-chat")
    await keeper.prepare_step([{"role": "user", "content": "the tide rises. " * 400}, *TALK] * 8)
    assert order
