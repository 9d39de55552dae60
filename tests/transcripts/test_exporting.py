"""Sessions out of a store and in again: lossless in our own format, the same to a model in pi's (P6)."""

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

from histories import PROFILES, wire
from holdfast import KeepLedger, MemoryStore, PruneToolResults, SessionService, SlidingWindow, always
from holdfast.errors import InvalidInput, UnknownSession
from holdfast.events import Kind
from holdfast.messages import decode_all, encode_all
from holdfast.transcripts import (
    Exported,
    NothingSaid,
    export_session,
    import_exported,
    import_transcript,
    read_transcript,
)

from .seen_by_provider import seen
from .told_by_tools import COMPACTED, STORIES, SUMMARY, told

STEPS = st.lists(st.sampled_from(["slide", "ledger", "short ledger", "prune", "undo", "pin"]), max_size=4)
STRATEGIES = {
    "slide": SlidingWindow(4),
    "ledger": KeepLedger(2_000),
    "short ledger": KeepLedger(500),
    "prune": PruneToolResults(1, 1),
}


async def lived(service: SessionService, messages: list[dict[str, Any]], format: str, steps: list[str]) -> str:
    """A session in which something happens after each part of the messages."""
    record = await service.create(format=format, model="claude-x", system="Be brief.")
    size = max(1, len(messages) // (len(steps) + 1))
    for number, step in enumerate([*steps, None]):
        part = messages[number * size : None if step is None else (number + 1) * size]
        if part:
            await service.append(record.id, part)
        if step in STRATEGIES:
            await service.compact(record.id, always, STRATEGIES[step])
        elif step == "undo" and await service.events(record.id, kind=Kind.COMPACTION):
            try:
                await service.undo(record.id)
            except InvalidInput:
                assert len(await service.events(record.id, kind=Kind.UNDO)) >= 1
        elif step == "pin" and (said := await service.events(record.id, kind=Kind.MESSAGE)):
            await service.pin(record.id, said[0].id)
    return record.id


def lines(exported: Exported) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported.data.splitlines()]


@given(format=st.sampled_from(PROFILES), data=st.data())
def test_our_own_format_loses_nothing(format: str, data: st.DataObject) -> None:
    messages, steps = data.draw(wire(format, broken=True)), data.draw(STEPS)

    async def there_and_back() -> None:
        async with SessionService(MemoryStore()) as source, SessionService(MemoryStore()) as target:
            id = await lived(source, messages, format, steps)
            records = lines(await export_session(source, id))
            assert (await import_exported(target, records)).id == id
            assert lines(await export_session(target, id)) == records
            assert (await target.context(id)).messages == (await source.context(id)).messages
            assert await target.verify(id) == []

    asyncio.run(there_and_back())


@given(format=st.sampled_from(PROFILES), data=st.data())
def test_pi_shows_a_model_the_same(format: str, data: st.DataObject) -> None:
    """The context, and each compaction that holds; a history that Anthropic refuses is mended on the way."""
    messages, steps = data.draw(wire(format, broken=format == "anthropic")), data.draw(STEPS)

    async def there_and_back() -> None:
        async with SessionService(MemoryStore()) as source, SessionService(MemoryStore()) as target:
            id = await lived(source, messages, format, steps)
            context = await source.context(id)
            shown = encode_all(decode_all(context.messages, context.format)[0], "anthropic")
            with TemporaryDirectory() as folder:
                file = Path(folder) / "pi.jsonl"
                file.write_bytes((await export_session(source, id, "pi")).data)
                try:
                    read = read_transcript(file)
                except NothingSaid:
                    assert seen(shown) == []
                    return
            await import_transcript(target, read)
            assert seen((await target.context(id)).messages) == seen(shown)
            assert await target.verify(id) == []
            assert [past.tokens_before for past in read.compactions] == await _in_force(source, id)

    asyncio.run(there_and_back())


async def _in_force(service: SessionService, id: str) -> list[int]:
    """The sizes before the compaction that holds now, and before those it goes back to."""
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


def reread(folder: Path, exported: Exported) -> Any:
    file = folder / "exported.jsonl"
    file.write_bytes(exported.data)
    return read_transcript(file)


@pytest.mark.anyio
async def test_a_session_of_pi_comes_out_as_it_went_in(service: SessionService, tmp_path: Path) -> None:
    transcript = told("pi", tmp_path)
    record = await import_transcript(service, transcript)
    again = reread(tmp_path, await export_session(service, record.id, "pi"))
    assert [entry.id for entry in again.entries] == [entry.id for entry in transcript.entries]
    assert seen(again.messages) == seen(transcript.messages)
    assert [entry.usage for entry in again.entries] == [entry.usage for entry in transcript.entries]
    (was,), (now) = transcript.compactions, again.compactions[0]
    assert (now.after, now.kept, now.summary) == (was.after, was.kept, was.summary)
    assert (again.id, again.model) == (transcript.id, transcript.model)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", STORIES)
async def test_every_tools_story_can_be_told_to_pi(kind: str, service: SessionService, tmp_path: Path) -> None:
    record = await import_transcript(service, told(kind, tmp_path))
    context = await service.context(record.id)
    shown = encode_all(decode_all(context.messages, context.format)[0], "anthropic")
    again = reread(tmp_path, await export_session(service, record.id, "pi"))
    async with SessionService(MemoryStore()) as other:
        await import_transcript(other, again)
        assert seen((await other.context(record.id)).messages) == seen(shown)
    assert len(again.compactions) == (0 if kind == "messages" else 2 if kind == "opencode" else 1)
    assert kind not in ("claude-code", "pi") or again.compactions[0].summary == SUMMARY


@pytest.mark.anyio
async def test_an_undone_compaction_is_left_out_and_told(service: SessionService, tmp_path: Path) -> None:
    record = await import_transcript(service, told("pi", tmp_path))
    await service.undo(record.id)
    await service.append(record.id, {"role": "user", "content": "Look."}, lane="scout")
    exported = await export_session(service, record.id, "pi")
    assert reread(tmp_path, exported).compactions == ()
    assert exported.notes == ("1 event of sub-agents left out", "1 compaction that was undone left out")


@pytest.mark.anyio
@pytest.mark.parametrize("kind", COMPACTED)
async def test_plain_messages_are_the_context_or_all_that_was_said(
    kind: str, service: SessionService, tmp_path: Path
) -> None:
    transcript = told(kind, tmp_path)
    record = await import_transcript(service, transcript)
    assert json.loads((await export_session(service, record.id, "messages")).data) == list(
        await service.context(record.id)
    )
    everything = [message for message in transcript.messages if message.get("content") != SUMMARY]
    whole = await export_session(service, record.id, "messages", whole=True)
    assert json.loads(whole.data) == everything


@pytest.mark.anyio
async def test_what_cannot_be_done_is_said(service: SessionService) -> None:
    record = await service.create()
    with pytest.raises(InvalidInput, match="'xml' is no format to export: use one of holdfast, pi, messages"):
        await export_session(service, record.id, "xml")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="'pi' has all that was said in it anyway"):
        await export_session(service, record.id, "pi", whole=True)
    with pytest.raises(UnknownSession):
        await export_session(service, "gone", "pi")
