"""H1: read archived events in passages of bounded size."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_story import LOG

from holdfast import MemoryStore, Recall, SessionService
from holdfast.errors import InvalidLimit
from holdfast.recall.passage import MIN_PASSAGE_TOKENS, elide_middle, truncate_to_tokens
from holdfast.tokens import Tokenizer

pytestmark = pytest.mark.anyio
count = Tokenizer().measure_text


async def test_read_one_event(recall: Recall) -> None:
    passage = await recall.read("#4")
    heading, body = passage.text.split("\n", 1)
    assert re.fullmatch(r"#4, assistant, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, archived", heading)
    assert body == "The tide table of Osterhaven is missing, so the quarkling check fails."
    assert [event.seq for event in passage.events] == [4]
    assert passage.tokens == count(passage.text)


async def test_read_calls_and_results_name_their_tool(recall: Recall) -> None:
    passage = await recall.read("#10-#12")
    assert '→ run {"command":"pg_restore --table tides backup-2026-03-11.dump"}' in passage.text
    assert "← run pg_restore: done, 4711 rows" in passage.text
    assert [event.seq for event in passage.events] == [10, 11, 12]


async def test_read_live_event_is_not_marked_archived(recall: Recall) -> None:
    assert "archived" in (await recall.read("#12")).text
    assert "archived" not in (await recall.read("#13-#14")).text


async def test_read_other_event_kinds_as_text(recall: Recall, service: SessionService) -> None:
    compaction = (await recall.read("#15")).text
    assert compaction.startswith("#15, compaction") and "12 events archived" in compaction
    await service.pin("s", (await service.events("s"))[0].id)
    await service.redact("s", (await service.events("s"))[1].id)
    await service.undo("s")
    assert "pinned: event" in (await recall.read("#16")).text
    assert "was removed by its owner" in (await recall.read("#17")).text
    assert "before any compaction" in (await recall.read("#18")).text


@pytest.mark.parametrize("limit", [MIN_PASSAGE_TOKENS, 100, 500])
async def test_read_continued_passages_make_up_the_event(recall: Recall, limit: int) -> None:
    read, next, pieces = "", "#3", 0
    while next:
        passage = await recall.read(next, max_tokens=limit)
        assert passage.tokens == count(passage.text) <= limit
        read += passage.text.split("\n", 1)[1]
        next, pieces = passage.next or "", pieces + 1
    assert read == f"← read_file {LOG}"
    assert pieces > 2


async def test_read_range_continues_where_it_stopped(recall: Recall) -> None:
    first = await recall.read("#1-#6", max_tokens=200)
    assert first.next and re.fullmatch(r"#3@\d+-#6", first.next)
    seen = [event.seq for event in first.events]
    passage = first
    while passage.next:
        passage = await recall.read(passage.next, max_tokens=2_000)
        seen += [event.seq for event in passage.events]
    assert sorted(set(seen)) == [1, 2, 3, 4, 5, 6]


async def test_read_too_small_limit_is_refused(recall: Recall) -> None:
    with pytest.raises(InvalidLimit, match=f"at least {MIN_PASSAGE_TOKENS}"):
        await recall.read("#1", max_tokens=MIN_PASSAGE_TOKENS - 1)


async def test_read_images_by_name(service: SessionService) -> None:
    await service.create(id="s")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4_000}}
    place = {"type": "image_url", "image_url": {"url": "https://example.org/crane.png"}}
    await service.append("s", {"role": "user", "content": [{"type": "text", "text": "see"}, image, place]})
    passage = await Recall(service, "s").read("#1")
    assert passage.text.endswith("see\n[image]\n[image: https://example.org/crane.png]")


@given(st.text(max_size=2_000), st.integers(1, 80))
def test_truncate_to_tokens_fits_and_is_a_prefix(text: str, limit: int) -> None:
    part = truncate_to_tokens(text, limit, count)
    assert text.startswith(part)
    assert count(part) <= limit or len(part) <= 1
    assert part or not text


@given(st.text(max_size=2_000), st.integers(10, 80))
def test_elide_middle_fits_and_keeps_both_ends(text: str, limit: int) -> None:
    short = elide_middle(text, limit, count)
    assert count(short) <= limit
    assert short == text or (short[0], short[-1]) == (text[0], text[-1])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=400), min_size=1, max_size=8))
async def test_read_every_passage_is_within_its_limit(texts: list[str]) -> None:
    async with SessionService(MemoryStore()) as service:
        await service.create(id="s")
        for text in texts:
            await service.append("s", {"role": "user", "content": text})
        recall, read, next = Recall(service, "s"), set(), f"#1-#{len(texts)}"
        while next:
            passage = await recall.read(next, max_tokens=MIN_PASSAGE_TOKENS)
            assert passage.tokens <= MIN_PASSAGE_TOKENS and passage.text
            assert passage.next != next
            read |= {event.seq for event in passage.events}
            next = passage.next or ""
        assert read == set(range(1, len(texts) + 1))
