"""H1: what was archived can be read back, in pieces of a bounded size that make up the whole."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_story import LOG

from holdfast import MemoryStore, Recall, SessionService
from holdfast.errors import InvalidLimit
from holdfast.recall.passage import SMALLEST, fitting, shortened
from holdfast.tokens import Tokenizer

pytestmark = pytest.mark.anyio
count = Tokenizer().measure_text


async def test_one_event(recall: Recall) -> None:
    passage = await recall.read("#4")
    heading, body = passage.text.split("\n", 1)
    assert re.fullmatch(r"#4, assistant, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, archived", heading)
    assert body == "The tide table of Osterhaven is missing, so the quarkling check fails."
    assert [event.seq for event in passage.events] == [4]
    assert passage.tokens == count(passage.text)


async def test_calls_and_results_name_their_tool(recall: Recall) -> None:
    passage = await recall.read("#10-#12")
    assert '→ run {"command":"pg_restore --table tides backup-2026-03-11.dump"}' in passage.text
    assert "← run pg_restore: done, 4711 rows" in passage.text
    assert [event.seq for event in passage.events] == [10, 11, 12]


async def test_what_is_still_shown_is_not_called_archived(recall: Recall) -> None:
    assert "archived" in (await recall.read("#12")).text
    assert "archived" not in (await recall.read("#13-#14")).text


async def test_other_events_are_told_in_words(recall: Recall, service: SessionService) -> None:
    compaction = (await recall.read("#15")).text
    assert compaction.startswith("#15, compaction") and "12 events archived" in compaction
    await service.pin("s", (await service.events("s"))[0].id)
    await service.redact("s", (await service.events("s"))[1].id)
    await service.undo("s")
    assert "pinned: event" in (await recall.read("#16")).text
    assert "was removed by its owner" in (await recall.read("#17")).text
    assert "before any compaction" in (await recall.read("#18")).text


@pytest.mark.parametrize("limit", [SMALLEST, 100, 500])
async def test_pieces_make_up_the_whole(recall: Recall, limit: int) -> None:
    read, next, pieces = "", "#3", 0
    while next:
        passage = await recall.read(next, max_tokens=limit)
        assert passage.tokens == count(passage.text) <= limit
        read += passage.text.split("\n", 1)[1]
        next, pieces = passage.next or "", pieces + 1
    assert read == f"← read_file {LOG}"
    assert pieces > 2


async def test_a_range_goes_on_where_it_stopped(recall: Recall) -> None:
    first = await recall.read("#1-#6", max_tokens=200)
    assert first.next and re.fullmatch(r"#3@\d+-#6", first.next)
    seen = [event.seq for event in first.events]
    passage = first
    while passage.next:
        passage = await recall.read(passage.next, max_tokens=2_000)
        seen += [event.seq for event in passage.events]
    assert sorted(set(seen)) == [1, 2, 3, 4, 5, 6]


async def test_a_limit_too_small_for_anything_is_an_error(recall: Recall) -> None:
    with pytest.raises(InvalidLimit, match=f"at least {SMALLEST}"):
        await recall.read("#1", max_tokens=SMALLEST - 1)


async def test_images_are_named(service: SessionService) -> None:
    await service.create(id="s")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4_000}}
    place = {"type": "image_url", "image_url": {"url": "https://example.org/crane.png"}}
    await service.append("s", {"role": "user", "content": [{"type": "text", "text": "see"}, image, place]})
    passage = await Recall(service, "s").read("#1")
    assert passage.text.endswith("see\n[image]\n[image: https://example.org/crane.png]")


@given(st.text(max_size=2_000), st.integers(1, 80))
def test_a_cut_text_fits_and_goes_on(text: str, limit: int) -> None:
    part = fitting(text, limit, count)
    assert text.startswith(part)
    assert count(part) <= limit or len(part) <= 1
    assert part or not text


@given(st.text(max_size=2_000), st.integers(10, 80))
def test_a_shortened_text_fits_and_keeps_both_ends(text: str, limit: int) -> None:
    short = shortened(text, limit, count)
    assert count(short) <= limit
    assert short == text or (short[0], short[-1]) == (text[0], text[-1])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=400), min_size=1, max_size=8))
async def test_every_passage_is_within_its_bound(texts: list[str]) -> None:
    async with SessionService(MemoryStore()) as service:
        await service.create(id="s")
        for text in texts:
            await service.append("s", {"role": "user", "content": text})
        recall, read, next = Recall(service, "s"), set(), f"#1-#{len(texts)}"
        while next:
            passage = await recall.read(next, max_tokens=SMALLEST)
            assert passage.tokens <= SMALLEST and passage.text
            assert passage.next != next
            read |= {event.seq for event in passage.events}
            next = passage.next or ""
        assert read == set(range(1, len(texts) + 1))
