"""H1: full-text search in PostgreSQL, where its index is another than SQLite's: windows, parts of words, scrubbing."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.events import Event
from holdfast.stores import MemoryStore, PostgresStore, Where
from holdfast.stores.postgres import filling, index, search, words
from holdfast.stores.postgres.words import condition_terms, expression
from stores.databases import by_hand
from stores.logs import begin, message, record
from stores.test_store_conformance import settle
from stores.test_store_search import ALPHABET, found, said

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(postgres: str, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    async with PostgresStore(postgres, tenant=str(tmp_path)) as opened:
        yield opened


@pytest.fixture
def unfilled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is filled by the test alone, however long it takes."""
    monkeypatch.setattr(filling, "QUIET_SECONDS", 60)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few events have many blocks."""
    for module in (words, index, search):
        monkeypatch.setattr(module, "BLOCK", 2)
    monkeypatch.setattr(words, "GROUP", 4)
    monkeypatch.setattr(search, "WINDOWS", (("b", 2, 2), ("g", 4, 1)))


TEXTS = st.text(ALPHABET | st.sampled_from("\\ :&|!"), max_size=10)


@settings(max_examples=40)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8), st.lists(TEXTS, min_size=1, max_size=4))
def test_the_index_finds_what_a_look_at_every_text_finds(
    postgres: str, texts: list[tuple[str, str]], queries: list[str]
) -> None:
    async def both() -> None:
        async with MemoryStore() as plain, PostgresStore(postgres, tenant=secrets.token_hex(8)) as indexed:
            for each in (plain, indexed):
                await each.create(record("s"))
                for place, (earlier, later) in enumerate(texts):
                    await each.append("s", [message(f"e{place}", earlier), message(f"f{place}", later)])
                    if place == len(texts) // 2:
                        await settle(each)
            for query in queries:
                assert await found(indexed, query) == await found(plain, query), query

    asyncio.run(both())


async def test_windows_come_one_after_the_other(store: PostgresStore, small: None) -> None:
    await begin(store)
    for place in range(21):
        await store.append("s", [message(f"e{place}", "needle" if place % 3 == 0 else "deployment of hay")])
    await settle(store)
    assert await found(store, "needle") == [f"e{place}" for place in (18, 15, 12, 9, 6, 3, 0)]
    assert await found(store, "needle", limit=2, offset=5) == ["e3", "e0"]
    assert len(await found(store, "deploy")) == 14


async def test_parts_that_begin_in_the_middle_are_found_in_what_is_new(
    store: PostgresStore, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SCANNED", 3)
    await begin(store)
    texts = ["the deployment", "数据库分片", "deploying 4711", "a brunch", "two", "three", "four"]
    await store.append("s", [message(f"e{place}", text) for place, text in enumerate(texts)])
    await settle(store)
    assert await found(store, "deploy") == ["e0", "e2"] or await found(store, "deploy") == ["e2", "e0"]
    assert await found(store, "deploying 47") == ["e2"]
    assert await found(store, "据库") == ["e1"], "scripts without blanks have every part in the index"
    assert await found(store, "片") == ["e1"]
    assert await found(store, "our") == ["e6"], "it is among the newest"
    assert await found(store, "ploy") == [], "it is not, and nothing can tell"


async def test_words_longer_than_any_and_texts_longer_than_an_index_takes(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SCANNED", 1)
    monkeypatch.setattr(words, "MOST_BYTES", 60)
    digest = "0123456789abcdef" * 4
    endless = " ".join(f"word{number}" for number in range(100))
    await begin(store)
    texts = [f"its sha256 is {digest}", endless, "the last"]
    await store.append("s", [message(f"e{place}", text) for place, text in enumerate(texts)])
    await settle(store)
    assert await found(store, digest) == ["e0"]
    assert await found(store, digest[:50]) == ["e0"]
    assert await found(store, digest + "0") == []
    assert await found(store, "word99 word7") == ["e1"], "what does not fit is looked at"


async def test_an_event_of_a_million_words_is_indexed(store: PostgresStore) -> None:
    await begin(store)
    text = " ".join(f"w{number:x}" for number in range(150_000))
    await store.append("s", [message("e1", text), message("e2", "short")])
    await settle(store)
    assert await found(store, "w249ef") == ["e1"]


async def test_spans_of_time_pass_over_the_rest(store: PostgresStore, small: None) -> None:
    await begin(store)
    for day in range(1, 10):
        await store.append("s", [said(f"d{day}", {"role": "user", "content": "a day"}, f"2026-01-0{day}T12:00:00Z")])
    await settle(store)
    assert sorted(await found(store, "day", since="2026-01-04", until="2026-01-06")) == ["d4", "d5"]
    assert sorted(await found(store, "day", until="2026-01-03")) == ["d1", "d2"]
    assert await found(store, "day", since="2026-02") == []


async def test_what_is_redacted_leaves_the_index(store: PostgresStore, postgres: str) -> None:
    await begin(store)
    await store.append("s", [message("e1", "my password is hunter22"), message("e2", "hunter22 again")])
    await settle(store)
    await store.rewrite("s", [message("e1", "gone"), message("e2", "gone")])
    async with by_hand(postgres) as hand:
        assert await hand.fetchval("SELECT count(*) FROM holdfast.search WHERE words @@ 'hunter22'") == 0
    assert await found(store, "hunter22") == []
    assert len(await found(store, "gone")) == 2
    await store.delete("s")
    async with by_hand(postgres) as hand:
        assert await hand.fetchval("SELECT count(*) FROM holdfast.search WHERE words @@ 'gone'") == 0


async def test_what_a_crash_left_is_found_and_then_indexed(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "QUIET_SECONDS", 60)
    async with PostgresStore(postgres, tenant=str(tmp_path)) as store:
        await begin(store, "e1", "e2")
    monkeypatch.setattr(filling, "QUIET_SECONDS", 0.001)
    async with PostgresStore(postgres, tenant=str(tmp_path)) as store:
        assert len(await store.search("says")) == 2
        task = store._station.filling._task
        assert task is not None
        await task
        assert await store._run(lambda c, _: index.fill(c, store._tenant)) == "done"
        assert len(await store.search("says")) == 2


@pytest.mark.usefixtures("unfilled")
async def test_a_piece_may_end_in_the_middle_of_an_append(store: PostgresStore) -> None:
    await begin(store)
    await store.append("s", [message(f"e{number}", lane="sub" if number % 2 else None) for number in range(7)])
    await begin(store, "o1", session_id="other")
    for piece, left in ((3, "more"), (3, "more"), (1, "more"), (5, "more"), (5, "done")):
        assert await store._run(lambda c, _, piece=piece: index.fill(c, store._tenant, piece)) == left
        assert len(await store.search("says")) == 8
    assert len(await found(store, "says", lane="sub")) == 3


@pytest.mark.usefixtures("unfilled")
async def test_nobody_fills_it_while_somebody_must_be_alone(store: PostgresStore) -> None:
    await begin(store, "e1")

    async def second(connection: Any, _: bool) -> str:
        async with connection.transaction():
            await connection.execute("SELECT holdfast.alone_1()")
            return await store._run(lambda c, _: index.fill(c, store._tenant))

    assert await store._run(second) == "busy"
    assert await store._run(lambda c, _: index.fill(c, store._tenant)) == "more"


@pytest.mark.usefixtures("unfilled")
async def test_several_processes_fill_it_each_with_other_sessions(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but the server limits how much can be indexed; no event is indexed twice or forgotten."""
    monkeypatch.setattr(index, "SESSIONS", 1)
    names = [f"s{number}" for number in range(4)]
    for name in names:
        await begin(store, *(f"{name}-{number}" for number in range(5)), session_id=name)
    under_way, all_in = 0, anyio.Event()

    async def put(connection: Any, tenant: str, rows: list[Any]) -> None:
        nonlocal under_way
        under_way += 1
        if under_way == len(names):
            all_in.set()
        with anyio.fail_after(30):
            await all_in.wait()
        await putting(connection, tenant, rows)

    putting = index.put
    monkeypatch.setattr(index, "put", put)
    async with anyio.create_task_group() as group:
        for _ in names:
            group.start_soon(store._run, lambda c, _: index.fill(c, store._tenant))
    assert await store._run(lambda c, _: index.fill(c, store._tenant)) == "done"
    assert len(await store.search("says", limit=100)) == 20


