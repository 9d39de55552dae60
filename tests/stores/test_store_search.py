"""H1: full-text search on every store: conditions, order, pages, snippets."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.context.events import Event, LaneTip
from holdfast.stores import MemoryStore, SQLiteStore, Where, search
from holdfast.stores.search import SNIPPET_LENGTH, Query, make_snippet, normalize
from holdfast.stores.sqlite import index
from stores.logs import begin, fork, message, record
from stores.test_store_conformance import fill_search_index

pytestmark = pytest.mark.anyio


def chat_event(
    event_id: str, payload: dict[str, Any], time: str = "2026-01-01T00:00:00.000Z", lane: str | None = None
) -> Event:
    return Event(event_id, "message", time, {"message": payload, "format": "openai-chat"}, lane)


def call_event(event_id: str, call_id: str, tool: str, arguments: str = "{}") -> Event:
    function = {"name": tool, "arguments": arguments}
    calls = [{"id": call_id, "type": "function", "function": function}]
    return chat_event(event_id, {"role": "assistant", "content": None, "tool_calls": calls})


def result_event(event_id: str, call_id: str, text: str) -> Event:
    return chat_event(event_id, {"role": "tool", "tool_call_id": call_id, "content": text})


async def search_ids(store: Any, query: str, **conditions: Any) -> list[str]:
    options = {name: conditions.pop(name) for name in ("session_id", "owner", "limit", "offset") if name in conditions}
    return [hit.event.id for hit in await store.search(query, where=Where(**conditions), **options)]


@pytest.fixture(params=[True, False], ids=["indexed", "not yet indexed"])
async def filled(store: Any, request: pytest.FixtureRequest) -> Any:
    await begin(store, owner="ann")
    events = [
        chat_event("u1", {"role": "user", "content": "please find the needle"}, "2026-01-01T10:00:00.000Z"),
        call_event("a1", "c1", "grep", '{"pattern": "needle"}'),
        call_event("a2", "c2", "read", '{"path": "needle.txt"}'),
        result_event("t1", "c1", "needle in line 7"),
        result_event("t2", "c2", "all about the needle"),
        chat_event("u2", {"role": "user", "content": "a needle at last"}, "2026-02-01T10:00:00.000Z"),
    ]
    for event in events:
        await store.append("s", [event])
    await store.append("s", [chat_event("x1", {"role": "user", "content": "needle, elsewhere"}, lane="sub")])
    mark = Event("c1", "compaction", "2026-02-02T00:00:00.000Z", {"summary": "a needle was found", "boundary": "t1"})
    await store.append("s", [mark], tip=LaneTip(epoch="c1", start=4))
    await begin(store, session_id="other", owner="bob")
    await store.append("other", [message("o1", "another needle")])
    if request.param:
        await fill_search_index(store)
    return store


CONDITIONS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"u1", "a1", "a2", "t1", "t2", "u2", "x1", "c1", "o1"}),
    ({"session_id": "s"}, {"u1", "a1", "a2", "t1", "t2", "u2", "x1", "c1"}),
    ({"owner": "bob"}, {"o1"}),
    ({"kinds": ("compaction",)}, {"c1"}),
    ({"kinds": ("compaction", "unheard-of")}, {"c1"}),
    ({"roles": ("tool",)}, {"t1", "t2"}),
    ({"roles": ("tool", "assistant")}, {"a1", "a2", "t1", "t2"}),
    ({"tools": ("grep",)}, {"a1", "t1"}),
    ({"tools": ("grep", "read")}, {"a1", "a2", "t1", "t2"}),
    ({"tools": ("grep",), "roles": ("tool",)}, {"t1"}),
    ({"exclude_tools": ("grep",), "session_id": "s", "lane": ""}, {"u1", "a2", "t2", "u2", "c1"}),
    ({"lane": "sub"}, {"x1"}),
    ({"lane": "", "session_id": "s", "roles": ("user",)}, {"u1", "u2"}),
    ({"since": "2026-01-15"}, {"u2", "c1"}),
    ({"until": "2026-01-15", "roles": ("user",), "session_id": "s"}, {"u1", "x1"}),
    ({"since": "2027"}, set()),
    ({"archived": True}, {"u1", "a1", "a2", "t1"}),
    ({"archived": False}, {"t2", "u2", "x1", "o1"}),
    ({"archived": True, "visible_ids": frozenset({"u1"})}, {"a1", "a2", "t1"}),
    ({"archived": False, "visible_ids": frozenset({"u1"}), "session_id": "s"}, {"u1", "t2", "u2", "x1"}),
]


async def test_search_conditions_select_events(filled: Any) -> None:
    for conditions, expected in CONDITIONS:
        assert set(await search_ids(filled, "needle", **conditions)) == expected, conditions


async def test_search_event_without_time_never_matches_time_range(store: Any) -> None:
    await begin(store)
    await store.append("s", [chat_event("e1", {"role": "user", "content": "a needle"}, time="")])
    for _ in range(2):
        assert await search_ids(store, "needle") == ["e1"]
        assert await search_ids(store, "needle", since="0001") == await search_ids(store, "needle", until="9999") == []
        await fill_search_index(store)


async def test_search_hit_has_role_tools_and_archived(filled: Any) -> None:
    hits = {hit.event.id: hit for hit in await filled.search("needle", session_id="s")}
    assert (hits["t1"].role, hits["t1"].tools, hits["t1"].archived) == ("tool", ("grep",), True)
    assert (hits["a2"].role, hits["a2"].tools, hits["a2"].archived) == ("assistant", ("read",), True)
    assert (hits["c1"].role, hits["c1"].tools, hits["c1"].archived) == (None, (), False)
    assert (hits["u2"].reference, hits["u2"].archived) == ("#6", False)


async def test_search_in_fork_sees_inherited_events(filled: Any) -> None:
    await fork(filled, "s", 4, "f", **{"": LaneTip(start=2)})
    await filled.append("f", [message("f1", "needle of the fork")])
    assert set(await search_ids(filled, "needle", session_id="f")) == {"u1", "a1", "a2", "t1", "f1"}
    assert set(await search_ids(filled, "needle", session_id="f", archived=True)) == {"u1", "a1"}
    assert set(await search_ids(filled, "needle", session_id="f", tools=("grep",))) == {"a1", "t1"}


async def test_search_ignores_roles_ids_and_field_names(filled: Any) -> None:
    for query in ("function", "tool_call_id", "openai-chat", "assistant", "c2", "boundary", "tool_calls"):
        assert await search_ids(filled, query) == [], query


async def test_search_ranks_whole_words_then_newest(store: Any) -> None:
    await begin(store)
    for event_id, text in (("e1", "run it"), ("e2", "a brunch"), ("e3", "run it"), ("e4", "trunk road")):
        await store.append("s", [message(event_id, text)])
    await fill_search_index(store)
    assert (await search_ids(store, "run"))[:2] == ["e3", "e1"]
    assert set((await search_ids(store, "run"))[2:]) == {"e2", "e4"}
    assert await search_ids(store, "run", limit=1, offset=1) == ["e1"]


async def test_search_ranks_pool_by_pool(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the newest matches compete for the first page, whatever the length of the log."""
    monkeypatch.setattr(search, "RANKING_POOL", 3)
    await begin(store)
    texts = ["needle", "needle hay", "needle hay hay hay", "needle", "needle " + "hay " * 50, "needle hay"]
    for place, text in enumerate(texts):
        await store.append("s", [message(f"e{place}", text)])
    for done in (False, True):
        if done:
            await fill_search_index(store)
        assert await search_ids(store, "needle", session_id="s") == ["e3", "e5", "e4", "e0", "e1", "e2"]
        pages = [await search_ids(store, "needle", session_id="s", limit=2, offset=offset) for offset in (0, 2, 4, 6)]
        assert pages == [["e3", "e5"], ["e4", "e0"], ["e1", "e2"], []]


