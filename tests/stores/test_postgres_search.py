"""H1: full-text search in PostgreSQL: windows, substrings, redaction, filling of the index."""

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

from holdfast.context.events import Event
from holdfast.stores import MemoryStore, PostgresStore, Where
from holdfast.stores.postgres import fts_tokens, index, search
from holdfast.stores.postgres.fts_tokens import build_tsquery, condition_terms
from stores.databases import raw_connection
from stores.logs import begin, message, record, rewrite
from stores.test_store_conformance import fill_search_index
from stores.test_store_search import ALPHABET, chat_event, search_ids

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(postgres: str, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    async with PostgresStore(postgres, tenant=str(tmp_path)) as opened:
        yield opened


@pytest.fixture
def no_background_indexing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables the background indexer, so that only the test fills the index."""
    monkeypatch.setattr(index, "IDLE_SECONDS", 60)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks and groups, so that a few events span many."""
    for module in (fts_tokens, index, search):
        monkeypatch.setattr(module, "BLOCK_ROWS", 2)
    monkeypatch.setattr(fts_tokens, "GROUP_ROWS", 4)
    monkeypatch.setattr(search, "SEARCH_WINDOWS", (("b", 2, 2), ("g", 4, 1)))


TEXTS = st.text(ALPHABET | st.sampled_from("\\ :&|!"), max_size=10)


@settings(max_examples=40)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8), st.lists(TEXTS, min_size=1, max_size=4))
def test_search_index_matches_full_scan(postgres: str, texts: list[tuple[str, str]], queries: list[str]) -> None:
    async def compare() -> None:
        async with MemoryStore() as plain, PostgresStore(postgres, tenant=secrets.token_hex(8)) as indexed:
            for each in (plain, indexed):
                await each.create(record("s"))
                for place, (earlier, later) in enumerate(texts):
                    await each.append("s", [message(f"e{place}", earlier), message(f"f{place}", later)])
                    if place == len(texts) // 2:
                        await fill_search_index(each)
            for query in queries:
                assert await search_ids(indexed, query) == await search_ids(plain, query), query

    asyncio.run(compare())


async def test_search_windows_return_newest_first(store: PostgresStore, small_blocks: None) -> None:
    await begin(store)
    for place in range(21):
        await store.append("s", [message(f"e{place}", "needle" if place % 3 == 0 else "deployment of hay")])
    await fill_search_index(store)
    assert await search_ids(store, "needle") == [f"e{place}" for place in (18, 15, 12, 9, 6, 3, 0)]
    assert await search_ids(store, "needle", limit=2, offset=5) == ["e3", "e0"]
    assert len(await search_ids(store, "deploy")) == 14


