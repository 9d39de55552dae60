"""Every real session that is at hand, imported: the context is the tool's own, and nothing is lost.

Some of them, unless HOLDFAST_WHOLE is set; then all.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from holdfast import MemoryStore, SessionService, check
from holdfast.events import Kind
from holdfast.transcripts import Transcript, import_transcript, in_view, numbers_of, read_transcript
from holdfast.view import INTERRUPTED
from real_sessions import FILES

WHOLE = bool(os.environ.get("HOLDFAST_WHOLE"))
SAMPLE = FILES if WHOLE else [*FILES[:4], *FILES[5::9], *FILES[-2:]]

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("path", list(dict.fromkeys(SAMPLE)), ids=lambda path: path.name[:13]),
]


def said(messages: list[dict[str, Any]]) -> list[Any]:
    """What was said and done, without halves of tool pairs: a view answers open calls, and leaves out orphans."""
    kept: list[Any] = []
    calls: set[str] = set()
    for message in messages:
        if not isinstance(blocks := message.get("content"), list):
            kept.append(message)
            continue
        calls.update(str(block["id"]) for block in blocks if block.get("type") == "tool_use")
        for block in blocks:
            orphan = "tool_use_id" in block and block["tool_use_id"] not in calls
            if not orphan and INTERRUPTED not in str(block.get("content")):
                kept.append([message["role"], block])
    return kept


def everything(transcript: Transcript) -> list[dict[str, Any]]:
    """All messages but Claude Code's summaries, which are what a checkpoint shows."""
    claude = transcript.kind == "claude-code"
    summaries = {past.after for past in transcript.compactions if claude and past.summary is not None}
    return [message for place, message in enumerate(transcript.messages) if place not in summaries]


async def test_each_message_has_the_number_of_its_event(path: Path) -> None:
    transcript = read_transcript(path)
    async with SessionService(MemoryStore()) as service:
        record = await import_transcript(service, transcript)
        events = {event.seq: event for event in await service.events(record.id)}
        marks = {seq for seq, event in events.items() if event.kind == Kind.COMPACTION}
        view = in_view(transcript)
        for messages, numbers in ((transcript.messages, numbers_of(transcript)), (view.messages, view.numbers)):
            for message, number in zip(messages, numbers, strict=True):
                told = number in marks or events[number].body["message"] == message
                assert told or "cleared" in str(message)
        assert set((await service.context(record.id)).numbers) <= set(events)


async def test_it_is_what_the_tool_would_send_and_can_be_undone(path: Path) -> None:
    transcript = read_transcript(path)
    async with SessionService(MemoryStore()) as service:
        record = await import_transcript(service, transcript)
        context = await service.context(record.id)
        assert said(context.messages) == said(in_view(transcript).messages)
        assert check(context.messages, context.format or "openai-chat") == []
        assert context.known == any(entry.usage for entry in _since(transcript))
        assert await service.verify(record.id) == []
        compactions = await service.events(record.id, kind=Kind.COMPACTION)
        assert len(compactions) == len(transcript.compactions)
        for _ in compactions:
            await service.undo(record.id)
        assert said((await service.context(record.id)).messages) == said(everything(transcript))
        assert await service.verify(record.id) == []


def _since(transcript: Transcript) -> Any:
    """Usage from before a compaction says nothing about what came after it (P3)."""
    return transcript.entries[transcript.compactions[-1].after :] if transcript.compactions else transcript.entries