async def test_ids_returns_ids_with_prefix(store: Any) -> None:
    await begin(store, "ab1", "ab2", "b1", "äb", "%_")
    assert await store.ids("s", "ab", 5) == ["ab1", "ab2"]
    assert await store.ids("s", "ab", 1) == ["ab1"]
    assert await store.ids("s", "ä", 5) == ["äb"]
    assert await store.ids("s", "%", 5) == ["%_"]
    assert await store.ids("s", "_", 5) == []
    await fork(store, "s", 1, "f")
    await store.append("f", [message("abf")])
    assert await store.ids("f", "ab", 5) == ["ab1", "abf"]


async def test_search_time_range_uses_index_spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "BLOCK_ROWS", 2)
    async with SQLiteStore(tmp_path / "s.db") as store:
        await store.create(record("s"))
        for day in range(1, 10):
            await store.append(
                "s", [chat_event(f"d{day}", {"role": "user", "content": "a day"}, f"2026-01-0{day}T12:00:00Z")]
            )
        await fill_search_index(store)
        assert await store._read(lambda c: index.rows_in_time_range(c, "2026-01-04", "2026-01-06")) == (4, 5)
        assert sorted(await search_ids(store, "day", since="2026-01-04", until="2026-01-06")) == ["d4", "d5"]
        assert sorted(await search_ids(store, "day", until="2026-01-03")) == ["d1", "d2"]
        assert await search_ids(store, "day", since="2026-02") == []


