"""H1 without a session: search and read a list of messages by the references in its notes."""

from __future__ import annotations

import pytest
from recall_story import STORY

from holdfast import BlockingSessionService, MemoryStore, compact
from holdfast.errors import UnknownEvent, UnknownFormat
from holdfast.follow import ChainedIds
from holdfast.messages import decode_all
from holdfast.recall import BlockingRecall, recall_messages

pytestmark = pytest.mark.anyio


async def test_recall_messages_searches_and_reads_by_position() -> None:
    recall = await recall_messages(STORY)
    [hit] = (await recall.search("quarkling")).hits
    assert hit.reference == "#4"
    assert (await recall.read("#4")).text == f"#4, assistant\n{STORY[3]['content']}"


async def test_h1_recall_messages_reads_by_digest() -> None:
    ids = ChainedIds(decode_all(STORY)[0])
    recall = await recall_messages(STORY)
    for place, message in enumerate(STORY):
        passage = await recall.read(ids[place][:12])
        assert [event.seq for event in passage.events] == [place + 1]
        assert str(message.get("content") or "")[:40] in passage.text
    with pytest.raises(UnknownEvent):
        await recall.read("#ffffffff")


async def test_recall_messages_uses_the_digests_of_compact() -> None:
    result = compact(STORY, budget=300)
    assert result.archived and result.checkpoint is not None
    recall = await recall_messages(STORY)
    for run in result.checkpoint.archived:
        for id in (run.first, run.last):
            assert (await recall.read(id)).text


async def test_recall_messages_repaired_history_keeps_original_numbers() -> None:
    broken = [*STORY[:2], *STORY[3:]]
    recall = await recall_messages(broken)
    assert [hit.reference for hit in (await recall.search("quarkling")).hits] == ["#3"]
    result = compact(broken, budget=200)
    assert result.archived and result.checkpoint is not None
    ids = [id for run in result.checkpoint.archived for id in (run.first, run.last)]
    assert all([(await recall.read(id)).text for id in ids]), "its ids are those that compact gives"


async def test_recall_messages_accepts_lone_surrogates() -> None:
    recall = await recall_messages([{"role": "user", "content": "half \ud800 a tide"}])
    assert [hit.reference for hit in (await recall.search("tide")).hits] == ["#1"]
    assert (await recall.read("#1")).text == "#1, user\nhalf ? a tide"


async def test_recall_messages_unknown_format_is_refused() -> None:
    with pytest.raises(UnknownFormat):
        await recall_messages([{"kind": "x"}])


def test_blocking_recall_over_messages() -> None:
    with BlockingSessionService(MemoryStore()) as sessions:
        sessions.create(id="s")
        sessions.append("s", STORY)
        recall = BlockingRecall(sessions, "s")
        assert [hit.reference for hit in recall.search("quarkling").hits] == ["#4"]
        assert "quarkling" in recall.read("#4").text
        assert not recall.run("recall_read", {"ref": "#4"}).is_error
        assert recall.tools("anthropic")[0]["name"] == "recall_search"
