"""The commit of a compaction: what was written is reported, and what cannot be sent is not written (S3, G4)."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from compaction_session import SUMMARY, EventRecorder, open_session
from holdfast import MemoryStore, Outcome, SessionService
from holdfast.context.events import EventKind
from holdfast.hooks import Hooks
from holdfast.stores import Appended
from holdfast.triggers import always

pytestmark = pytest.mark.anyio


class CancellingStore(MemoryStore):
    """Cancels its caller while a compaction is appended, before or after it is written."""

    def __init__(self, *, written: bool) -> None:
        super().__init__()
        self.scope = anyio.CancelScope()
        self._written = written

    async def append(self, session_id: str, events: Any, **options: Any) -> Appended:
        if events[0].kind != EventKind.COMPACTION:
            return await super().append(session_id, events, **options)
        self.scope.cancel()
        if not self._written:
            await checkpoint()
        done = await super().append(session_id, events, **options)
        await checkpoint()
        return done


@pytest.mark.parametrize("written", [True, False])
async def test_compaction_that_is_cancelled_in_its_commit_is_written_and_reported(written: bool) -> None:
    store, heard = CancellingStore(written=written), EventRecorder()
    service = await open_session(Hooks(listen=heard), store=store)
    with store.scope:
        await service.compact("s", always, SUMMARY)
    assert store.scope.cancel_called and heard.names == ["Started", "Completed", "Boundary"]
    shown = (await service.context("s")).messages
    assert "harbour" in str(shown[0]) and len(shown) < 12
    assert shown == (await SessionService(store).context("s")).messages
    assert len(await service.events("s", kind=EventKind.COMPACTION)) == 1


async def test_smallest_context_that_cannot_be_sent_is_not_committed() -> None:
    service = await open_session()
    await service.append("s", {"role": "user", "content": "all the words of the harbour " * 400})
    version, before = (await service.get("s")).version, (await service.context("s")).messages
    result = await service.compact("s", always, SUMMARY, budget=1_000)
    assert result.outcome is Outcome.CANNOT_FIT and len(result.messages) < len(before)
    assert (await service.context("s")).messages == before
    assert await service.events("s", kind=EventKind.COMPACTION) == []
    assert [event.kind for event in await service.events("s")][version:] in ([], [EventKind.ATTEMPT])
