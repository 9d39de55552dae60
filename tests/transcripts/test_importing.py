"""Import of every tool's session: the same context, and its compactions as checkpoints (P6)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.transcripts.tool_sessions import COMPACTED, FIRST, SECOND, STORIES, SUMMARY, write_session

from holdfast import KeepLedger, MemoryStore, SessionService, check
from holdfast.context.events import EventKind
from holdfast.transcripts import export_session, live_context, read_transcript
from holdfast.transcripts import import_transcript as imported
from holdfast.triggers import always

pytestmark = pytest.mark.anyio
every_tool = pytest.mark.parametrize("kind", STORIES)
each_that_compacts = pytest.mark.parametrize("kind", COMPACTED)


@pytest.fixture
async def service() -> AsyncIterator[SessionService]:
    async with SessionService(MemoryStore()) as service:
        yield service


@every_tool
async def test_import_context_is_the_next_request_of_the_tool(
    kind: str, service: SessionService, tmp_path: Path
) -> None:
    transcript = write_session(kind, tmp_path)
    record = await imported(service, transcript)
    context = await service.context(record.id)
    assert context.messages == live_context(transcript).messages
    assert (context.system, record.model, record.format) == (transcript.system, transcript.model, context.format)
    assert await service.verify(record.id) == []


@each_that_compacts
async def test_import_compaction_is_one_event_with_summary(kind: str, service: SessionService, tmp_path: Path) -> None:
    transcript = write_session(kind, tmp_path)
    record = await imported(service, transcript)
    events = await service.events(record.id, kind=EventKind.COMPACTION)
    assert len(events) == len(transcript.compactions)
    body = events[-1].body
    assert (body["summary"], body["strategy"]) == (SUMMARY, kind)
    assert body.get("previous") == (events[-2].id if len(events) > 1 else None)
    assert body["tokens_before"] == (transcript.compactions[-1].tokens_before or 135), "what pi reported last"
    assert body["tokens_after"] > 0
    logged = await service.events(record.id)
    place = [event.id for event in logged].index(body["boundary"])
    assert all(event.kind != EventKind.COMPACTION for event in logged[: place + 1])
    assert sum(run["count"] for run in body["archived"]) >= 1


async def test_folder_and_title_are_imported_and_exported(service: SessionService, tmp_path: Path) -> None:
    claude = STORIES["claude-code"]()
    named = [record | {"cwd": "/harbor"} for record in claude] + [{"type": "ai-title", "aiTitle": "Berths"}]
    file = tmp_path / "named.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in named))
    expected = {"codex": ("/harbor", None), "pi": ("/harbor", None), "messages": (None, None)}
    found = {kind: write_session(kind, tmp_path) for kind in expected} | {"claude-code": read_transcript(file)}
    expected["claude-code"] = ("/harbor", "Berths")
    assert {kind: (one.folder, one.title) for kind, one in found.items()} == expected
    for kind, transcript in found.items():
        record = await imported(service, transcript)
        assert (record.metadata.get("folder"), record.metadata.get("title")) == expected[kind]
        (exported := tmp_path / "again.jsonl").write_bytes((await export_session(service, record.id, "pi")).data)
        again = read_transcript(exported)
        assert (again.folder, again.title, again.warnings) == (*expected[kind], ())


async def test_messages_that_the_tools_compaction_kept_are_not_new(service: SessionService, tmp_path: Path) -> None:
    record = await imported(service, write_session("pi", tmp_path, lines=8))
    shown = (await service.context(record.id)).messages
    assert len(shown) == 3 and "Thanks." in str(shown[1])
    unchanged = await service.compact(record.id, always, KeepLedger(2_000))
    assert unchanged.why == "no messages since the last compaction"
    await service.append(record.id, {"role": "user", "content": SECOND})
    assert (await service.compact(record.id, always, KeepLedger(2_000))).why == "the messages take little of the target"


@each_that_compacts
async def test_import_undo_gives_uncompacted_context(kind: str, service: SessionService, tmp_path: Path) -> None:
    transcript = write_session(kind, tmp_path)
    record = await imported(service, transcript)
    for _ in transcript.compactions:
        await service.undo(record.id)
    everything = [message for message in transcript.messages if message.get("content") != SUMMARY]
    assert (await service.context(record.id)).messages == everything
    assert await service.verify(record.id) == []


@each_that_compacts
async def test_import_fork_before_compaction_has_none(kind: str, service: SessionService, tmp_path: Path) -> None:
    """P10."""
    transcript = write_session(kind, tmp_path)
    record = await imported(service, transcript)
    asked = (await service.events(record.id, text=FIRST))[0]
    fork = await service.fork(record.id, at=asked.id)
    place = next(place for place, message in enumerate(transcript.messages) if FIRST in str(message))
    assert (await service.context(fork.id)).messages == transcript.messages[: place + 1]
    later = (await service.events(record.id, text=SECOND))[0]
    again = await service.fork(record.id, at=later.id)
    assert (await service.context(again.id)).messages == live_context(transcript).messages[:-1]


@each_that_compacts
async def test_import_archived_messages_are_searchable(kind: str, service: SessionService, tmp_path: Path) -> None:
    """H1."""
    record = await imported(service, write_session(kind, tmp_path))
    hits = await service.store.search("by the crane", session_id=record.id)
    assert {hit.archived for hit in hits if hit.event.kind == EventKind.MESSAGE} >= {True}
    hits_of_summary = await service.store.search(SUMMARY, session_id=record.id)
    assert any(hit.event.kind == EventKind.COMPACTION for hit in hits_of_summary)


@every_tool
async def test_import_session_continues_and_is_compacted(kind: str, service: SessionService, tmp_path: Path) -> None:
    record = await imported(service, write_session(kind, tmp_path))
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
async def test_imported_usage_does_not_decide_the_size(kind: str, service: SessionService, tmp_path: Path) -> None:
    """It counts another tool's prompt; the first reply here tells (P3)."""
    record = await imported(service, write_session(kind, tmp_path))
    context = await service.context(record.id)
    assert not context.known
    events = await service.events(record.id)
    assert any("usage" in event.body for event in events), "the figures are kept"
    await service.append(record.id, {"role": "user", "content": "And now?"})
    reply = {"role": "assistant", "content": "Now we sail."}
    await service.append(record.id, reply, usage={"input": 200, "output": 5})
    context = await service.context(record.id)
    assert context.known and context.tokens == 205


