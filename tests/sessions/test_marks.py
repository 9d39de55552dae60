"""Marks of several writers: a compaction, pin or undo is refused if it was made from an older state (S3, H1)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import MemoryStore, Outcome, SessionService, SlidingWindow
from holdfast.context.events import Event, EventKind, LaneTip
from holdfast.errors import Conflict, HoldfastError, InvalidInput
from holdfast.strategies import KeepLast, Summary
from holdfast.summaries import AsUser, FreeText
from holdfast.triggers import always

pytestmark = pytest.mark.anyio
SUMMARY = Summary(KeepLast(1), FreeText(), AsUser(), verify=False)
Act = Callable[[SessionService], Awaitable[Any]]


async def talk(service: SessionService, first: int, last: int) -> None:
    for number in range(first, last):
        await service.append("s", {"role": "user", "content": f"Question {number} of the harbour"}, id=f"u{number}")
        await service.append("s", {"role": "assistant", "content": f"Answer {number}"}, id=f"a{number}")


async def two_services() -> tuple[SessionService, SessionService]:
    """Two services on one store, as in two processes, with a session that was compacted after six turns of nine."""
    store = MemoryStore()
    service, other = SessionService(store), SessionService(store)
    await service.create(id="s", format="openai-chat")
    await talk(service, 0, 6)
    await service.compact("s", always, SlidingWindow(6))
    await talk(service, 6, 9)
    await other.context("s")
    return service, other


async def compact_while(service: SessionService, mode: Any, act: Callable[[], Awaitable[Any]]) -> Outcome:
    async def summarize(prompt: str) -> str:
        await act()
        return "They talked of the harbour."

    result = await service.compact("s", always, SUMMARY, mode, summarizer=summarize)
    return result.outcome


ACTS: dict[str, Act] = {
    "append": lambda other: other.append("s", {"role": "user", "content": "More."}),
    "pin": lambda other: other.pin("s", "u4"),
    "unpin": lambda other: other.pin("s", "u4", pinned=False),
    "compact": lambda other: other.compact("s", always, SlidingWindow(2), "rebase"),
    "undo": lambda other: other.undo("s"),
    "redact": lambda other: other.redact("s", "u4"),
}


@pytest.mark.parametrize("mode", ["skip", "rebase"])
@pytest.mark.parametrize("act", ACTS)
async def test_s3_compaction_made_from_an_older_state_is_refused(act: str, mode: str) -> None:
    service, other = await two_services()
    outcome = await compact_while(service, mode, lambda: ACTS[act](other))
    expected = Outcome.COMPACTED if (act, mode) == ("append", "rebase") else Outcome.CONFLICT
    assert outcome == expected
    fresh = SessionService(service.store)
    for reader in (service, other):
        assert (await reader.context("s")).messages == (await fresh.context("s")).messages
        assert await reader.verify("s") == []


async def test_s3_each_call_sees_what_other_services_wrote() -> None:
    service, other = await two_services()
    for number, act in enumerate(("append", "pin", "append", "compact", "undo", "redact")):
        await ACTS[act](other)
        expected = (await SessionService(service.store).context("s")).messages
        assert (await service.context("s")).messages == expected, number
        assert await service.verify("s") == []


async def test_view_on_another_checkpoint_than_the_logs_is_read_again(caplog: pytest.LogCaptureFixture) -> None:
    """As after a pin by a version that wrote its pins without a condition: it had not seen the compaction."""
    service, _ = await two_services()
    assert len(await service.context("s")) == 12
    pin = Event("p", EventKind.PIN, "2026-01-01T00:00:00.000Z", {"event": "u0", "pinned": True})
    await service.store.append("s", [pin], tip=LaneTip())
    with caplog.at_level(logging.WARNING, "holdfast"):
        assert len(await service.context("s")) == 18
    assert "differed from its log" in caplog.text
    assert await service.verify("s") == []


async def test_s3_pin_in_a_lane_that_started_after_the_seen_version_is_refused() -> None:
    """Its root was redacted by then, which is in no mark of the lane itself."""
    service, _ = await two_services()
    seen = (await service.context("s")).version
    await service.redact("s", "u1")
    await service.append("s", {"role": "user", "content": "Count the cranes."}, id="lane", lane="counting")
    with pytest.raises(Conflict):
        await service.pin("s", "lane", after=seen)
    await service.pin("s", "lane", after=(await service.context("s")).version)


async def test_undone_compaction_can_be_redone_and_both_say_before_what_will_be_there() -> None:
    service, _ = await two_services()
    compacted, checkpoint = await service.context("s"), (await service.size("s")).checkpoint
    before = await service.preview_undo("s")
    await service.undo("s")
    assert await service.size("s") == before and before.count == 18
    again = await service.preview_undo("s", to=checkpoint)
    assert await service.undo("s", to=checkpoint) == checkpoint
    assert (await service.context("s")).messages == compacted.messages
    assert (await service.size("s")).tokens == again.tokens == compacted.tokens


async def test_redo_of_what_was_never_a_compaction_is_refused() -> None:
    service = SessionService(MemoryStore())
    await service.create(id="s")
    await talk(service, 0, 1)
    with pytest.raises(HoldfastError):
        await service.undo("s", to="u0")
    with pytest.raises(InvalidInput, match="no compaction to undo"):
        await service.undo("s")
