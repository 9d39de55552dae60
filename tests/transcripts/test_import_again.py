"""Importing again: twice, after a crash, and after the session was continued; no event is doubled or lost."""

from __future__ import annotations

import signal
import sys
import textwrap
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.transcripts.tool_sessions import STORIES, write_session

from holdfast import MemoryStore, SessionService
from holdfast.errors import InvalidInput
from holdfast.stores import open_store
from holdfast.transcripts import (
    AlreadyImported,
    Transcript,
    import_exported,
    import_transcript,
    importing,
    read_transcript,
)

pytestmark = pytest.mark.anyio
every_tool = pytest.mark.parametrize("kind", STORIES)


async def exported(service: SessionService, id: str) -> list[dict[str, Any]]:
    """All records of a session without generated times."""
    return [record | {"time": "", "created": ""} for record in await service.export(id)]


async def freshly_imported(transcript: Transcript) -> list[dict[str, Any]]:
    async with SessionService(MemoryStore()) as service:
        return await exported(service, (await import_transcript(service, transcript)).id)


@every_tool
async def test_import_again_raises_already_imported(kind: str, tmp_path: Path) -> None:
    async with SessionService(MemoryStore()) as service:
        transcript = write_session(kind, tmp_path)
        record = await import_transcript(service, transcript)
        with pytest.raises(AlreadyImported, match="is already imported: to import it again, use another --id"):
            await import_transcript(service, transcript)
        assert await service.get(record.id) == record
        other = await import_transcript(service, transcript, "other")
        assert (await service.context("other")).messages == (await service.context(record.id)).messages
        assert other.id == "other"


class Crash(Exception):
    """Simulates a process killed between two writes."""


class CrashingStore(MemoryStore):
    """Raises at the write with this number; earlier writes stay."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    async def append(self, *given: Any, **named: Any) -> Any:
        if not self.left:
            raise Crash
        self.left -= 1
        return await super().append(*given, **named)


@every_tool
async def test_import_again_completes_an_interrupted_import(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "APPEND_BATCH", 1)
    transcript = write_session(kind, tmp_path)
    whole = await freshly_imported(transcript)
    for at in range(len(whole) - 1):
        store = CrashingStore(at)
        service = SessionService(store)
        with pytest.raises(Crash):
            await import_transcript(service, transcript)
        store.left = 100
        record = await import_transcript(service, transcript)
        assert await exported(service, record.id) == whole
        assert await service.verify(record.id) == []


@pytest.mark.parametrize("kind", ["claude-code", "codex", "pi", "messages"])
async def test_import_again_adds_new_messages_of_the_tool(kind: str, tmp_path: Path) -> None:
    for lines in range(4, len(STORIES[kind]())):
        async with SessionService(MemoryStore()) as service:
            earlier = write_session(kind, tmp_path, lines=lines)
            record = await import_transcript(service, earlier, "mine")
            later = write_session(kind, tmp_path)
            try:
                record = await import_transcript(service, later, "mine")
            except AlreadyImported:
                assert len(later.entries) == len(earlier.entries)
            assert (await service.context(record.id)).messages == (await _context(later))


async def _context(transcript: Transcript) -> list[dict[str, Any]]:
    async with SessionService(MemoryStore()) as service:
        return (await service.context((await import_transcript(service, transcript)).id)).messages


async def test_import_again_refuses_session_continued_here(tmp_path: Path) -> None:
    async with SessionService(MemoryStore()) as service:
        record = await import_transcript(service, write_session("pi", tmp_path, lines=5))
        await service.append(record.id, {"role": "user", "content": "Mine."})
        version = (await service.get(record.id)).version
        with pytest.raises(InvalidInput, match="was continued here: to import this one too, use another --id"):
            await import_transcript(service, write_session("pi", tmp_path))
        assert (await service.get(record.id)).version == version


async def test_import_again_refuses_different_session_of_same_id(tmp_path: Path) -> None:
    async with SessionService(MemoryStore()) as service:
        await import_transcript(service, write_session("pi", tmp_path), "same")
        with pytest.raises(InvalidInput, match="Session 'same' already exists, and is a different one"):
            await import_transcript(service, write_session("codex", tmp_path), "same")


async def test_import_exported_again_completes_the_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With lanes, a pin, an undone compaction and an effective one."""
    monkeypatch.setattr(importing, "APPEND_BATCH", 2)
    async with SessionService(MemoryStore()) as source:
        record = await import_transcript(source, write_session("pi", tmp_path))
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
        store = CrashingStore(at)
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
async def test_import_again_after_killed_process(store: str, tmp_path: Path) -> None:
    write_session("pi", tmp_path)
    script = """
        import asyncio, os, signal, sys
        from holdfast import SessionService
        from holdfast.stores import open_store
        from holdfast.transcripts import import_transcript, importing, read_transcript

        importing.APPEND_BATCH = 1

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
        assert await exported(service, "s-3") == await freshly_imported(transcript)
        assert await service.verify("s-3") == []