async def test_import_keeps_ids_and_times(service: SessionService, tmp_path: Path) -> None:
    transcript = write_session("claude-code", tmp_path)
    record = await imported(service, transcript)
    events = await service.events(record.id)
    assert [event.id for event in events] == ["u1", "a1", "r1", "a2", "s1", "u2", "a3"]
    assert record.id == transcript.id and record.created == events[0].time == "2026-01-01T00:00:02Z"
    assert record.metadata == {"imported": {"from": "claude-code", "id": "s-1"}}


async def test_import_missing_ids_are_deterministic(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        async with SessionService(MemoryStore()) as service:
            record = await imported(service, write_session("messages", tmp_path))
            found.append((record.id, [event.id for event in await service.events(record.id)]))
    assert found[0] == found[1]
    assert found[0][1] == [f"message-{number}" for number in range(1, 7)]
    assert found[0][0].startswith("messages-")


async def test_import_codex_head_refers_to_user_messages(service: SessionService, tmp_path: Path) -> None:
    """They are in the log once, and count as visible."""
    record = await imported(service, write_session("codex", tmp_path))
    (event,) = await service.events(record.id, kind=EventKind.COMPACTION)
    assert [(item["kind"], "ref" in item) for item in event.body["head"]] == [
        ("system", True),
        ("turn", True),
        ("note", False),
    ]
    archived = await service.events(record.id, archived=True)
    assert FIRST not in str([event.body for event in archived])


async def test_import_opencode_cleared_result_is_complete_in_the_log(service: SessionService, tmp_path: Path) -> None:
    record = await imported(service, write_session("opencode", tmp_path))
    first, second = await service.events(record.id, kind=EventKind.COMPACTION)
    assert (first.body["strategy"], second.body["strategy"]) == ("opencode prune", "opencode")
    assert first.body.get("boundary") is None and first.body["carry"].get("round", 0) == 0
    assert second.body["carry"]["round"] == 1
    assert "berth 4: by the crane" not in str((await service.context(record.id)).messages)
    assert await service.events(record.id, text="berth 4: by the crane")
