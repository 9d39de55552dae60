"""Tool pairs in a live session: dangling calls are closed, late results are logged and not shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import MemoryStore, SessionService, check
from holdfast.context import INTERRUPTED_TEXT

pytestmark = pytest.mark.anyio


def call(*ids: str) -> dict[str, Any]:
    blocks = [{"type": "tool_use", "id": name, "name": "read", "input": {}} for name in ids]
    return {"role": "assistant", "content": blocks}


def result(name: str, text: str = "found") -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": text}]}


@pytest.fixture
async def service() -> AsyncIterator[SessionService]:
    async with SessionService(MemoryStore()) as service:
        await service.create(id="s", format="anthropic")
        await service.append("s", {"role": "user", "content": "go"})
        yield service


async def test_pending_call_stays_open(service: SessionService) -> None:
    await service.append("s", call("c1", "c2"))
    await service.append("s", result("c1"))
    context = await service.context("s")
    assert len(context) == 3
    assert check(context, "anthropic") == []
    assert [problem.rule for problem in check(context, "anthropic", ready=True)] == ["unanswered-call"]


async def test_next_user_message_closes_open_calls(service: SessionService) -> None:
    await service.append("s", call("c1", "c2"))
    await service.append("s", result("c1"))
    await service.append("s", {"role": "user", "content": "never mind"}, id="u2")
    context = await service.context("s")
    assert check(context, "anthropic", ready=True) == []
    assert INTERRUPTED_TEXT in str(context.messages)
    closing = [event for event in await service.events("s") if event.body.get("closes")]
    assert [event.id for event in closing] == ["u2~0"]


async def test_late_result_is_logged_and_not_shown(service: SessionService) -> None:
    await service.append("s", call("c1"))
    await service.append("s", {"role": "user", "content": "never mind"})
    before = await service.context("s")
    await service.append("s", result("c1", "too late"), id="late")
    after = await service.context("s")
    assert after.messages == before.messages
    assert [event.id for event in await service.events("s", text="too late")] == ["late"]


async def test_second_result_is_not_shown(service: SessionService) -> None:
    await service.append("s", call("c1"))
    await service.append("s", result("c1", "first"))
    await service.append("s", result("c1", "second"))
    assert "second" not in str((await service.context("s")).messages)


async def test_concurrent_writer_cannot_leave_the_context_invalid(service: SessionService) -> None:
    other = SessionService(service.store)
    await other.context("s")
    await service.append("s", call("c1"))
    stale = await other.store.session("s")
    assert stale.version == 2
    await other.append("s", {"role": "user", "content": "I saw no call"})
    await service.append("s", result("c1", "too late"))
    for reader in (service, other, SessionService(service.store)):
        context = await reader.context("s")
        assert check(context, "anthropic", ready=True) == []
        assert "too late" not in str(context.messages)


async def test_empty_reply_is_logged_and_not_sent(service: SessionService) -> None:
    await service.append("s", {"role": "assistant", "content": []}, id="empty")
    await service.append("s", {"role": "user", "content": "still there?"})
    assert len(await service.context("s")) == 2
    assert len(await service.events("s")) == 3