async def test_a_body_that_was_damaged_stops_nobody_else(store: PostgresStore, postgres: str) -> None:
    await begin(store, "e1", "e2")
    async with by_hand(postgres) as hand:
        await hand.execute(
            "UPDATE holdfast.events SET body = '{' WHERE id = 'e1' AND session = $1", await key_of(store)
        )
    await settle(store)
    assert await found(store, "says") == ["e2"]


async def key_of(store: PostgresStore) -> Any:
    statement = "SELECT key FROM holdfast.sessions WHERE tenant = $1"
    return await store._run(lambda c, _: c.fetchval(statement, store._tenant))


async def test_words_are_looked_up_in_their_index(postgres: str) -> None:
    """Whatever the planner thinks of the words: nothing is known of them when a plan is made for all."""
    async with by_hand(postgres) as hand:
        await hand.execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan")
        asked = expression(["'the'"], condition_terms(Where(), [], None, ""), ["b1"])
        for name, values in (
            ("edge", f"$q${asked}$q$, 0, 9, 10"),
            ("found", f"'', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, $q${asked}$q$, 0, 9"),
        ):
            await hand.execute(f"PREPARE {name} AS {search._SQL[name]}")
            plan = "\n".join(row[0] for row in await hand.fetch(f"EXPLAIN EXECUTE {name} ({values})"))
            assert "Bitmap Index Scan on search_by_words" in plan, plan


@pytest.mark.parametrize(
    "query", ["' | '", "a' & 'b", "\\' | the", "the:*", "!the", "<->", "a\\", "'", "''", "数' | 'a"]
)
async def test_a_query_is_never_syntax(store: PostgresStore, query: str) -> None:
    await begin(store)
    events = [
        Event("e1", "message", "t", {"message": {"role": "user", "content": "the a b 数 a"}}),
        message("e2", query),
    ]
    await store.append("s", events)
    await settle(store)
    assert await found(store, query) == ["e2"]
