"""SQLite store: group commit, errors, migrations, damage, search index (S3, L9, H1)."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.context.events import LaneTip
from holdfast.errors import CorruptLog, DuplicateEvent, StaleVersion, StoreError, StoreReadOnly
from holdfast.stores import Appended, Slice, SQLiteStore, Unchanged
from holdfast.stores.sqlite import connection, index, writer
from holdfast.stores.sqlite import store as sqlite_store
from stores.logs import begin, compaction, ids, message, record, rewrite
from stores.test_store_conformance import fill_search_index

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


class Commits:
    """Counts the transactions committed by the writer thread."""

    def __init__(self, store: SQLiteStore) -> None:
        self.count = 0
        self.store = store

    async def __aenter__(self) -> Commits:
        await self.store._writer.run(self.trace)
        return self

    def trace(self, connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(self.count_commit)

    def count_commit(self, statement: str) -> None:
        self.count += statement == "COMMIT"

    async def __aexit__(self, *_: object) -> None:
        await self.store._writer.run(lambda connection: connection.set_trace_callback(None))


class TestGroupCommit:
    async def test_group_commit_concurrent_writers_share_transactions(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            for name in range(50):
                await store.create(record(str(name)))
            async with Commits(store) as commits:
                jobs = [store.append(str(name), [message(f"e{n}")]) for name in range(50) for n in range(4)]
                await asyncio.gather(*jobs)
            assert commits.count < 100
            for name in range(50):
                assert sorted(await ids(store, str(name))) == ["e0", "e1", "e2", "e3"]
                assert await store.problems(str(name)) == []

    async def test_append_concurrent_writers_get_distinct_versions(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            await begin(store)
            done = await asyncio.gather(*(store.append("s", [message(f"e{n}")]) for n in range(50)))
            assert sorted(each.version for each in done) == list(range(1, 51))

    async def test_append_concurrent_compactions_one_wins(self, path: Path) -> None:
        """S3, with two stores in one process."""
        async with SQLiteStore(path) as one, SQLiteStore(path) as two:
            await begin(one, "e1")
            tries = [
                store.append("s", [compaction(f"c{n}")], when=Unchanged(mark=0), tip=LaneTip(epoch=f"c{n}"))
                for n, store in enumerate([one, two] * 25)
            ]
            done = await asyncio.gather(*tries)
            assert sum(not each.conflict for each in done) == 1
            assert (await two.session("s")).version == 2

    async def test_group_commit_failing_job_fails_alone(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
            jobs: list[Any] = [store.append("s", [message(f"good{n}")]) for n in range(20)]
            jobs.insert(5, store.append("s", [message("new"), message("e1", "other content")]))
            jobs.insert(9, store.append("s", [message("stale")], after=0))
            jobs.insert(12, store._writer.run(delete_and_fail))
            done = await asyncio.gather(*jobs, return_exceptions=True)
            assert isinstance(done[5], DuplicateEvent)
            assert isinstance(done[9], StaleVersion)
            assert isinstance(done[12], ZeroDivisionError)
            assert sum(isinstance(each, Appended) for each in done) == 20
            assert sorted(await ids(store)) == sorted(["e1", *(f"good{n}" for n in range(20))])
            assert await store.problems("s") == []

    async def test_append_cancelled_caller_is_idempotent(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            await begin(store)
            task = asyncio.create_task(store.append("s", [message("e1")]))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            again = await store.append("s", [message("e1")])
            assert (again.version, await ids(store)) == (1, ["e1"])

    async def test_close_writes_queued_jobs(self, path: Path) -> None:
        store = SQLiteStore(path)
        await begin(store)
        tasks = [asyncio.create_task(store.append("s", [message(f"e{n}")])) for n in range(30)]
        await asyncio.sleep(0)
        await store.close()
        assert len(await asyncio.gather(*tasks)) == 30

    async def test_read_does_not_wait_for_writer(self, path: Path) -> None:
        async with SQLiteStore(path) as store, SQLiteStore(path) as other:
            await begin(store, "e1")
            begun, release = asyncio.Event(), asyncio.Event()
            loop = asyncio.get_running_loop()

            def hold(connection: sqlite3.Connection) -> None:
                loop.call_soon_threadsafe(begun.set)
                asyncio.run_coroutine_threadsafe(release.wait(), loop).result()

            held = asyncio.create_task(other._writer.run(hold))
            await begun.wait()
            assert await ids(store) == ["e1"]
            release.set()
            await held

    async def test_append_is_not_acknowledged_before_the_commit(self, path: Path) -> None:
        reached, go_on = threading.Event(), threading.Event()

        def stop_at_commit(statement: str) -> None:
            if statement == "COMMIT":
                reached.set()
                go_on.wait(60)

        async with SQLiteStore(path) as store:
            await begin(store)
            await store._writer.run_alone(lambda connection: connection.set_trace_callback(stop_at_commit))
            append = asyncio.create_task(store.append("s", [message("e1")]))
            assert await anyio.to_thread.run_sync(reached.wait, 60)
            await anyio.sleep(0.01)
            assert not append.done()
            go_on.set()
            assert (await append).version == 1

    async def test_append_that_fails_in_the_middle_writes_nothing(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            await begin(store)
            with sqlite3.connect(path) as other:
                other.execute(
                    "CREATE TRIGGER fail BEFORE INSERT ON events WHEN new.id = 'e3' "
                    "BEGIN SELECT RAISE (ABORT, 'no'); END"
                )
            other.close()
            with pytest.raises(StoreError):
                await store.append("s", [message("e1"), message("e2"), message("e3")])
            assert await ids(store) == []
            assert (await store.append("s", [message("e1")])).version == 1


def delete_and_fail(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM events")
    raise ZeroDivisionError


class TestErrors:
    @pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\0" + b"x" * 5000])
    async def test_open_invalid_file_raises_corrupt_log(self, path: Path, content: bytes) -> None:
        write_file(path, content)
        async with SQLiteStore(path) as store:
            for call in (store.create(record("s")), store.session("s"), store.search("x")):
                with pytest.raises(CorruptLog, match=r"agent\.db"):
                    await call

    async def test_open_other_programs_tables_raises(self, path: Path) -> None:
        run(path, "CREATE TABLE events (x)")
        async with SQLiteStore(path) as store:
            with pytest.raises(CorruptLog, match="another program"):
                await store.create(record("s"))

    async def test_open_missing_folder_raises(self, tmp_path: Path) -> None:
        async with SQLiteStore(tmp_path / "no" / "x.db") as store:
            with pytest.raises(StoreError, match="does not exist"):
                await store.create(record("s"))

    async def test_read_only_file_reads_and_refuses_writes(self, read_only_folder: Path) -> None:
        async with SQLiteStore(read_only_folder / "sessions.db") as store:
            assert await ids(store) == ["e1", "e2"]
            assert len(await store.search("says")) == 2
            assert await store.problems("s") == []
            with pytest.raises(StoreReadOnly):
                await store.append("s", [message("e3")])
        async with SQLiteStore(read_only_folder / "new.db") as store:
            with pytest.raises(StoreReadOnly):
                await store.create(record("s"))

    async def test_append_disk_full_writes_nothing(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
            pages = await store._writer.run(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
            await store._writer.run(limit_pages(pages + 4))
            big = [message(f"big{n}", "x" * 4000) for n in range(50)]
            jobs = [store.append("s", [message("small")]), store.append("s", big), store.append("s", [message("tiny")])]
            small, failed, tiny = await asyncio.gather(*jobs, return_exceptions=True)
            assert isinstance(failed, StoreError)
            assert "no room left" in str(failed)
            assert isinstance(small, Appended)
            assert isinstance(tiny, Appended)
            assert await ids(store) == ["e1", "small", "tiny"]
            assert await store.problems("s") == []
            await store._writer.run(limit_pages(1_000_000))
            assert (await store.append("s", big)).version == 53


def limit_pages(count: int) -> Callable[[sqlite3.Connection], Any]:
    return lambda connection: connection.execute(f"PRAGMA max_page_count = {count}").fetchone()


def write_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def run(path: Path, *statements: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        rows = [connection.execute(statement).fetchall() for statement in statements]
        connection.commit()
        return rows[-1]
    finally:
        connection.close()


class TestSchema:
    @pytest.mark.parametrize(("setting", "level"), [("FULL", 2), ("NORMAL", 1)])
    async def test_open_sets_synchronous_and_wal(self, path: Path, setting: Any, level: int) -> None:
        async with SQLiteStore(path, synchronous=setting) as store:
            pragma = store._writer.run
            assert await pragma(lambda c: c.execute("PRAGMA synchronous").fetchone()[0]) == level
            assert await pragma(lambda c: c.execute("PRAGMA journal_mode").fetchone()[0]) == "wal"

    async def test_synchronous_defaults_to_full(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            assert await store._writer.run(lambda c: c.execute("PRAGMA synchronous").fetchone()[0]) == 2

    async def test_migrations_applied_once(self, path: Path) -> None:
        for _ in range(2):
            async with SQLiteStore(path) as store:
                await store.sessions()
        assert run(path, "PRAGMA user_version") == [(5,)]

    async def test_open_newer_schema_raises(self, path: Path) -> None:
        run(path, "PRAGMA user_version = 99")
        async with SQLiteStore(path) as store:
            with pytest.raises(StoreError, match="newer Holdfast"):
                await store.create(record("s"))
            with pytest.raises(StoreError, match="newer Holdfast"):
                await store.sessions()

    async def test_open_new_file_concurrently(self, path: Path) -> None:
        stores = [SQLiteStore(path) for _ in range(8)]
        await asyncio.gather(*(store.create(record(str(n))) for n, store in enumerate(stores)))
        assert len(await stores[0].sessions()) == 8
        await asyncio.gather(*(store.close() for store in stores))

    async def test_read_slice_uses_index(self, path: Path) -> None:
        """H5: no read of a session scans the table."""
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
        plan = run(
            path,
            "EXPLAIN QUERY PLAN SELECT * FROM events WHERE session = 1 AND lane = '' AND seq > 5 ORDER BY seq DESC",
        )
        assert len(plan) == 1
        assert "events_by_lane (session=? AND lane=? AND seq>?)" in plan[0][3]


class TestDamage:
    async def test_problems_describes_each_damage(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            await begin(store, "e1", "e2", "e3", "e4")
        run(
            path,
            "DELETE FROM events WHERE id = 'e2'",
            "UPDATE events SET body = '{}' WHERE id = 'e3'",
            "UPDATE sessions SET version = 9",
            "INSERT INTO lanes VALUES (1, '', 12, 'nowhere', 0, 0, NULL)",
        )
        async with SQLiteStore(path) as store:
            problems = " ".join(await store.problems("s"))
        for words in (
            "seq 3 where 2 is expected",
            "'e3' (seq 3) does not match",
            "has version 9",
            "past the last",
            "'nowhere'",
        ):
            assert words in problems


class TestSearchIndex:
    async def test_index_filled_when_idle(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(writer, "IDLE_SECONDS", 0.001)
        async with SQLiteStore(path) as store:
            await begin(store, "e1", "e2")
            with anyio.fail_after(20):
                while await store._writer.run(index.index_watermark) != 2:  # noqa: ASYNC110 - by the writer's thread
                    await anyio.sleep(0.01)
            assert len(await store.search("says")) == 2

    async def test_search_complete_at_every_watermark(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(index, "BATCH_EVENTS", 3)
        async with SQLiteStore(path) as store:
            await begin(store)
            for n in range(10):
                await store.append("s", [message(f"e{n}")])
                await store._writer.run(lambda c: c.execute("COMMIT") and index.fill_index(c) and c.execute("BEGIN"))
                assert len(await store.search("says")) == n + 1

    async def test_others_write_while_a_large_event_is_tokenized(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its tokens are made in pieces, without a lock; one that is rewritten meanwhile is indexed as it is then."""
        for name in ("LARGE_TEXT", "_PIECE"):
            monkeypatch.setattr(index, name, 100)
        monkeypatch.setattr(index, "BATCH_SECONDS", 0.0)
        large, steps = index.LargeEvent(), 0
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
            await store.append("s", [message("e2", "says starboard " * 50)])

            def fill(connection: sqlite3.Connection) -> bool:
                connection.execute("COMMIT")
                more = index.fill_index(connection, large=large)
                connection.execute("BEGIN")
                return more

            while await store._writer.run(fill):
                steps += 1
                if steps == 4:
                    assert await store._writer.run(index.index_watermark) == 1
                    with sqlite3.connect(path, timeout=0) as other:
                        other.execute("UPDATE events SET body = replace(body, 'starboard', 'larboard')")
            assert steps > 5
            assert await store._writer.run(index.index_watermark) == 2
            assert [len(await store.search(word)) for word in ("starboard", "larboard", "says")] == [0, 1, 2]

    @pytest.mark.parametrize("text", ["The tide turns. ", "nO-sPaCe_at+all/é", "x", "-ab", "日本 "])
    def test_large_text_has_the_tokens_of_a_small_one(self, text: str) -> None:
        normalized = index.normalize(text * (index.LARGE_TEXT // len(text) + 9) + " an end!")
        small = {"tag", *index._text_tokens(set(normalized.split()))}
        assert set(index.index_tokens(normalized, ["tag"]).split(" ")) == small

    async def test_index_reused_rows_are_indexed_again(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            await begin(store, "e1", session_id="a")
            await begin(store, "e2", session_id="b")
            await fill_search_index(store)
            await store.delete("b")
            await begin(store, "e3", session_id="c")
            await fill_search_index(store)
            assert sorted(hit.event.id for hit in await store.search("says")) == ["e1", "e3"]

    async def test_index_other_version_is_rebuilt(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
            await fill_search_index(store)
        monkeypatch.setattr(index, "INDEX_VERSION", index.INDEX_VERSION + 1)
        async with SQLiteStore(path) as store:
            assert await store._writer.run(index.index_watermark) == 0
            assert len(await store.search("says")) == 1
            await fill_search_index(store)
            assert len(await store.search("says")) == 1

    async def test_search_without_fts5_scans(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            index, "read_sql_file", lambda name: "CREATE VIRTUAL TABLE search USING no_such_module (text);"
        )
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
            await store.append("s", [message("e2", "数据库 100%")])
            assert len(await store.search("says")) == 1
            assert len(await store.search("数据")) == 1
            assert len(await store.search("0%")) == 1
            await rewrite(store, "s", message("e1", "-"))
            assert await store.search("says") == []
        monkeypatch.undo()
        async with SQLiteStore(path) as store:
            await fill_search_index(store)
            assert len(await store.search("100")) == 1

    async def test_rewrite_removes_text_from_all_files(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
            await store.append("s", [message("e2", "hunter2 " * 300)], media={"d": "hunter2"})
            await fill_search_index(store)
            await rewrite(store, "s", message("e2", "-"), forget=("d",))
            assert await store.erase() == []
            for each in path.parent.glob("agent.db*"):
                assert b"hunter2" not in each.read_bytes(), "while the store is open"
            assert await store.read("s", Slice(ids=("e2",)))
        for each in path.parent.glob("agent.db*"):
            assert b"hunter2" not in each.read_bytes()


class TestFileUnderUse:
    async def test_append_to_a_deleted_file_is_refused(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
            for each in path.parent.glob("agent.db*"):
                each.unlink()
            for _ in range(2):
                with pytest.raises(StoreError, match="was deleted or replaced while it was open; nothing was written"):
                    await store.append("s", [message("e2")])
        assert not list(path.parent.iterdir())

    async def test_store_opened_while_read_only_writes_later(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
        async with SQLiteStore(path) as store:
            monkeypatch.setattr(
                sqlite_store,
                "open_writer",
                lambda path, _: sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False),
            )
            with pytest.raises(StoreReadOnly):
                await store.append("s", [message("e2")])
            monkeypatch.undo()
            assert (await store.append("s", [message("e2")])).version == 2

    async def test_appends_that_waited_for_a_lock_fail_together(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connection, "BUSY_SECONDS", 0.3)
        monkeypatch.setattr(writer, "BUSY_SECONDS", 0.3)
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            waits = 0

            def counted(of: sqlite3.Connection) -> None:
                nonlocal waits
                waits += 1
                connection.begin(of)

            monkeypatch.setattr(writer, "begin", counted)

            async def append(name: str) -> None:
                with pytest.raises(StoreError, match="locked for too long"):
                    await store.append("s", [message(name)])

            async with anyio.create_task_group() as group:
                for number in range(12):
                    group.start_soon(append, f"w{number}")
            other.close()
            assert waits < 12, "not one after the other"
            assert (await store.append("s", [message("e2")])).version == 2
