"""Random histories in every format, with the defects of real ones, can be imported."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from histories import PROFILES, wire
from holdfast import MemoryStore, SessionService, check
from holdfast.transcripts import PastCompaction, Transcript, TranscriptEntry, import_transcript


async def imported(transcript: Transcript) -> None:
    async with SessionService(MemoryStore()) as service:
        record = await import_transcript(service, transcript)
        context = await service.context(record.id)
        assert check(context.messages, transcript.format or "") == []
        assert len(await service.events(record.id, kind="message")) == len(transcript.entries)
        for _ in transcript.compactions:
            assert await service.verify(record.id) == []
            await service.undo(record.id)
        assert await service.verify(record.id) == []
        await service.append(record.id, _hello(transcript.format))
        assert check((await service.context(record.id)).messages, transcript.format or "") == []


def _hello(format: str | None) -> dict[str, Any]:
    return (
        {"role": "user", "parts": [{"text": "Go on."}]} if format == "gemini" else {"role": "user", "content": "Go on."}
    )


@given(format=st.sampled_from(PROFILES), data=st.data())
def test_import_random_history_is_kept_and_repaired_in_the_view(format: str, data: st.DataObject) -> None:
    messages = data.draw(wire(format, broken=True))
    ids = data.draw(
        st.lists(st.sampled_from([None, "a", "b", "\0", ""]), min_size=len(messages), max_size=len(messages))
    )
    places = sorted(data.draw(st.lists(st.integers(1, len(messages)), max_size=2)))
    head = {"gemini": {"role": "user", "parts": [{"text": "So far."}]}}.get(
        format, {"role": "user", "content": "So far."}
    )
    pasts = [
        PastCompaction(place, summary="So far.", kept=data.draw(st.integers(0, place)), head=(head,))
        for place in places
    ]
    entries = tuple(TranscriptEntry(message, id) for message, id in zip(messages, ids, strict=True))
    asyncio.run(imported(Transcript("pi", format, entries, tuple(pasts), id="s")))
