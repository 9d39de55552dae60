"""Every available real session, imported: the context is the tool's, and no message is lost.

Some of them, unless HOLDFAST_WHOLE is set; then all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import MemoryStore, SessionService, check
from holdfast.context import INTERRUPTED_TEXT
from holdfast.context.events import EventKind
from holdfast.transcripts import Transcript, entry_numbers, import_transcript, live_context, read_transcript
from real_sessions import FILES, WHOLE

SAMPLE = FILES if WHOLE else [*FILES[:4], *FILES[5::9], *FILES[-2:]]

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("path", list(dict.fromkeys(SAMPLE)), ids=lambda path: path.name[:13]),
]


def without_orphans(messages: list[dict[str, Any]]) -> list[Any]:
    """The messages without incomplete tool pairs: a view adds results to open calls and drops orphan results."""
    kept: list[Any] = []
    calls: set[str] = set()
    for message in messages:
        if not isinstance(blocks := message.get("content"), list):
            kept.append(message)
            continue
        calls.update(str(block["id"]) for block in blocks if block.get("type") == "tool_use")
        for block in blocks:
            orphan = "tool_use_id" in block and block["tool_use_id"] not in calls
            if not orphan and INTERRUPTED_TEXT not in str(block.get("content")):
                kept.append([message["role"], block])
    return kept


def everything(transcript: Transcript) -> list[dict[str, Any]]:
    """All messages except Claude Code's summaries, which are in checkpoints."""
    claude = transcript.kind == "claude-code"
    summaries = {past.after for past in transcript.compactions if claude and past.summary is not None}
    return [message for place, message in enumerate(transcript.messages) if place not in summaries]


async def test_import_real_entry_numbers_match_events(path: Path) -> None:
    transcript = read_transcript(path)
    async with SessionService(MemoryStore()) as service:
        record = await import_transcript(service, transcript)
        events = {event.seq: event for event in await service.events(record.id)}
        marks = {seq for seq, event in events.items() if event.kind == EventKind.COMPACTION}
        view = live_context(transcript)
        for messages, numbers in ((transcript.messages, entry_numbers(transcript)), (view.messages, view.numbers)):
            for message, number in zip(messages, numbers, strict=True):
                same = number in marks or events[number].body["message"] == message
                assert same or "cleared" in str(message)
        assert set((await service.context(record.id)).numbers) <= set(events)


async def test_import_real_context_matches_the_tool_and_can_be_undone(path: Path) -> None:
    transcript = read_transcript(path)
    async with SessionService(MemoryStore()) as service:
        record = await import_transcript(service, transcript)
        context = await service.context(record.id)
        assert without_orphans(context.messages) == without_orphans(live_context(transcript).messages)
        assert check(context.messages, context.format or "openai-chat") == []
        assert not context.known
        assert await service.verify(record.id) == []
        compactions = await service.events(record.id, kind=EventKind.COMPACTION)
        assert len(compactions) == len(transcript.compactions)
        for _ in compactions:
            await service.undo(record.id)
        assert without_orphans((await service.context(record.id)).messages) == without_orphans(everything(transcript))
        assert await service.verify(record.id) == []
