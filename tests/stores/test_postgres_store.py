"""PostgreSQL store: concurrent writers, broken connections, server restarts, event loops, rows.

Processes that are killed while appending are in test_crash.py.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import SessionService, SlidingWindow
from holdfast.context.events import Event, LaneTip
from holdfast.errors import (
    HoldfastError,
    InvalidInput,
    InvalidLimit,
    StaleVersion,
    StoreClosed,
    StoreError,
    StoreReadOnly,
)
from holdfast.io.installation import install_command
from holdfast.stores import PostgresStore, Slice
from holdfast.stores.postgres import deletion, writes
from holdfast.triggers import always
from servers.server import Server
from stores.databases import raw_connection, terminate_connections
from stores.logs import EVERYTHING, begin, compaction, fork, ids, message, record, rewrite

pytestmark = pytest.mark.anyio
NOWHERE = "postgresql://ann:hunter22@127.0.0.1:1/agents"


@pytest.fixture
async def store(postgres: str, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    async with PostgresStore(postgres, tenant=str(tmp_path)) as opened:
        yield opened


class TestConcurrency:
    """S3: no event is lost or duplicated, and nothing deadlocks."""

    async def test_append_concurrent_writers_leave_no_gap(self, store: PostgresStore) -> None:
        await begin(store)
        seen: list[int] = []

        async def write(number: int) -> None:
            for place in range(10):
                lane = "sub" if number % 3 == 0 else None
                events = [message(f"{number}.{place}.{part}", lane=lane) for part in range(1 + number % 2)]
                tip = LaneTip(epoch=events[-1].id) if place == 5 else None
                done = await store.append("s", events, tip=tip)
                seen.extend(event.seq for event in done.events)

        async with anyio.create_task_group() as group:
            for number in range(12):
                group.start_soon(write, number)
        assert sorted(seen) == list(range(1, len(seen) + 1))
        assert [event.seq for event in await store.read("s", EVERYTHING)] == sorted(seen)
        assert await store.problems("s") == []

    async def test_append_after_concurrent_writers_one_wins(self, store: PostgresStore) -> None:
        await begin(store)

        async def count(owner: int) -> None:
            for _ in range(5):
                while True:
                    version = (await store.session("s")).version
                    try:
                        await store.append("s", [message(f"{version + 1} {owner}")], after=version)
                        break
                    except StaleVersion:
                        continue

        async with anyio.create_task_group() as group:
            for owner in range(6):
                group.start_soon(count, owner)
        numbers = [int(name.split()[0]) for name in await ids(store)]
        assert numbers == list(range(1, 31))

    async def test_concurrent_forks_deletes_and_appends_do_not_deadlock(self, store: PostgresStore) -> None:
        """Runs all operations that lock more than one row against each other."""
        names = [f"s{number}" for number in range(4)]
        for name in names:
            await begin(store, "e1", "e2", session_id=name)

        async def act(seed: int) -> None:
            chance = random.Random(seed)
            for step in range(12):
                name, other = chance.choice(names), chance.choice(names)
                try:
                    match chance.randrange(5):
                        case 0:
                            await fork(store, name, 1, f"{name} {seed}.{step}")
                            names.append(f"{name} {seed}.{step}")
                        case 1:
                            await store.delete(name)
                        case 2:
                            await rewrite(store, name, message("e1", "gone"))
                        case _:
                            await store.append(other, [message(f"{seed}.{step}")])
                except HoldfastError as error:
                    assert not isinstance(error, StoreError), error

        async with anyio.create_task_group() as group:
            for seed in range(8):
                group.start_soon(act, seed)
        for each in await store.sessions():
            assert await store.problems(each.id) == []

    async def test_pool_never_exceeds_max_connections(self, new_database: Callable[[], str]) -> None:
        url = await anyio.to_thread.run_sync(new_database)
        async with PostgresStore(url, migrate=True, max_connections=2) as store, raw_connection(url) as connection:
            await begin(store)
            async with anyio.create_task_group() as group:
                for number in range(30):
                    group.start_soon(store.append, "s", [message(f"e{number}")])
            assert await terminate_connections(connection) <= 2
            assert (await store.session("s")).version == 30


class TestWaiting:
    async def test_deletion_and_redaction_wait_a_limited_time_for_indexers(
        self, store: PostgresStore, postgres: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another process that indexes, or hangs, holds no caller for longer; appends do not wait at all."""
        monkeypatch.setattr(deletion, "LOCK_SECONDS", 0.1)
        await begin(store, "e1")
        async with raw_connection(postgres) as connection:
            await connection.execute("SELECT pg_advisory_lock_shared(1752132964, 1)")
            for call in (lambda: store.delete("s"), lambda: rewrite(store, "s", message("e1", "gone"))):
                with pytest.raises(StoreError, match="is held by another process"):
                    await call()
            assert (await store.append("s", [message("e2")])).version == 2
        monkeypatch.undo()
        assert await rewrite(store, "s", message("e1", "gone"))
        await store.delete("s")

    async def test_connection_that_refused_a_write_is_not_used_again(self, postgres: str, tmp_path: Path) -> None:
        """As after a failover, when the pool has connections to what is now a standby."""
        async with PostgresStore(postgres, tenant=str(tmp_path), max_connections=1) as store:
            await begin(store, "e1")
            await store._run(lambda c, _: c.execute("SET default_transaction_read_only = on"))
            with pytest.raises(StoreReadOnly):
                await store.append("s", [message("e2")])
            assert (await store.append("s", [message("e2")])).version == 2