async def test_search_by_reader_fills_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.stores.sqlite import store as module
    from holdfast.stores.sqlite import writer

    monkeypatch.setattr(writer, "IDLE_SECONDS", 60)
    async with SQLiteStore(tmp_path / "s.db") as store:
        await begin(store, "e1", "e2", "e3")
    monkeypatch.setattr(writer, "IDLE_SECONDS", 0.001)
    monkeypatch.setattr(module, "MAX_SCANNED_ROWS", 2)
    async with SQLiteStore(tmp_path / "s.db") as store:
        assert len(await store.search("says")) == 3
        with anyio.fail_after(20):
            while await store._read(index.unindexed_rows):  # noqa: ASYNC110 - the writer's thread does it when it is idle
                await anyio.sleep(0.01)
        assert len(await store.search("says")) == 3


ALPHABET = st.sampled_from([*"ab1 \n_-/.\"'%*ßÄ", "数", "据", "é", "👍", "ﬁ", "\0"])
TEXTS = st.text(ALPHABET, max_size=12)


@given(st.lists(TEXTS, min_size=1, max_size=8), TEXTS, st.integers(0, 8))
def test_search_index_matches_full_scan(texts: list[str], query: str, filled: int) -> None:
    async def compare() -> None:
        async with MemoryStore() as plain, SQLiteStore(":memory:") as indexed:
            for store in (plain, indexed):
                await store.create(record("s"))
            for place, text in enumerate(texts):
                for store in (plain, indexed):
                    await store.append("s", [message(f"e{place}", text)])
                if place == filled:
                    await fill_search_index(indexed)
            assert await search_ids(indexed, query) == await search_ids(plain, query)

    asyncio.run(compare())


@given(TEXTS, TEXTS)
def test_cannot_match_is_never_wrong(text: str, query: str) -> None:
    from msgspec.json import encode

    parsed = Query(query)
    if parsed.score(normalize(text)):
        assert not parsed.cannot_match(encode({"message": {"content": text}}).decode())


@given(st.text(max_size=600), st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=3))
def test_snippet_is_one_short_line(text: str, words: list[str]) -> None:
    shown = make_snippet(text, words)
    assert len(shown) <= SNIPPET_LENGTH + 2
    assert "\n" not in shown


def test_snippet_shows_words_close_together() -> None:
    text = "apple " + "x " * 400 + "apple pear plum" + " y" * 400
    assert "apple pear plum" in make_snippet(text, ("apple", "pear"))
    assert "Straße" in make_snippet("x " * 300 + "Straße" + " y" * 300, ("strasse",))


@pytest.mark.parametrize("before", [0, 4_090, 4_095, 8_192, 60_000])
@pytest.mark.parametrize(("written", "word"), [("Straße", "strasse"), ("e\u0301te\u0301", "été"), ("ｆｕｌｌ", "full")])
def test_snippet_finds_a_word_that_is_written_otherwise(before: int, written: str, word: str) -> None:
    """Also where the text is read block by block."""
    text = "x" * before + f" {written} " + "y" * 9_000
    assert written in make_snippet(text, (word,))