async def test_search_substring_is_found_in_newest_events_only(
    store: PostgresStore, small_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MAX_SCANNED_EVENTS", 3)
    await begin(store)
    texts = ["the deployment", "数据库分片", "deploying 4711", "a brunch", "two", "three", "four"]
    await store.append("s", [message(f"e{place}", text) for place, text in enumerate(texts)])
    await fill_search_index(store)
    assert await search_ids(store, "deploy") == ["e0", "e2"] or await search_ids(store, "deploy") == ["e2", "e0"]
    assert await search_ids(store, "deploying 47") == ["e2"]
    assert await search_ids(store, "据库") == ["e1"], "scripts without spaces are indexed as character pairs"
    assert await search_ids(store, "片") == ["e1"]
    assert await search_ids(store, "our") == ["e6"], "within the newest events"
    assert await search_ids(store, "ploy") == [], "outside the newest events"


async def test_search_long_words_and_truncated_texts_are_found(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MAX_SCANNED_EVENTS", 1)
    monkeypatch.setattr(fts_tokens, "MAX_TOKEN_BYTES", 60)
    digest = "0123456789abcdef" * 4
    endless = " ".join(f"word{number}" for number in range(100))
    await begin(store)
    texts = [f"its sha256 is {digest}", endless, "the last"]
    await store.append("s", [message(f"e{place}", text) for place, text in enumerate(texts)])
    await fill_search_index(store)
    assert await search_ids(store, digest) == ["e0"]
    assert await search_ids(store, digest[:50]) == ["e0"]
    assert await search_ids(store, digest + "0") == []
    assert await search_ids(store, "word99 word7") == ["e1"], "truncated events are scanned"


async def test_search_event_with_very_many_words_is_indexed(store: PostgresStore) -> None:
    await begin(store)
    text = " ".join(f"w{number:x}" for number in range(150_000))
    await store.append("s", [message("e1", text), message("e2", "short")])
    await fill_search_index(store)
    assert await search_ids(store, "w249ef") == ["e1"]


async def test_search_time_range_uses_spans(store: PostgresStore, small_blocks: None) -> None:
    await begin(store)
    for day in range(1, 10):
        await store.append(
            "s", [chat_event(f"d{day}", {"role": "user", "content": "a day"}, f"2026-01-0{day}T12:00:00Z")]
        )
    await fill_search_index(store)
    assert sorted(await search_ids(store, "day", since="2026-01-04", until="2026-01-06")) == ["d4", "d5"]
    assert sorted(await search_ids(store, "day", until="2026-01-03")) == ["d1", "d2"]
    assert await search_ids(store, "day", since="2026-02") == []


async def test_rewrite_removes_text_from_index(store: PostgresStore, postgres: str) -> None:
    secret, later = f"secret{secrets.token_hex(6)}", f"later{secrets.token_hex(6)}"
    await begin(store)
    await store.append("s", [message("e1", f"my password is {secret}"), message("e2", f"{secret} again")])
    await fill_search_index(store)
    assert await rewrite(store, "s", message("e1", later), message("e2", later))
    assert await rows_with(postgres, secret) == 0
    assert await search_ids(store, secret) == []
    assert len(await search_ids(store, later)) == 2
    assert await rows_with(postgres, later) > 0
    await store.delete("s")
    assert await rows_with(postgres, later) == 0


async def rows_with(postgres: str, word: str) -> int:
    """How many rows of the index, of any tenant, hold the word: other tests use the same database."""
    async with raw_connection(postgres) as connection:
        found: int = await connection.fetchval("SELECT count(*) FROM holdfast.search WHERE words @@ $1::tsquery", word)
    return found


async def test_search_unindexed_after_crash_is_found_and_indexed(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "IDLE_SECONDS", 60)
    async with PostgresStore(postgres, tenant=str(tmp_path)) as store:
        await begin(store, "e1", "e2")
    monkeypatch.setattr(index, "IDLE_SECONDS", 0.001)
    async with PostgresStore(postgres, tenant=str(tmp_path)) as store:
        assert len(await store.search("says")) == 2
        task = store._loop_resources.indexer._task
        assert task is not None
        await task
        assert await store._run(lambda c, _: index.fill_index(c, store._tenant)) == "done"
        assert len(await store.search("says")) == 2


@pytest.mark.usefixtures("no_background_indexing")
async def test_fill_index_batch_may_split_an_append(store: PostgresStore) -> None:
    await begin(store)
    await store.append("s", [message(f"e{number}", lane="sub" if number % 2 else None) for number in range(7)])
    await begin(store, "o1", session_id="other")
    for batch, result in ((3, "more"), (3, "more"), (1, "more"), (5, "more"), (5, "done")):
        assert await store._run(lambda c, _, batch=batch: index.fill_index(c, store._tenant, batch)) == result
        assert len(await store.search("says")) == 8
    assert len(await search_ids(store, "says", lane="sub")) == 3


@pytest.mark.usefixtures("no_background_indexing")
async def test_fill_index_during_exclusive_lock_is_busy(store: PostgresStore) -> None:
    await begin(store, "e1")

    async def fill_during_lock(connection: Any, _: bool) -> str:
        async with connection.transaction():
            await connection.execute("SELECT holdfast.alone_1()")
            return await store._run(lambda c, _: index.fill_index(c, store._tenant))

    assert await store._run(fill_during_lock) == "busy"
    assert await store._run(lambda c, _: index.fill_index(c, store._tenant)) == "more"


@pytest.mark.usefixtures("no_background_indexing")
async def test_fill_index_concurrent_runs_take_different_sessions(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No event is indexed twice or left out."""
    monkeypatch.setattr(index, "BATCH_SESSIONS", 1)
    names = [f"s{number}" for number in range(4)]
    for name in names:
        await begin(store, *(f"{name}-{number}" for number in range(5)), session_id=name)
    started, all_started = 0, anyio.Event()

    async def wait_then_index(connection: Any, tenant: str, rows: list[Any]) -> None:
        nonlocal started
        started += 1
        if started == len(names):
            all_started.set()
        with anyio.fail_after(30):
            await all_started.wait()
        await index_events(connection, tenant, rows)

    index_events = index.index_events
    monkeypatch.setattr(index, "index_events", wait_then_index)
    async with anyio.create_task_group() as group:
        for _ in names:
            group.start_soon(store._run, lambda c, _: index.fill_index(c, store._tenant))
    assert await store._run(lambda c, _: index.fill_index(c, store._tenant)) == "done"
    assert len(await store.search("says", limit=100)) == 20


async def test_search_damaged_body_is_skipped(store: PostgresStore, postgres: str) -> None:
    await begin(store, "e1", "e2")
    async with raw_connection(postgres) as connection:
        await connection.execute(
            "UPDATE holdfast.events SET body = '{' WHERE id = 'e1' AND session = $1", await key_of(store)
        )
    await fill_search_index(store)
    assert await search_ids(store, "says") == ["e2"]


async def key_of(store: PostgresStore) -> Any:
    statement = "SELECT key FROM holdfast.sessions WHERE tenant = $1"
    return await store._run(lambda c, _: c.fetchval(statement, store._tenant))


async def test_search_statements_use_word_index(postgres: str) -> None:
    """Even with a generic plan, which knows nothing about the words."""
    async with raw_connection(postgres) as connection:
        await connection.execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan")
        tsquery = build_tsquery(["'the'"], condition_terms(Where(), [], None, ""), ["b1"])
        for name, values in (
            ("edge", f"$q${tsquery}$q$, 0, 9, 10"),
            ("found", f"'', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, $q${tsquery}$q$, 0, 9"),
        ):
            await connection.execute(f"PREPARE {name} AS {search._SEARCH_SQL[name]}")
            plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE {name} ({values})"))
            assert "Bitmap Index Scan on search_by_words" in plan, plan


@pytest.mark.parametrize(
    "query", ["' | '", "a' & 'b", "\\' | the", "the:*", "!the", "<->", "a\\", "'", "''", "数' | 'a"]
)
async def test_search_query_has_no_syntax(store: PostgresStore, query: str) -> None:
    await begin(store)
    events = [
        Event("e1", "message", "t", {"message": {"role": "user", "content": "the a b 数 a"}}),
        message("e2", query),
    ]
    await store.append("s", events)
    await fill_search_index(store)
    assert await search_ids(store, query) == ["e2"]
