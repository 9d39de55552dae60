"""Export and re-import: lossless in Holdfast's format, the same context in pi's (P6)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transcripts.provider_view import provider_view
from tests.transcripts.tool_sessions import COMPACTED, STORIES, SUMMARY, write_session

from histories import PROFILES, wire
from holdfast import KeepLedger, MemoryStore, PruneToolResults, SessionService, SlidingWindow
from holdfast.context.events import EventKind
from holdfast.errors import InvalidInput, UnknownSession
from holdfast.messages import decode_all, encode_all, is_note
from holdfast.transcripts import (
    EmptyTranscript,
    ExportedSession,
    export_session,
    import_exported,
    import_transcript,
    read_transcript,
)
from holdfast.transcripts.pi import PI_SUMMARY_PREFIX
from holdfast.triggers import always

STEPS = st.lists(st.sampled_from(["slide", "ledger", "short ledger", "prune", "undo", "pin"]), max_size=4)
STRATEGIES = {
    "slide": SlidingWindow(4),
    "ledger": KeepLedger(2_000),
    "short ledger": KeepLedger(500),
    "prune": PruneToolResults(1, 1),
}


async def session_with(service: SessionService, messages: list[dict[str, Any]], format: str, steps: list[str]) -> str:
    """A session with a step (pin, compaction, undo, …) after each part of the messages."""
    record = await service.create(format=format, model="claude-x", system="Be brief.")
    size = max(1, len(messages) // (len(steps) + 1))
    for number, step in enumerate([*steps, None]):
        part = messages[number * size : None if step is None else (number + 1) * size]
        if part:
            await service.append(record.id, part)
        if step in STRATEGIES:
            await service.compact(record.id, always, STRATEGIES[step])
        elif step == "undo" and await service.events(record.id, kind=EventKind.COMPACTION):
            try:
                await service.undo(record.id)
            except InvalidInput:
                assert len(await service.events(record.id, kind=EventKind.UNDO)) >= 1
        elif step == "pin" and (events := await service.events(record.id, kind=EventKind.MESSAGE)):
            await service.pin(record.id, events[0].id)
    return record.id


def lines(exported: ExportedSession) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported.data.splitlines()]


@given(format=st.sampled_from(PROFILES), data=st.data())
def test_export_holdfast_format_is_lossless(format: str, data: st.DataObject) -> None:
    messages, steps = data.draw(wire(format, broken=True)), data.draw(STEPS)

    async def round_trip() -> None:
        async with SessionService(MemoryStore()) as source, SessionService(MemoryStore()) as target:
            id = await session_with(source, messages, format, steps)
            records = lines(await export_session(source, id))
            assert (await import_exported(target, records)).id == id
            assert lines(await export_session(target, id)) == records
            assert (await target.context(id)).messages == (await source.context(id)).messages
            assert await target.verify(id) == []

    asyncio.run(round_trip())


@given(format=st.sampled_from(PROFILES), data=st.data())
def test_export_pi_has_the_same_context(format: str, data: st.DataObject) -> None:
    """The context and each effective compaction; a history that Anthropic refuses is repaired."""
    messages, steps = data.draw(wire(format, broken=format == "anthropic")), data.draw(STEPS)

    async def round_trip() -> None:
        async with SessionService(MemoryStore()) as source, SessionService(MemoryStore()) as target:
            id = await session_with(source, messages, format, steps)
            context = await source.context(id)
            shown = encode_all(decode_all(context.messages, context.format)[0], "anthropic")
            with TemporaryDirectory() as folder:
                file = Path(folder) / "pi.jsonl"
                file.write_bytes((await export_session(source, id, "pi")).data)
                try:
                    read = read_transcript(file)
                except EmptyTranscript:
                    assert provider_view(shown) == []
                    return
            await import_transcript(target, read)
            assert provider_view((await target.context(id)).messages) == provider_view(shown)
            assert await target.verify(id) == []
            assert [past.tokens_before for past in read.compactions] == await _tokens_before_compactions(source, id)

    asyncio.run(round_trip())


async def _tokens_before_compactions(service: SessionService, id: str) -> list[int]:
    """Tokens before the current compaction and before each of its predecessors."""
    events = {event.id: event for event in await service.events(id)}
    now = (await service.get(id)).lanes.get("")
    epoch, sizes = now.epoch if now else None, []
    while epoch is not None:
        sizes.append(events[epoch].body.get("tokens_before", 0))
        epoch = events[epoch].body.get("previous")
    return sizes[::-1]


@pytest.fixture
async def service() -> AsyncIterator[SessionService]:
    async with SessionService(MemoryStore()) as service:
        yield service


def reread(folder: Path, exported: ExportedSession) -> Any:
    file = folder / "exported.jsonl"
    file.write_bytes(exported.data)
    return read_transcript(file)


@pytest.mark.anyio
async def test_export_pi_session_round_trips(service: SessionService, tmp_path: Path) -> None:
    transcript = write_session("pi", tmp_path)
    record = await import_transcript(service, transcript)
    again = reread(tmp_path, await export_session(service, record.id, "pi"))
    assert [entry.id for entry in again.entries] == [entry.id for entry in transcript.entries]
    assert provider_view(again.messages) == provider_view(transcript.messages)
    assert [entry.usage for entry in again.entries] == [entry.usage for entry in transcript.entries]
    (was,), (now) = transcript.compactions, again.compactions[0]
    assert (now.after, now.kept, now.summary) == (was.after, was.kept, was.summary)
    assert (again.id, again.model) == (transcript.id, transcript.model)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", STORIES)
async def test_export_pi_from_every_tool(kind: str, service: SessionService, tmp_path: Path) -> None:
    record = await import_transcript(service, write_session(kind, tmp_path))
    context = await service.context(record.id)
    shown = encode_all(decode_all(context.messages, context.format)[0], "anthropic")
    if kind == "claude-code":  # P5: pi shows every summary with a prefix; this one has no opening of its own
        shown[0] = {"role": "user", "content": f"{PI_SUMMARY_PREFIX}{SUMMARY}"}
    again = reread(tmp_path, await export_session(service, record.id, "pi"))
    async with SessionService(MemoryStore()) as other:
        await import_transcript(other, again)
        assert provider_view((await other.context(record.id)).messages) == provider_view(shown)
    assert len(again.compactions) == (0 if kind == "messages" else 2 if kind == "opencode" else 1)
    assert kind not in ("claude-code", "pi") or again.compactions[0].summary == SUMMARY


@pytest.mark.anyio
async def test_p5_imported_pi_summary_has_its_prefix_and_is_exported_without_it(
    service: SessionService, tmp_path: Path
) -> None:
    """Importing and exporting again and again adds no second prefix."""
    transcript = write_session("pi", tmp_path)
    for round in range(3):
        record = await import_transcript(service, transcript, id=f"round-{round}")
        first = (await service.context(record.id)).messages[0]
        (message,) = decode_all([first], "anthropic")[0]
        assert message.text == f"{PI_SUMMARY_PREFIX}{SUMMARY}" and is_note(message)
        exported = await export_session(service, record.id, "pi")
        assert [
            line["summary"] for line in map(json.loads, exported.data.splitlines()) if line["type"] == "compaction"
        ] == [SUMMARY]
        transcript = reread(tmp_path, exported)


@pytest.mark.anyio
async def test_export_pi_undone_compaction_is_counted(service: SessionService, tmp_path: Path) -> None:
    record = await import_transcript(service, write_session("pi", tmp_path))
    await service.undo(record.id)
    await service.append(record.id, {"role": "user", "content": "Look."}, lane="scout")
    exported = await export_session(service, record.id, "pi")
    assert reread(tmp_path, exported).compactions == ()
    assert exported.warnings == ("1 event of sub-agents left out", "1 compaction that was undone left out")


@pytest.mark.anyio
@pytest.mark.parametrize("kind", COMPACTED)
async def test_export_messages_context_or_whole(kind: str, service: SessionService, tmp_path: Path) -> None:
    transcript = write_session(kind, tmp_path)
    record = await import_transcript(service, transcript)
    assert json.loads((await export_session(service, record.id, "messages")).data) == list(
        await service.context(record.id)
    )
    everything = [message for message in transcript.messages if message.get("content") != SUMMARY]
    whole = await export_session(service, record.id, "messages", whole=True)
    assert json.loads(whole.data) == everything


@pytest.mark.anyio
async def test_export_errors_name_the_cause(service: SessionService) -> None:
    record = await service.create()
    with pytest.raises(InvalidInput, match="'xml' is not an export format: use one of holdfast, pi, messages"):
        await export_session(service, record.id, "xml")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="'pi' always contains every message"):
        await export_session(service, record.id, "pi", whole=True)
    with pytest.raises(UnknownSession):
        await export_session(service, "gone", "pi")
