"""SQLite: group commit, errors with a name, migrations, and an index that cannot be behind (S3, L9, H1)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import CorruptLog, DuplicateEvent, StaleVersion, StoreError, StoreReadOnly
from holdfast.events import LaneTip
from holdfast.stores import Appended, Slice, SQLiteStore, Unchanged
from holdfast.stores.sqlite import index, writer
from stores.logs import begin, compaction, ids, message, record
from stores.test_store_conformance import settle

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


class Commits:
    """Counts the transactions that a writer commits."""

    def __init__(self, store: SQLiteStore) -> None:
        self.count = 0
        self.store = store

    async def __aenter__(self) -> Commits:
        await self.store._writer.run(self.trace)
        return self

    def trace(self, connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(self.note)

    def note(self, statement: str) -> None:
        self.count += statement == "COMMIT"

    async def __aexit__(self, *_: object) -> None:
        await self.store._writer.run(lambda connection: connection.set_trace_callback(None))


class TestGroupCommit:
    async def test_fifty_writers_share_transactions(self, path: Path) -> None:
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

    async def test_fifty_writers_on_one_session_get_fifty_places(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            await begin(store)
            done = await asyncio.gather(*(store.append("s", [message(f"e{n}")]) for n in range(50)))
            assert sorted(each.version for each in done) == list(range(1, 51))

    async def test_of_fifty_compactions_one_wins(self, path: Path) -> None:
        """S3, on one process and on two connections."""
        async with SQLiteStore(path) as one, SQLiteStore(path) as two:
            await begin(one, "e1")
            tries = [
                store.append("s", [compaction(f"c{n}")], when=Unchanged(mark=0), tip=LaneTip(epoch=f"c{n}"))
                for n, store in enumerate([one, two] * 25)
            ]
            done = await asyncio.gather(*tries)
            assert sum(not each.conflict for each in done) == 1
            assert (await two.session("s")).version == 2

    async def test_one_that_fails_fails_alone(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
            jobs: list[Any] = [store.append("s", [message(f"good{n}")]) for n in range(20)]
            jobs.insert(5, store.append("s", [message("new"), message("e1", "other content")]))
            jobs.insert(9, store.append("s", [message("stale")], after=0))
            jobs.insert(12, store._writer.run(break_off))
            done = await asyncio.gather(*jobs, return_exceptions=True)
            assert isinstance(done[5], DuplicateEvent)
            assert isinstance(done[9], StaleVersion)
            assert isinstance(done[12], ZeroDivisionError)
            assert sum(isinstance(each, Appended) for each in done) == 20
            assert sorted(await ids(store)) == sorted(["e1", *(f"good{n}" for n in range(20))])
            assert await store.problems("s") == []

    async def test_a_caller_that_gave_up_does_no_harm(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            await begin(store)
            task = asyncio.create_task(store.append("s", [message("e1")]))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            again = await store.append("s", [message("e1")])
            assert (again.version, await ids(store)) == (1, ["e1"])

    async def test_what_is_queued_is_written_before_it_closes(self, path: Path) -> None:
        store = SQLiteStore(path)
        await begin(store)
        tasks = [asyncio.create_task(store.append("s", [message(f"e{n}")])) for n in range(30)]
        await asyncio.sleep(0)
        await store.close()
        assert len(await asyncio.gather(*tasks)) == 30

    async def test_readers_do_not_wait_for_the_writer(self, path: Path) -> None:
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


def break_off(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM events")
    raise ZeroDivisionError


class TestErrors:
    @pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\0" + b"x" * 5000])
    async def test_not_a_database(self, path: Path, content: bytes) -> None:
        fill(path, content)
        async with SQLiteStore(path) as store:
            for call in (store.create(record("s")), store.session("s"), store.search("x")):
                with pytest.raises(CorruptLog, match=r"agent\.db"):
                    await call

    async def test_another_programs_tables(self, path: Path) -> None:
        run(path, "CREATE TABLE events (x)")
        async with SQLiteStore(path) as store:
            with pytest.raises(CorruptLog, match="another program"):
                await store.create(record("s"))

    async def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        async with SQLiteStore(tmp_path / "no" / "x.db") as store:
            with pytest.raises(StoreError, match="does not exist"):
                await store.create(record("s"))

    async def test_it_can_be_read_and_not_written(self, locked_away: Path) -> None:
        async with SQLiteStore(locked_away / "sessions.db") as store:
            assert await ids(store) == ["e1", "e2"]
            assert len(await store.search("says")) == 2
            assert await store.problems("s") == []
            with pytest.raises(StoreReadOnly):
                await store.append("s", [message("e3")])
        async with SQLiteStore(locked_away / "new.db") as store:
            with pytest.raises(StoreReadOnly):
                await store.create(record("s"))

    async def test_a_full_disk_leaves_nothing_half_written(self, path: Path) -> None:
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


def fill(path: Path, content: bytes) -> None:
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
    async def test_pragmas(self, path: Path, setting: Any, level: int) -> None:
        async with SQLiteStore(path, synchronous=setting) as store:
            pragma = store._writer.run
            assert await pragma(lambda c: c.execute("PRAGMA synchronous").fetchone()[0]) == level
            assert await pragma(lambda c: c.execute("PRAGMA journal_mode").fetchone()[0]) == "wal"

    async def test_full_is_the_default(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            assert await store._writer.run(lambda c: c.execute("PRAGMA synchronous").fetchone()[0]) == 2

    async def test_a_new_file_gets_every_migration_once(self, path: Path) -> None:
        for _ in range(2):
            async with SQLiteStore(path) as store:
                await store.sessions()
        assert run(path, "PRAGMA user_version") == [(2,)]

    async def test_a_newer_file_is_left_alone(self, path: Path) -> None:
        run(path, "PRAGMA user_version = 99")
        async with SQLiteStore(path) as store:
            with pytest.raises(StoreError, match="newer Holdfast"):
                await store.create(record("s"))
            with pytest.raises(StoreError, match="newer Holdfast"):
                await store.sessions()

    async def test_many_open_a_new_file_at_once(self, path: Path) -> None:
        stores = [SQLiteStore(path) for _ in range(8)]
        await asyncio.gather(*(store.create(record(str(n))) for n, store in enumerate(stores)))
        assert len(await stores[0].sessions()) == 8
        await asyncio.gather(*(store.close() for store in stores))

    async def test_slices_use_an_index(self, path: Path) -> None:
        """H5: no read of a session walks the table."""
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
        plan = run(
            path,
            "EXPLAIN QUERY PLAN SELECT * FROM events WHERE session = 1 AND lane = '' AND seq > 5 ORDER BY seq DESC",
        )
        assert len(plan) == 1
        assert "events_by_lane (session=? AND lane=? AND seq>?)" in plan[0][3]


class TestDamage:
    async def test_problems_names_what_is_wrong(self, path: Path) -> None:
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
            "seq 3 where 2 is due",
            "'e3' (seq 3) does not match",
            "says version 9",
            "past the last",
            "'nowhere'",
        ):
            assert words in problems


class TestSearchIndex:
    async def test_it_is_filled_when_it_is_quiet(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(writer, "QUIET_SECONDS", 0.001)
        async with SQLiteStore(path) as store:
            await begin(store, "e1", "e2")
            for _ in range(500):
                if await store._writer.run(index.watermark) == 2:
                    break
                await asyncio.sleep(0.01)
            assert await store._writer.run(index.watermark) == 2
            assert len(await store.search("says")) == 2

    async def test_results_are_complete_at_every_watermark(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(index, "PIECE", 3)
        async with SQLiteStore(path) as store:
            await begin(store)
            for n in range(10):
                await store.append("s", [message(f"e{n}")])
                await store._writer.run(lambda c: c.execute("COMMIT") and index.fill(c) and c.execute("BEGIN"))
                assert len(await store.search("says")) == n + 1

    async def test_rows_that_are_used_again_are_indexed_again(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            await begin(store, "e1", session_id="a")
            await begin(store, "e2", session_id="b")
            await settle(store)
            await store.delete("b")
            await begin(store, "e3", session_id="c")
            await settle(store)
            assert sorted(hit.event.id for hit in await store.search("says")) == ["e1", "e3"]

    async def test_another_reading_makes_it_anew(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
            await settle(store)
        monkeypatch.setattr(index, "READING", index.READING + 1)
        async with SQLiteStore(path) as store:
            assert await store._writer.run(index.watermark) == 0
            assert len(await store.search("says")) == 1
            await settle(store)
            assert len(await store.search("says")) == 1

    async def test_without_fts5_everything_is_scanned(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(index, "script", lambda name: "CREATE VIRTUAL TABLE search USING no_such_module (text);")
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
            await store.append("s", [message("e2", "数据库 100%")])
            assert len(await store.search("says")) == 1
            assert len(await store.search("数据")) == 1
            assert len(await store.search("0%")) == 1
            await store.rewrite("s", [message("e1", "-")])
            assert await store.search("says") == []
        monkeypatch.undo()
        async with SQLiteStore(path) as store:
            await settle(store)
            assert len(await store.search("100")) == 1

    async def test_no_file_holds_a_redacted_text_any_more(self, path: Path) -> None:
        async with SQLiteStore(path) as store:
            await begin(store, "e1")
            await store.append("s", [message("e2", "hunter2 " * 300)], media={"d": "hunter2"})
            await settle(store)
            await store.rewrite("s", [message("e2", "-")], ["d"])
            await settle(store)
            assert await store.read("s", Slice(ids=("e2",)))
        for each in path.parent.glob("agent.db*"):
            assert b"hunter2" not in each.read_bytes()
