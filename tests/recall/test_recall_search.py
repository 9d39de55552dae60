"""H1: search finds archived events, with any query and script."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_story import ARCHIVED, STORY, append_story

from holdfast import MemoryStore, Recall, SessionService, SlidingWindow
from holdfast.errors import InvalidInput, InvalidLimit, UnknownSession
from holdfast.recall import reference
from holdfast.triggers import always

pytestmark = pytest.mark.anyio


async def refs(recall: Recall, query: str, **filters: Any) -> list[str]:
    return sorted((hit.reference for hit in (await recall.search(query, **filters)).hits), key=lambda ref: int(ref[1:]))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("quarkling", ["#4"]),
        ("QUARKling osterhaven", ["#4"]),
        ("arkli", ["#4"]),
        ("STRASSENFEST", ["#5"]),
        ("分片方案", ["#7"]),
        ("数据", ["#7", "#8"]),
        ("片", ["#7", "#8"]),
        ("pg_restore", ["#10", "#11"]),
        ("4711", ["#11", "#12"]),
        ("worker-4.log", ["#2"]),
        ("tides backup-2026", ["#10"]),
        ("k7 tuesday", ["#1"]),
        ("nowhere to be found", []),
    ],
)
async def test_h1_search_finds_archived_events(recall: Recall, query: str, expected: list[str]) -> None:
    found = await recall.search(query)
    assert sorted((hit.reference for hit in found.hits), key=lambda ref: int(ref[1:])) == expected
    assert all(hit.archived for hit in found.hits)
    assert not found.more


async def test_search_hit_has_reference_role_and_snippet(recall: Recall) -> None:
    [hit] = (await recall.search("osterhaven error")).hits
    assert (hit.session_id, hit.reference, hit.role, hit.tools, hit.archived) == (
        "s",
        "#3",
        "tool",
        ("read_file",),
        True,
    )
    assert "ERROR tide table of Osterhaven" in hit.snippet and len(hit.snippet) < 200


async def test_search_filters(recall: Recall) -> None:
    assert await refs(recall, "table") == ["#3", "#4", "#9", "#10", "#14"]
    assert await refs(recall, "table", role="tool") == ["#3"]
    assert await refs(recall, "table", role=("user", "tool")) == ["#3", "#9"]
    assert await refs(recall, "table", tool="run") == ["#10"]
    assert await refs(recall, "worker", tool=["read_file", "run"]) == ["#2", "#3"]
    assert await refs(recall, "worker", exclude_tool="read_file") == []
    assert await refs(recall, "table", archived=True) == ["#3", "#4", "#9", "#10"]
    assert await refs(recall, "table", archived=False) == ["#14"]
    assert await refs(recall, "table", kind="message", owner="ada") == ["#3", "#4", "#9", "#10", "#14"]
    assert await refs(recall, "table", kind="compaction") == await refs(recall, "table", owner="bob") == []
    assert await refs(recall, "table", lane="research") == []


async def test_search_since_and_until(recall: Recall) -> None:
    everything = await refs(recall, "table")
    for filters in ({"since": "1d"}, {"until": datetime.now() + timedelta(days=1)}, {"since": date(2020, 1, 1)}):
        assert await refs(recall, "table", **filters) == everything
    same = "2026-03-01"
    assert await refs(recall, "table", since=same, until=same) == []
    for filters in ({"until": "2020-01-01"}, {"since": "2999-01-01T00:00Z"}, {"until": date(1999, 12, 31)}):
        assert await refs(recall, "table", **filters) == []


async def test_search_one_lane_or_all(recall: Recall, service: SessionService) -> None:
    await service.append("s", {"role": "user", "content": "look up the tide table elsewhere"}, lane="research")
    assert await refs(recall, "elsewhere table", lane="research") == ["#16"]
    assert await refs(recall, "elsewhere table", lane="") == []
    assert await refs(recall, "elsewhere table") == ["#16"]


async def test_search_pages_contain_every_hit_once(recall: Recall) -> None:
    one = await recall.search("e", limit=100)
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = await recall.search("e", limit=3, offset=offset)
        seen += [hit.reference for hit in page.hits]
        offset = page.next
    assert seen == [hit.reference for hit in one.hits]
    assert len(seen) == len(set(seen)) > 6


async def test_search_page_that_holds_the_last_hit_is_the_last_page(recall: Recall) -> None:
    """Also where it is full: the offset of another page would lead to an empty one."""
    found = [hit.reference for hit in (await recall.search("table")).hits]
    assert len(found) == 5
    for limit, more in ((6, False), (5, False), (4, True)):
        page = await recall.search("table", limit=limit)
        assert ([hit.reference for hit in page.hits], page.more) == (found[:limit], more)
    last = await recall.search("table", limit=2, offset=3)
    assert ([hit.reference for hit in last.hits], last.next) == (found[3:], None)


async def test_search_one_session_or_all(recall: Recall, service: SessionService) -> None:
    await append_story(service, "t")
    everywhere = Recall(service)
    found = await everywhere.search("quarkling")
    assert sorted(hit.session_id for hit in found.hits) == ["s", "t"]
    assert [hit.session_id for hit in (await everywhere.search("quarkling", session_id="t")).hits] == ["t"]
    with pytest.raises(UnknownSession):
        await everywhere.search("quarkling", session_id="nowhere")


async def test_search_event_shown_by_checkpoint_is_not_archived(recall: Recall, service: SessionService) -> None:
    first = (await service.events("s"))[0]
    await service.undo("s")
    assert await refs(recall, "tuesday", archived=True) == []
    await service.pin("s", first.id)
    await service.compact("s", always, SlidingWindow(2))
    assert await refs(recall, "tuesday", archived=True) == []
    assert await refs(recall, "tuesday", archived=False) == ["#1"]
    assert await refs(recall, "quarkling", archived=True) == ["#4"]


async def test_search_all_sessions_marks_archived_by_each_context(recall: Recall, service: SessionService) -> None:
    await append_story(service, "t")
    await service.undo("s")
    await service.pin("s", (await service.events("s"))[0].id)
    await service.compact("s", always, SlidingWindow(2))
    everywhere = Recall(service)
    found = {hit.session_id: hit.archived for hit in (await everywhere.search("tuesday")).hits}
    assert found == {"s": False, "t": True}
    for archived in (True, False):
        with pytest.raises(InvalidInput, match="name the session, or leave out archived"):
            await everywhere.search("tuesday", archived=archived)
    assert (await everywhere.search("tuesday", archived=True, session_id="s")).hits == ()


async def test_search_session_deleted_meanwhile_is_ignored(
    recall: Recall, service: SessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(session_id: str) -> frozenset[str]:
        raise UnknownSession(session_id)

    monkeypatch.setattr(service, "shown", gone)
    assert [hit.reference for hit in (await Recall(service).search("tuesday")).hits] == ["#1"]


async def test_search_archived_agrees_with_events(recall: Recall, service: SessionService) -> None:
    everything = await refs(recall, "e", kind="message", limit=100)
    for archived, count in ((True, ARCHIVED), (False, len(STORY) - ARCHIVED)):
        listed = await service.events("s", archived=archived)
        expected = [name for name in everything if name in map(reference, listed)]
        assert len(listed) == count and expected
        assert await refs(recall, "e", archived=archived, limit=100) == expected


async def test_search_does_not_find_redacted_words(recall: Recall, service: SessionService) -> None:
    [hit] = (await recall.search("quarkling")).hits
    await service.redact("s", hit.event.id)
    assert (await recall.search("quarkling")).hits == ()


@pytest.mark.parametrize("query", ["", "   ", "\0", "\n\t", None, 7, "\ud800"], ids=repr)
async def test_search_query_without_words_is_refused(recall: Recall, query: Any) -> None:
    with pytest.raises(InvalidInput, match=r"no words|not valid Unicode"):
        await recall.search(query)


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ({"limit": 0}, "limit must be between 1 and 1,000"),
        ({"limit": 1_001}, "use offset for more"),
        ({"limit": 10**5_000}, "use offset for more"),
        ({"offset": -1}, "offset must be between 0 and 1,000,000,000"),
        ({"offset": 2**63 - 5}, "search for rarer words"),
        ({"offset": 10**5_000}, "search for rarer words"),
        ({"role": "wizard"}, "'wizard' is not a role: use one of system"),
        ({"kind": "bogus"}, "'bogus' is not a kind of event: use one of message"),
        ({"kind": ["message", "mesage"]}, "'mesage' is not a kind of event"),
        ({"since": "2026-03-02", "until": "2026-03-01"}, "since 2026-03-02 is later than until 2026-03-01"),
        ({"since": date(2026, 3, 2), "until": "9999d"}, "since 2026-03-02 is later than until 9999d"),
        ({"since": "tomorrow"}, "since takes a date like"),
        ({"until": "2026-13-01"}, "until takes a date like"),
        ({"since": "99999999d"}, "since takes a date like"),
        ({"since": "0001-01-01T00:00:00+05:00"}, "since takes a date like"),
        ({"until": "9999-12-31T23:00:00-05:00"}, "until takes a date like"),
    ],
)
async def test_search_invalid_filter_is_refused(recall: Recall, filters: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        await recall.search("table", **filters)
    assert isinstance(caught.value, InvalidLimit) == ("limit" in filters or "offset" in filters)


async def test_search_query_of_too_many_words_is_refused(recall: Recall) -> None:
    with pytest.raises(InvalidInput, match="20,000 words, more than 200: give a few rare ones"):
        await recall.search(" ".join(map(str, range(20_000))))


@pytest.mark.parametrize("filters", [{"tool": "\ud800"}, {"lane": "\ud800"}], ids=repr)
async def test_search_lone_surrogate_in_filter_matches_nothing(recall: Recall, filters: dict[str, Any]) -> None:
    assert await refs(recall, "table", **filters) == []


async def test_search_unsearchable_store_is_refused() -> None:
    class Plain:
        async def append(self) -> None: ...

    with pytest.raises(InvalidInput, match="Plain does not support search"):
        await Recall(SessionService(Plain())).search("x")  # type: ignore[arg-type]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
async def test_h1_search_any_text_finds_itself(text: str) -> None:
    async with SessionService(MemoryStore()) as service:
        await service.create(id="s")
        await service.append("s", {"role": "user", "content": f"before {text} after"})
        recall = Recall(service, "s")
        try:
            found = await recall.search(text)
        except InvalidInput as problem:
            assert "The query has no words" in str(problem)
            assert not any(character.isprintable() and not character.isspace() for character in text)
        else:
            assert [hit.reference for hit in found.hits] == ["#1"]
