"""Sessions of every tool in a store: the context is the tool's, and its compactions are compactions (P6)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import KeepLedger, MemoryStore, SessionService, check
from holdfast.events import Kind
from holdfast.transcripts import import_transcript as imported
from holdfast.transcripts import in_view

from .told_by_tools import COMPACTED, FIRST, SECOND, STORIES, SUMMARY, told

pytestmark = pytest.mark.anyio
every_tool = pytest.mark.parametrize("kind", STORIES)
each_that_compacts = pytest.mark.parametrize("kind", COMPACTED)


@pytest.fixture
async def service() -> AsyncIterator[SessionService]:
    async with SessionService(MemoryStore()) as service:
        yield service


@every_tool
async def test_the_context_is_what_the_tool_would_send_next(kind: str, service: SessionService, tmp_path: Path) -> None:
    transcript = told(kind, tmp_path)
    record = await imported(service, transcript)
    context = await service.context(record.id)
    assert context.messages == in_view(transcript).messages
    assert (context.system, record.model, record.format) == (transcript.system, transcript.model, context.format)
    assert await service.verify(record.id) == []


@each_that_compacts
async def test_each_compaction_is_one_event_with_its_summary(
    kind: str, service: SessionService, tmp_path: Path
) -> None:
    transcript = told(kind, tmp_path)
    record = await imported(service, transcript)
    events = await service.events(record.id, kind=Kind.COMPACTION)
    assert len(events) == len(transcript.compactions)
    body = events[-1].body
    assert (body["summary"], body["strategy"]) == (SUMMARY, kind)
    assert body.get("previous") == (events[-2].id if len(events) > 1 else None)
    assert body["tokens_before"] == (transcript.compactions[-1].tokens_before or 135), "what pi reported last"
    assert body["tokens_after"] > 0
    logged = await service.events(record.id)
    place = [event.id for event in logged].index(body["boundary"])
    assert all(event.kind != Kind.COMPACTION for event in logged[: place + 1])
    assert sum(run["count"] for run in body["archived"]) >= 1


@each_that_compacts
async def test_undo_gives_the_uncompacted_context(kind: str, service: SessionService, tmp_path: Path) -> None:
    transcript = told(kind, tmp_path)
    record = await imported(service, transcript)
    for _ in transcript.compactions:
        await service.undo(record.id)
    everything = [message for message in transcript.messages if message.get("content") != SUMMARY]
    assert (await service.context(record.id)).messages == everything
    assert await service.verify(record.id) == []


@each_that_compacts
async def test_a_fork_from_before_the_compaction_has_none(kind: str, service: SessionService, tmp_path: Path) -> None:
    """P10."""
    transcript = told(kind, tmp_path)
    record = await imported(service, transcript)
    asked = (await service.events(record.id, text=FIRST))[0]
    fork = await service.fork(record.id, at=asked.id)
    place = next(place for place, message in enumerate(transcript.messages) if FIRST in str(message))
    assert (await service.context(fork.id)).messages == transcript.messages[: place + 1]
    later = (await service.events(record.id, text=SECOND))[0]
    again = await service.fork(record.id, at=later.id)
    assert (await service.context(again.id)).messages == in_view(transcript).messages[:-1]


@each_that_compacts
async def test_what_was_archived_is_found(kind: str, service: SessionService, tmp_path: Path) -> None:
    """H1."""
    record = await imported(service, told(kind, tmp_path))
    hits = await service.store.search("by the crane", session_id=record.id)
    assert {hit.archived for hit in hits if hit.event.kind == Kind.MESSAGE} >= {True}
    said = await service.store.search(SUMMARY, session_id=record.id)
    assert any(hit.event.kind == Kind.COMPACTION for hit in said)


@every_tool
async def test_it_goes_on_and_is_compacted_by_us(kind: str, service: SessionService, tmp_path: Path) -> None:
    record = await imported(service, told(kind, tmp_path))
    before = (await service.context(record.id)).messages
    await service.append(record.id, {"role": "user", "content": "And the rest? " * 40})
    await service.append(record.id, {"role": "assistant", "content": "All free. " * 400})
    context = await service.context(record.id)
    assert context.messages[: len(before)] == before and len(context) == len(before) + 2
    await service.append(record.id, {"role": "user", "content": "Good."})
    result = await service.compact(record.id, strategy=KeepLedger(600))
    assert result.outcome == "compacted"
    assert FIRST in str(result.messages), "the task is carried, though another tool archived it (H3)"
    assert check(result.messages, record.format or "openai-chat") == []
    assert await service.verify(record.id) == []
    await service.undo(record.id)
    assert (await service.context(record.id)).messages[: len(before)] == before


@each_that_compacts
async def test_usage_counts_within_its_epoch(kind: str, service: SessionService, tmp_path: Path) -> None:
    """P3."""
    record = await imported(service, told(kind, tmp_path))
    context = await service.context(record.id)
    assert context.known and context.tokens == 65
    last = (await service.events(record.id, kind=Kind.COMPACTION))[-1]
    fork = await service.fork(record.id, at=last.id)
    assert not (await service.context(fork.id)).known


async def test_ids_and_times_are_the_tools(service: SessionService, tmp_path: Path) -> None:
    transcript = told("claude-code", tmp_path)
    record = await imported(service, transcript)
    events = await service.events(record.id)
    assert [event.id for event in events] == ["u1", "a1", "r1", "a2", "s1", "u2", "a3"]
    assert record.id == transcript.id and record.created == events[0].time == "2026-01-01T00:00:02Z"
    assert record.metadata == {"imported": {"from": "claude-code", "id": "s-1"}}


async def test_where_there_are_none_they_are_made_and_always_the_same(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        async with SessionService(MemoryStore()) as service:
            record = await imported(service, told("messages", tmp_path))
            found.append((record.id, [event.id for event in await service.events(record.id)]))
    assert found[0] == found[1]
    assert found[0][1] == [f"message-{number}" for number in range(1, 7)]
    assert found[0][0].startswith("messages-")


async def test_codex_shows_the_users_messages_by_reference(service: SessionService, tmp_path: Path) -> None:
    """They are in the log once, and count as shown."""
    record = await imported(service, told("codex", tmp_path))
    (event,) = await service.events(record.id, kind=Kind.COMPACTION)
    assert [(item["kind"], "ref" in item) for item in event.body["head"]] == [
        ("system", True),
        ("turn", True),
        ("note", False),
    ]
    archived = await service.events(record.id, archived=True)
    assert FIRST not in str([event.body for event in archived])


async def test_a_result_that_opencode_cleared_is_whole_in_the_log(service: SessionService, tmp_path: Path) -> None:
    record = await imported(service, told("opencode", tmp_path))
    first, second = await service.events(record.id, kind=Kind.COMPACTION)
    assert (first.body["strategy"], second.body["strategy"]) == ("opencode prune", "opencode")
    assert first.body.get("boundary") is None and first.body["carry"].get("round", 0) == 0
    assert second.body["carry"]["round"] == 1
    assert "berth 4: by the crane" not in str((await service.context(record.id)).messages)
    assert await service.events(record.id, text="berth 4: by the crane")
