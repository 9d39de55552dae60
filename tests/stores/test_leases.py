"""The flag of a session that somebody is at work on: owned, renewed, and gone by itself if its owner dies (W13)."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.errors import UnknownSession
from holdfast.stores import JSONLStore, SQLiteStore
from holdfast.stores.log import Lease
from stores.logs import begin, record

pytestmark = pytest.mark.anyio
LONG, SHORT = 60.0, 0.02


async def test_every_store_has_flags(store: Any) -> None:
    assert isinstance(store, Lease)


async def test_one_owner_has_it_and_all_see_it(store: Any) -> None:
    await begin(store, "e1")
    assert await store.held("s") is None
    assert await store.take("s", "ada", LONG)
    left = await store.held("s")
    assert left is not None and 0 < left <= LONG
    assert not await store.take("s", "ben", LONG)
    await store.release("s", "ben")
    assert await store.held("s") is not None, "only its owner lowers it"
    await store.release("s", "ada")
    assert await store.held("s") is None
    assert await store.take("s", "ben", LONG)


async def test_its_owner_renews_it(store: Any) -> None:
    await begin(store, "e1")
    assert await store.take("s", "ada", SHORT)
    assert await store.take("s", "ada", LONG)
    left = await store.held("s")
    assert left is not None and left > SHORT


async def test_one_that_is_not_renewed_goes_by_itself(store: Any) -> None:
    await begin(store, "e1")
    assert await store.take("s", "ada", SHORT)
    while await store.held("s") is not None:
        await store.changed("s", LONG)
    assert await store.take("s", "ben", LONG)
    await store.release("s", "ada")
    assert await store.held("s") is not None, "whoever comes back late lowers nobody else's"
    assert not await store.take("s", "ada", LONG)


async def test_sessions_do_not_share_one(store: Any) -> None:
    await begin(store, "e1")
    await store.create(record("t"))
    assert await store.take("s", "ada", LONG)
    assert await store.held("t") is None
    assert await store.take("t", "ben", LONG)


async def test_a_fork_has_one_of_its_own(store: Any) -> None:
    await begin(store, "e1")
    assert await store.take("s", "ada", LONG)
    await store.create(record("fork", parent="s", parent_seq=1, version=1))
    assert await store.held("fork") is None
    assert await store.take("fork", "ben", LONG)


async def test_whoever_waits_is_told(store: Any) -> None:
    """Not by the time-out: that would be far too late."""
    await begin(store, "e1")
    assert await store.take("s", "ada", LONG)
    seen: list[float | None] = []

    async def waits() -> None:
        while (left := await store.held("s")) is not None:
            await store.changed("s", left)
        seen.append(left)

    async with anyio.create_task_group() as group:
        group.start_soon(waits)
        group.start_soon(waits)
        await anyio.sleep(0.01)
        assert seen == []
        await store.release("s", "ada")
    assert seen == [None, None]


async def test_waiting_ends_when_it_was_to(store: Any) -> None:
    await begin(store, "e1")
    assert await store.take("s", "ada", LONG)
    with anyio.fail_after(20):
        await store.changed("s", SHORT)
    assert await store.held("s") is not None


async def test_nobody_can_be_at_work_on_a_session_that_there_is_not(store: Any) -> None:
    with pytest.raises(UnknownSession):
        await store.take("nobody", "ada", LONG)
    assert await store.held("nobody") is None
    await store.release("nobody", "ada")


async def test_it_goes_with_its_session(store: Any) -> None:
    await begin(store, "e1")
    assert await store.take("s", "ada", LONG)
    await store.delete("s")
    await begin(store, "e1")
    assert await store.held("s") is None
    assert await store.take("s", "ben", LONG)


async def test_it_changes_nothing_about_the_log(store: Any) -> None:
    await begin(store, "e1")
    before = await store.session("s")
    assert await store.take("s", "ada", LONG)
    assert await store.session("s") == before
    assert await store.problems("s") == []


@pytest.mark.parametrize("name", ["a/b", "%", "s'; DROP TABLE leases; --", "\N{SNOWMAN}" * 200])
async def test_any_id_and_any_owner_is_data(store: Any, name: str) -> None:
    await store.create(record(name))
    assert await store.take(name, name, LONG)
    assert not await store.take(name, "other", LONG)
    await store.release(name, name)
    assert await store.held(name) is None


async def test_others_who_opened_the_same_place_see_it_too(reopen: Callable[[], Any]) -> None:
    async with reopen() as one, reopen() as other:
        await begin(one, "e1")
        assert await one.take("s", "ada", LONG)
        assert await other.held("s") is not None
        assert not await other.take("s", "ben", LONG)
        async with anyio.create_task_group() as group:

            @group.start_soon
            async def waits() -> None:
                while await other.held("s") is not None:
                    await other.changed("s", LONG)

            await one.release("s", "ada")


async def test_many_want_it_at_once_and_one_gets_it(reopen: Callable[[], Any]) -> None:
    async with reopen() as one, reopen() as other:
        await begin(one, "e1")
        got: list[str] = []

        async def wants(store: Any, owner: str) -> None:
            if await store.take("s", owner, LONG):
                got.append(owner)

        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(wants, (one, other)[number % 2], f"owner {number}")
        assert len(got) == 1


async def test_a_flag_that_a_crash_left_half_written_is_down(tmp_path: Path) -> None:
    async with JSONLStore(tmp_path) as store:
        await begin(store, "e1")
        assert await store.take("s", "ada", LONG)
        os.truncate(tmp_path / "s.lease", 7)
        assert await store.held("s") is None
        assert await store.take("s", "ben", LONG)


async def test_a_database_from_before_there_were_flags_gets_them(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    async with SQLiteStore(path) as store:
        await begin(store, "e1")
    connection = sqlite3.connect(path)
    connection.executescript("DROP TABLE leases; PRAGMA user_version = 1;")
    connection.close()
    async with SQLiteStore(path) as store:
        assert await store.held("s") is None
        assert await store.take("s", "ada", LONG)


async def test_where_nothing_can_be_written_nobody_is_at_work(locked_away: Path) -> None:
    async with SQLiteStore(locked_away / "sessions.db") as database, JSONLStore(locked_away / "sessions") as folder:
        for store in (database, folder):
            assert await store.held("s") is None
