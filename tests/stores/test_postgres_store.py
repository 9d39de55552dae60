"""PostgreSQL where it is more than the contract: many writers at once, connections that break, servers that restart.

Two processes that append to one session, and are killed, are in test_crash.py.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import SessionService, SlidingWindow, always
from holdfast.errors import HoldfastError, InvalidInput, InvalidLimit, StaleVersion, StoreClosed, StoreError
from holdfast.events import Event, LaneTip
from holdfast.stores import PostgresStore, Slice
from holdfast.stores.postgres import writes
from servers.running import Server
from stores.databases import by_hand, cut_all
from stores.logs import EVERYTHING, begin, compaction, fork, ids, message, record

pytestmark = pytest.mark.anyio
NOWHERE = "postgresql://ann:hunter22@127.0.0.1:1/agents"


@pytest.fixture
async def store(postgres: str, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    async with PostgresStore(postgres, tenant=str(tmp_path)) as opened:
        yield opened


class TestManyAtOnce:
    """S3: nothing is lost, nothing is there twice, and nobody waits for ever."""

    async def test_one_session_has_no_gap(self, store: PostgresStore) -> None:
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

    async def test_compare_and_set_lets_one_of_all_through(self, store: PostgresStore) -> None:
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

    async def test_forks_come_and_parents_go_while_others_append(self, store: PostgresStore) -> None:
        """Deadlocks would show here: every operation that holds more than one row meets every other."""
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
                            await store.rewrite(name, [message("e1", "gone")])
                        case _:
                            await store.append(other, [message(f"{seed}.{step}")])
                except HoldfastError as error:
                    assert not isinstance(error, StoreError), error

        async with anyio.create_task_group() as group:
            for seed in range(8):
                group.start_soon(act, seed)
        for each in await store.sessions():
            assert await store.problems(each.id) == []

    async def test_no_more_connections_than_it_was_allowed(self, new_database: Callable[[], str]) -> None:
        url = await anyio.to_thread.run_sync(new_database)
        async with PostgresStore(url, migrate=True, most=2) as store, by_hand(url) as hand:
            await begin(store)
            async with anyio.create_task_group() as group:
                for number in range(30):
                    group.start_soon(store.append, "s", [message(f"e{number}")])
            assert await cut_all(hand) <= 2
            assert (await store.session("s")).version == 30


class TestBrokenConnections:
    async def test_appends_go_on_and_each_is_there_once(self, store: PostgresStore, postgres: str) -> None:
        await begin(store)
        acknowledged: list[str] = []
        cut = 0

        async def write(number: int) -> None:
            for place in range(60):
                done = await store.append("s", [message(f"{number}.{place}")])
                assert done.fresh, "it is news to whoever asked, however often it was tried"
                acknowledged.extend(event.id for event in done.events)

        async with by_hand(postgres) as hand:

            async def breaks() -> None:
                nonlocal cut
                for _ in range(6):
                    await anyio.sleep(random.uniform(0.01, 0.06))
                    cut += await cut_all(hand)

            async with anyio.create_task_group() as group:
                group.start_soon(breaks)
                for number in range(4):
                    group.start_soon(write, number)
        assert cut > 0
        assert Counter(await ids(store)) == Counter(acknowledged)
        assert len(acknowledged) == 240
        assert await store.problems("s") == []

    async def test_an_answer_that_never_came_is_asked_for_again(
        self, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was written before the connection broke counts, for every kind of write."""
        broken: list[str] = []

        def breaks_once(name: str) -> None:
            real = getattr(writes, name)

            async def done_but_unheard(connection: Any, *args: Any) -> Any:
                done = await real(connection, *args)
                if name not in broken:
                    broken.append(name)
                    connection.terminate()
                    raise ConnectionResetError
                return done

            monkeypatch.setattr(writes, name, done_but_unheard)

        for name in ("create", "append", "rewrite", "delete"):
            breaks_once(name)
        await store.create(record("s", owner="ann", lanes={"": LaneTip(epoch="c")}))
        with pytest.raises(InvalidInput, match="exists already"):
            await store.create(record("s", owner="bob"))
        done = await store.append("s", [compaction("c1")], tip=LaneTip(epoch="c1"), after=0)
        assert (done.fresh, done.version, await ids(store)) == (True, 1, ["c1"])
        await store.rewrite("s", [compaction("c1", summary="gone")])
        await store.delete("s")
        assert broken == ["create", "append", "rewrite", "delete"]
        assert await store.sessions() == []

    async def test_whoever_gives_up_leaves_no_connection_behind(self, store: PostgresStore) -> None:
        await begin(store, "e1")
        for _ in range(20):
            with anyio.move_on_after(0.0005):
                await store.read("s", EVERYTHING)
        connections = store._station.connections
        with anyio.fail_after(20):
            while connections._busy:  # noqa: ASYNC110 - the index is being filled
                await anyio.sleep(0.01)
        assert await ids(store) == ["e1"]

    async def test_a_server_that_restarts(self, store: PostgresStore, postgres_server: Server) -> None:
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

    async def test_one_that_stays_away_is_one_clear_error(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        async with PostgresStore(NOWHERE, patience=0.1) as store:
            with pytest.raises(StoreError, match=r"^postgresql://127.0.0.1:1/agents could not be reached") as caught:
                await store.session("s")
        assert "see that the server runs" in str(caught.value)
        assert "hunter22" not in caplog.text + str(caught.value) + repr(store) + repr(vars(store))


class TestLoops:
    def test_every_event_loop_has_its_own_connections(self, postgres: str, tmp_path: Path) -> None:
        store = PostgresStore(postgres, tenant=str(tmp_path))

        async def first() -> None:
            await begin(store, "e1")
            assert await anyio.to_thread.run_sync(lambda: asyncio.run(second())) == ["e1"]
            await store.close()

        async def second() -> list[str]:
            found = await ids(store)
            await store._stations.pop(asyncio.get_running_loop()).connections.close()
            return found

        asyncio.run(first())

    async def test_closing_ends_what_is_running(self, store: PostgresStore) -> None:
        await begin(store, "e1")

        async def waits() -> None:
            with pytest.raises(StoreClosed):
                await store._run(lambda connection, _: connection.execute("SELECT pg_sleep(60)"))

        async with anyio.create_task_group() as group:
            group.start_soon(waits)
            await anyio.sleep(0.02)
            await store.close()


class TestRows:
    async def test_only_redaction_touches_an_event_that_is_there(self, store: PostgresStore, postgres: str) -> None:
        """L9: marked compacted means named in the record; a row is written once."""
        rows = "SELECT e.id, e.xmin::text, e.ctid::text FROM holdfast.events AS e ORDER BY e.session, e.seq"
        async with SessionService(store) as service, by_hand(postgres) as hand:
            session = await service.create()
            for number in range(8):
                role = "assistant" if number % 2 else "user"
                await service.append(session.id, {"role": role, "content": f"word {number}"})
            before = await hand.fetch(rows)
            assert (await service.compact(session.id, always, SlidingWindow(max_events=2))).outcome == "compacted"
            await service.undo(session.id)
            after = await hand.fetch(rows)
            assert before == [row for row in after if row["id"] in {each["id"] for each in before}]
            first = (await service.events(session.id))[0]
            await service.redact(session.id, first.id)
            assert first.id in {row["id"] for row in set(after) - set(await hand.fetch(rows))}

    async def test_names_that_only_nul_keeps_apart(self, store: PostgresStore) -> None:
        names = ["a\0b", "a\1b", "a\1" + "0b", "a\1" + "1b", "ab", "a\0", "a"]
        for name in names:
            await begin(store, "e1", session_id=name, owner=name, metadata={"name": name})
        assert [each.id for each in await store.sessions()] == sorted(names, reverse=True)
        for name in names:
            assert [each.metadata["name"] for each in await store.sessions(owner=name)] == [name]
            assert await ids(store, name) == ["e1"]

    @pytest.mark.parametrize("lane", ["'; DROP TABLE holdfast.events; --", "a\1b", "%_\\", "$1", '"', "x" * 600])
    async def test_any_lane_is_data(self, store: PostgresStore, lane: str) -> None:
        await begin(store, "e1")
        await store.append("s", [message("x1", lane=lane)])
        await store.append("s", [compaction("c1", lane=lane)], tip=LaneTip(epoch="c1", start=2))
        assert await ids(store, "s", Slice(lane=lane)) == ["x1", "c1"]
        assert (await store.session("s")).lanes == {lane: LaneTip(3, "c1", 2, base=1)}

    async def test_what_is_too_long_for_an_index_is_one_clear_error(self, store: PostgresStore) -> None:
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
def test_any_body_comes_back_as_it_was_given(postgres: str, bodies: list[Any]) -> None:
    """H1, for text that jsonb could not hold too; or it is refused, like half a surrogate pair."""

    async def there_and_back() -> None:
        async with PostgresStore(postgres, tenant=secrets.token_hex(8)) as store:
            await store.create(record("s"))
            given = [Event(f"e{place}", "new", "t", body) for place, body in enumerate(bodies)]
            try:
                await store.append("s", given)
            except InvalidInput:
                return
            assert [event.body for event in await store.read("s", Slice())] == bodies

    asyncio.run(there_and_back())


@pytest.mark.parametrize(
    "url", ["", "mysql://h/d", "postgresql://ann:hunter22@h:port/d", "postgresql://ann:hunter22/x@h:5432/d"]
)
def test_an_address_that_cannot_be_read_gives_nothing_away(url: str) -> None:
    with pytest.raises(InvalidInput, match="postgresql://user:password@host") as caught:
        PostgresStore(url)
    assert "hunter22" not in str(caught.value)


async def test_what_the_driver_cannot_use_gives_nothing_away() -> None:
    async with PostgresStore("postgresql://ann:hunter22@/agents?sslmode=never&password=hunter23") as store:
        with pytest.raises(InvalidInput, match="cannot be used") as caught:
            await store.sessions()
    assert "hunter2" not in str(caught.value) + str(caught.value.__cause__)


@pytest.mark.parametrize(
    "setting", [{"most": 0}, {"timeout": 0}, {"patience": float("inf")}, {"timeout": float("nan")}]
)
def test_settings_that_make_no_sense(setting: dict[str, Any]) -> None:
    with pytest.raises(InvalidLimit):
        PostgresStore(NOWHERE, **setting)


async def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "asyncpg", None)
    async with PostgresStore(NOWHERE) as store:
        with pytest.raises(InvalidInput, match=r"pip install 'holdfast\[postgres\]'"):
            await store.sessions()