class TestBrokenConnections:
    async def test_append_broken_connections_stores_each_event_once(self, store: PostgresStore, postgres: str) -> None:
        await begin(store)
        acknowledged: list[str] = []
        cut = 0

        async def write(number: int) -> None:
            for place in range(60):
                done = await store.append("s", [message(f"{number}.{place}")])
                assert done.fresh, "an append is fresh to its caller, however often it was retried"
                acknowledged.extend(event.id for event in done.events)

        async with raw_connection(postgres) as connection:

            async def disconnect() -> None:
                nonlocal cut
                for _ in range(6):
                    await anyio.sleep(random.uniform(0.01, 0.06))
                    cut += await terminate_connections(connection)

            async with anyio.create_task_group() as group:
                group.start_soon(disconnect)
                for number in range(4):
                    group.start_soon(write, number)
        assert cut > 0
        assert Counter(await ids(store)) == Counter(acknowledged)
        assert len(acknowledged) == 240
        assert await store.problems("s") == []

    async def test_write_with_lost_reply_is_retried(
        self, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Every kind of write recognises what it wrote before the connection broke."""
        broken: list[str] = []

        def break_once(module: Any, name: str) -> None:
            real = getattr(module, name)

            async def write_and_disconnect(connection: Any, *args: Any) -> Any:
                done = await real(connection, *args)
                if name not in broken:
                    broken.append(name)
                    connection.terminate()
                    raise ConnectionResetError
                return done

            monkeypatch.setattr(module, name, write_and_disconnect)

        for name in ("create_session", "append_events", "rewrite_sessions"):
            break_once(writes, name)
        break_once(deletion, "delete_session")
        await store.create(record("s", owner="ann", lanes={"": LaneTip(epoch="c")}))
        with pytest.raises(InvalidInput, match="exists already"):
            await store.create(record("s", owner="bob"))
        done = await store.append("s", [compaction("c1")], tip=LaneTip(epoch="c1"), after=0)
        assert (done.fresh, done.version, await ids(store)) == (True, 1, ["c1"])
        assert not await rewrite(store, "s", compaction("c1", summary="gone")), "the repeated attempt finds it written"
        [event] = await store.read("s", Slice(ids=("c1",)))
        assert event.body["summary"] == "gone"
        await store.delete("s")
        assert broken == ["create_session", "append_events", "rewrite_sessions", "delete_session"]
        assert await store.sessions() == []

    async def test_fork_with_lost_reply_is_found_although_its_parent_has_moved(
        self, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, lost = writes.create_session, 0

        async def create_and_disconnect(connection: Any, tenant: str, *args: Any) -> None:
            nonlocal lost
            await real(connection, tenant, *args)
            if not lost:
                lost += 1
                await store.append("s", [compaction("c1")], tip=LaneTip(epoch="c1"))
                raise asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress")

        await begin(store, "e1")
        monkeypatch.setattr(writes, "create_session", create_and_disconnect)
        await store.create(record("f", parent="s", parent_seq=1, version=1), mark=0)
        assert (lost, await ids(store, "f")) == (1, ["e1"])

    async def test_read_cancelled_releases_connection(self, store: PostgresStore) -> None:
        await begin(store, "e1")
        for _ in range(20):
            with anyio.move_on_after(0.0005):
                await store.read("s", EVERYTHING)
        pool = store._loop_resources.pool
        with anyio.fail_after(20):
            while pool._busy:  # noqa: ASYNC110 - the index is being filled
                await anyio.sleep(0.01)
        assert await ids(store) == ["e1"]

    async def test_append_survives_server_restart(self, store: PostgresStore, postgres_server: Server) -> None:
        await begin(store)
        down = anyio.Event()

        async def write(number: int) -> None:
            for place in range(20):
                await store.append("s", [message(f"{number}.{place}")])
                if place == 5:
                    down.set()

        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(write, number)
            await down.wait()
            for end in (postgres_server.stop, postgres_server.kill):
                await anyio.to_thread.run_sync(end)
                await anyio.to_thread.run_sync(postgres_server.start)
        assert len(await ids(store)) == 60
        assert await store.problems("s") == []

    async def test_unreachable_server_raises_without_secrets(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        async with PostgresStore(NOWHERE, retry_seconds=0.1) as store:
            with pytest.raises(StoreError, match=r"^postgresql://127.0.0.1:1/agents could not be reached") as caught:
                await store.session("s")
        assert "check that the server is running" in str(caught.value)
        assert "hunter22" not in caplog.text + str(caught.value) + repr(store) + repr(vars(store))


class TestLoops:
    def test_store_uses_separate_connections_per_event_loop(self, postgres: str, tmp_path: Path) -> None:
        store = PostgresStore(postgres, tenant=str(tmp_path))

        async def first() -> None:
            await begin(store, "e1")
            assert await anyio.to_thread.run_sync(lambda: asyncio.run(second())) == ["e1"]
            await store.close()

        async def second() -> list[str]:
            found = await ids(store)
            await store._resources.pop(asyncio.get_running_loop()).pool.close()
            return found

        asyncio.run(first())

    async def test_close_ends_running_operations(self, store: PostgresStore) -> None:
        await begin(store, "e1")

        running = anyio.Event()

        def sleep(connection: Any, _: Any) -> Awaitable[Any]:
            running.set()
            return connection.execute("SELECT pg_sleep(60)")

        async def run() -> None:
            with pytest.raises(StoreClosed):
                await store._run(sleep)

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await running.wait()
            await store.close()


class TestRows:
    async def test_event_rows_change_only_by_redaction(self, store: PostgresStore, postgres: str) -> None:
        """L9: a compaction changes no event row; a row is written once."""
        rows = "SELECT e.id, e.xmin::text, e.ctid::text FROM holdfast.events AS e ORDER BY e.session, e.seq"
        async with SessionService(store) as service, raw_connection(postgres) as connection:
            session = await service.create()
            for number in range(8):
                role = "assistant" if number % 2 else "user"
                await service.append(session.id, {"role": role, "content": f"word {number}"})
            before = await connection.fetch(rows)
            assert (await service.compact(session.id, always, SlidingWindow(max_events=2))).outcome == "compacted"
            await service.undo(session.id)
            after = await connection.fetch(rows)
            assert before == [row for row in after if row["id"] in {each["id"] for each in before}]
            first = (await service.events(session.id))[0]
            await service.redact(session.id, first.id)
            assert first.id in {row["id"] for row in set(after) - set(await connection.fetch(rows))}

    async def test_names_differing_only_by_nul_are_distinct(self, store: PostgresStore) -> None:
        names = ["a\0b", "a\1b", "a\1" + "0b", "a\1" + "1b", "ab", "a\0", "a"]
        for name in names:
            await begin(store, "e1", session_id=name, owner=name, metadata={"name": name})
        assert [each.id for each in await store.sessions()] == sorted(names, reverse=True)
        for name in names:
            assert [each.metadata["name"] for each in await store.sessions(owner=name)] == [name]
            assert await ids(store, name) == ["e1"]

    @pytest.mark.parametrize("lane", ["'; DROP TABLE holdfast.events; --", "a\1b", "%_\\", "$1", '"', "x" * 600])
    async def test_append_accepts_any_lane(self, store: PostgresStore, lane: str) -> None:
        await begin(store, "e1")
        await store.append("s", [message("x1", lane=lane)])
        await store.append("s", [compaction("c1", lane=lane)], tip=LaneTip(epoch="c1", start=2))
        assert await ids(store, "s", Slice(lane=lane)) == ["x1", "c1"]
        assert (await store.session("s")).lanes == {lane: LaneTip(3, "c1", 2, base=1)}

    async def test_names_too_long_for_index_raise(self, store: PostgresStore) -> None:
        name = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=5_000))
        with pytest.raises(InvalidInput, match="under 1,000 characters"):
            await store.create(record(name))
        await begin(store)
        with pytest.raises(InvalidInput, match="under 1,000 characters"):
            await store.append("s", [message(name)])


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=40)
@given(bodies=st.lists(st.dictionaries(st.text(max_size=6), JSON, max_size=4), min_size=1, max_size=6))
def test_append_any_json_body_round_trips(postgres: str, bodies: list[Any]) -> None:
    """H1: also text that jsonb cannot store; a lone surrogate is refused."""

    async def round_trip() -> None:
        async with PostgresStore(postgres, tenant=secrets.token_hex(8)) as store:
            await store.create(record("s"))
            events = [Event(f"e{place}", "new", "t", body) for place, body in enumerate(bodies)]
            try:
                await store.append("s", events)
            except InvalidInput:
                return
            assert [event.body for event in await store.read("s", Slice())] == bodies

    asyncio.run(round_trip())


@pytest.mark.parametrize(
    "url", ["", "mysql://h/d", "postgresql://ann:hunter22@h:port/d", "postgresql://ann:hunter22/x@h:5432/d"]
)
def test_address_invalid_raises_without_secrets(url: str) -> None:
    with pytest.raises(InvalidInput, match="postgresql://user:password@host") as caught:
        PostgresStore(url)
    assert "hunter22" not in str(caught.value)


async def test_address_refused_by_driver_raises_without_secrets() -> None:
    async with PostgresStore("postgresql://ann:hunter22@/agents?sslmode=never&password=hunter23") as store:
        with pytest.raises(InvalidInput, match="cannot be used") as caught:
            await store.sessions()
    assert "hunter2" not in str(caught.value) + str(caught.value.__cause__)


@pytest.mark.parametrize(
    "setting", [{"max_connections": 0}, {"timeout": 0}, {"retry_seconds": float("inf")}, {"timeout": float("nan")}]
)
def test_store_invalid_limits_raise(setting: dict[str, Any]) -> None:
    with pytest.raises(InvalidLimit):
        PostgresStore(NOWHERE, **setting)


async def test_store_missing_driver_raises_with_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "asyncpg", None)
    async with PostgresStore(NOWHERE) as store:
        with pytest.raises(InvalidInput, match=re.escape(install_command("postgres"))):
            await store.sessions()
