"""Importing twice, after a crash, and after the session has gone on: nothing is doubled, nothing is lost."""

from __future__ import annotations

import signal
import sys
import textwrap
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast import MemoryStore, SessionService
from holdfast.errors import InvalidInput
from holdfast.stores import open_store
from holdfast.transcripts import (
    AlreadyThere,
    Transcript,
    import_exported,
    import_transcript,
    importing,
    read_transcript,
)

from .told_by_tools import STORIES, told

pytestmark = pytest.mark.anyio
every_tool = pytest.mark.parametrize("kind", STORIES)


async def exported(service: SessionService, id: str) -> list[dict[str, Any]]:
    """All of a session but the times that were made up."""
    return [record | {"time": "", "created": ""} for record in await service.export(id)]


async def imported_afresh(transcript: Transcript) -> list[dict[str, Any]]:
    async with SessionService(MemoryStore()) as service:
        return await exported(service, (await import_transcript(service, transcript)).id)


@every_tool
async def test_the_second_time_it_is_there_already(kind: str, tmp_path: Path) -> None:
    async with SessionService(MemoryStore()) as service:
        transcript = told(kind, tmp_path)
        record = await import_transcript(service, transcript)
        with pytest.raises(AlreadyThere, match="is there already: to have it once more, give it another --id"):
            await import_transcript(service, transcript)
        assert await service.get(record.id) == record
        other = await import_transcript(service, transcript, "other")
        assert (await service.context("other")).messages == (await service.context(record.id)).messages
        assert other.id == "other"


class Crash(Exception):
    """Stands for a process that was killed between two writes."""


class Dying(MemoryStore):
    """Dies at the write with this number; what was acknowledged before stays."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    async def append(self, *given: Any, **named: Any) -> Any:
        if not self.left:
            raise Crash
        self.left -= 1
        return await super().append(*given, **named)


@every_tool
async def test_an_import_that_broke_off_is_completed_by_the_next(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "BATCH", 1)
    transcript = told(kind, tmp_path)
    whole = await imported_afresh(transcript)
    for at in range(len(whole) - 1):
        store = Dying(at)
        service = SessionService(store)
        with pytest.raises(Crash):
            await import_transcript(service, transcript)
        store.left = 100
        record = await import_transcript(service, transcript)
        assert await exported(service, record.id) == whole
        assert await service.verify(record.id) == []


@pytest.mark.parametrize("kind", ["claude-code", "codex", "pi", "messages"])
async def test_a_session_that_went_on_in_its_own_tool_is_brought_up_to_date(kind: str, tmp_path: Path) -> None:
    for lines in range(4, len(STORIES[kind]())):
        async with SessionService(MemoryStore()) as service:
            earlier = told(kind, tmp_path, lines=lines)
            record = await import_transcript(service, earlier, "mine")
            later = told(kind, tmp_path)
            try:
                record = await import_transcript(service, later, "mine")
            except AlreadyThere:
                assert len(later.entries) == len(earlier.entries)
            assert (await service.context(record.id)).messages == (await _context(later))


async def _context(transcript: Transcript) -> list[dict[str, Any]]:
    async with SessionService(MemoryStore()) as service:
        return (await service.context((await import_transcript(service, transcript)).id)).messages


async def test_a_session_that_went_on_here_is_left_alone(tmp_path: Path) -> None:
    async with SessionService(MemoryStore()) as service:
        record = await import_transcript(service, told("pi", tmp_path, lines=5))
        await service.append(record.id, {"role": "user", "content": "Mine."})
        version = (await service.get(record.id)).version
        with pytest.raises(InvalidInput, match="has gone on by itself: to have this one too, give it another --id"):
            await import_transcript(service, told("pi", tmp_path))
        assert (await service.get(record.id)).version == version


async def test_another_session_under_the_same_id_is_left_alone(tmp_path: Path) -> None:
    async with SessionService(MemoryStore()) as service:
        await import_transcript(service, told("pi", tmp_path), "same")
        with pytest.raises(InvalidInput, match="Session 'same' is there already, and it is another one"):
            await import_transcript(service, told("codex", tmp_path), "same")


async def test_our_own_exports_are_completed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With lanes, a pin, an undone compaction and one in force."""
    monkeypatch.setattr(importing, "BATCH", 2)
    async with SessionService(MemoryStore()) as source:
        record = await import_transcript(source, told("pi", tmp_path))
        await source.undo(record.id)
        await source.pin(record.id, "1")
        await source.append(record.id, {"role": "user", "content": "Look."}, lane="scout")
        await source.append(record.id, {"role": "user", "content": "More words. " * 50})
        await source.append(record.id, {"role": "assistant", "content": "Less. " * 400})
        await source.append(record.id, {"role": "user", "content": "Good."})
        assert (await source.compact(record.id, budget=400)).outcome == "compacted"
        records, context = await source.export(record.id), await source.context(record.id)
        lane = await source.context(record.id, "scout")
    for at in range(len(records) - 1):
        store = Dying(at)
        service = SessionService(store)
        try:
            await import_exported(service, records)
        except Crash:
            store.left = 100
            await import_exported(service, records)
        assert await service.export(record.id) == records
        assert (await service.context(record.id)).messages == context.messages
        assert (await service.context(record.id, "scout")).messages == lane.messages
        assert await service.verify(record.id) == []


@pytest.mark.parametrize("store", ["agent.db", "logs"])
async def test_a_process_that_was_really_killed(store: str, tmp_path: Path) -> None:
    told("pi", tmp_path)
    script = """
        import asyncio, os, signal, sys
        from holdfast import SessionService
        from holdfast.stores import open_store
        from holdfast.transcripts import import_transcript, importing, read_transcript

        importing.BATCH = 1

        async def main():
            service = SessionService(open_store(sys.argv[2]))
            append, written = service.store.append, []

            async def until_killed(*given, **named):
                if len(written) == 7:
                    os.kill(os.getpid(), signal.SIGKILL)
                written.append(await append(*given, **named))
                return written[-1]

            service.store.append = until_killed
            await import_transcript(service, read_transcript(sys.argv[1]))

        asyncio.run(main())
    """
    place = tmp_path / store
    if not place.suffix:
        place.mkdir()
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "pi.jsonl"), str(place)]
    done = await anyio.run_process(command, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    transcript = read_transcript(tmp_path / "pi.jsonl")
    async with SessionService(open_store(place)) as service:
        assert (await service.get("s-3")).version == 7
        await import_transcript(service, transcript)
        assert await exported(service, "s-3") == await imported_afresh(transcript)
        assert await service.verify("s-3") == []
