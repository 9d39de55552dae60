"""Session leases on every store: name, owner, renewal, expiry, waiting (W13, H9)."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.errors import UnknownSession
from holdfast.io.processes import process_name
from holdfast.stores import JSONLStore, PostgresStore, SQLiteStore
from holdfast.stores.base import Lease
from holdfast.stores.jsonl import store as jsonl_store
from holdfast.stores.sqlite import store as sqlite_store
from stores.logs import begin, record

pytestmark = pytest.mark.anyio
LONG, SHORT = 60.0, 0.02


async def test_store_implements_lease(store: Any) -> None:
    assert isinstance(store, Lease)


async def test_lease_held_by_one_owner_only(store: Any) -> None:
    await begin(store, "e1")
    assert await store.held("s", "compaction") is None
    assert await store.take("s", "compaction", "ada", LONG)
    left = await store.held("s", "compaction")
    assert left is not None and 0 < left <= LONG
    assert not await store.take("s", "compaction", "ben", LONG)
    await store.release("s", "compaction", "ben")
    assert await store.held("s", "compaction") is not None, "only the owner can release it"
    await store.release("s", "compaction", "ada")
    assert await store.held("s", "compaction") is None
    assert await store.take("s", "compaction", "ben", LONG)


async def test_lease_taken_again_by_owner_is_renewed(store: Any) -> None:
    await begin(store, "e1")
    assert await store.take("s", "compaction", "ada", SHORT)
    assert await store.take("s", "compaction", "ada", LONG)
    left = await store.held("s", "compaction")
    assert left is not None and left > SHORT


async def test_lease_expired_can_be_taken_over(store: Any) -> None:
    await begin(store, "e1")
    assert await store.take("s", "compaction", "ada", SHORT)
    while await store.held("s", "compaction") is not None:
        await store.changed("s", "compaction", LONG)
    assert await store.take("s", "compaction", "ben", LONG)
    await store.release("s", "compaction", "ada")
    assert await store.held("s", "compaction") is not None, "a late release does not affect the new owner"
    assert not await store.take("s", "compaction", "ada", LONG)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when a process started")
async def test_lease_of_a_process_that_has_ended_is_free_at_once(reopen: Callable[[], Any]) -> None:
    """Whatever the clock says; that of a running process is not."""
    script = "from holdfast.io.processes import process_name; print(process_name())"
    ended = (await anyio.run_process([sys.executable, "-c", script])).stdout.decode().strip()
    async with reopen() as store:
        await begin(store)
        assert await store.take("s", "compaction", f"worker@{ended}", 3_600)
        assert await store.held("s", "compaction") is None
        assert await store.take("s", "compaction", f"me@{process_name()}", 3_600)
        assert not await store.take("s", "compaction", "other", 3_600)
        assert await store.held("s", "compaction") is not None
        await store.release("s", "compaction", f"me@{process_name()}")
        assert await store.take("s", "compaction", f"worker@{ended.replace('/', 'elsewhere/')}", 3_600)
        assert not await store.take("s", "compaction", "other", 3_600), (
            "a process of another machine cannot be looked up"
        )


async def test_h9_leases_of_two_names_are_independent(store: Any) -> None:
    """A turn may hold its session while a worker compacts it; each is waited for, renewed and released alone."""
    await begin(store, "e1")
    assert await store.take("s", "turn", "ada", LONG)
    assert await store.held("s", "compaction") is None
    assert await store.take("s", "compaction", "ben", LONG)
    assert not await store.take("s", "turn", "ben", LONG)
    await store.release("s", "turn", "ben")
    assert await store.held("s", "turn") is not None
    await store.release("s", "turn", "ada")
    assert await store.held("s", "turn") is None
    assert await store.held("s", "compaction") is not None
    await store.take("s", "turn", "ada", LONG)
    await store.delete("s")
    await begin(store, "e1")
    assert await store.held("s", "turn") is None and await store.held("s", "compaction") is None


async def test_lease_is_per_session(store: Any) -> None:
    await begin(store, "e1")
    await store.create(record("t"))
    assert await store.take("s", "compaction", "ada", LONG)
    assert await store.held("t", "compaction") is None
    assert await store.take("t", "compaction", "ben", LONG)


async def test_lease_of_fork_is_separate(store: Any) -> None:
    await begin(store, "e1")
    assert await store.take("s", "compaction", "ada", LONG)
    await store.create(record("fork", parent="s", parent_seq=1, version=1))
    assert await store.held("fork", "compaction") is None
    assert await store.take("fork", "compaction", "ben", LONG)


async def test_lease_release_wakes_waiters(store: Any) -> None:
    """Well before the time-out."""
    await begin(store, "e1")
    assert await store.take("s", "compaction", "ada", LONG)
    seen: list[float | None] = []

    async def wait() -> None:
        while (left := await store.held("s", "compaction")) is not None:
            await store.changed("s", "compaction", left)
        seen.append(left)

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        group.start_soon(wait)
        await anyio.sleep(0.01)
        assert seen == []
        await store.release("s", "compaction", "ada")
    assert seen == [None, None]


async def test_lease_wait_ends_at_timeout(store: Any) -> None:
    await begin(store, "e1")
    assert await store.take("s", "compaction", "ada", LONG)
    with anyio.fail_after(20):
        await store.changed("s", "compaction", SHORT)
    assert await store.held("s", "compaction") is not None


async def test_lease_unknown_session_cannot_be_taken(store: Any) -> None:
    with pytest.raises(UnknownSession):
        await store.take("nobody", "compaction", "ada", LONG)
    assert await store.held("nobody", "compaction") is None
    await store.release("nobody", "compaction", "ada")


async def test_lease_is_deleted_with_session(store: Any) -> None:
    await begin(store, "e1")
    assert await store.take("s", "compaction", "ada", LONG)
    await store.delete("s")
    await begin(store, "e1")
    assert await store.held("s", "compaction") is None
    assert await store.take("s", "compaction", "ben", LONG)


async def test_lease_does_not_change_log(store: Any) -> None:
    await begin(store, "e1")
    before = await store.session("s")
    assert await store.take("s", "compaction", "ada", LONG)
    assert await store.session("s") == before
    assert await store.problems("s") == []


@pytest.mark.parametrize("name", ["a/b", "%", "s'; DROP TABLE leases; --", "\N{SNOWMAN}" * 200])
async def test_lease_accepts_any_id_and_owner(store: Any, name: str) -> None:
    await store.create(record(name))
    assert await store.take(name, "compaction", name, LONG)
    assert not await store.take(name, "compaction", "other", LONG)
    await store.release(name, "compaction", name)
    assert await store.held(name, "compaction") is None


async def test_lease_is_visible_to_other_store(reopen: Callable[[], Any]) -> None:
    async with reopen() as one, reopen() as other:
        await begin(one, "e1")
        assert await one.take("s", "compaction", "ada", LONG)
        assert await other.held("s", "compaction") is not None
        assert not await other.take("s", "compaction", "ben", LONG)
        async with anyio.create_task_group() as group:

            @group.start_soon
            async def wait() -> None:
                while await other.held("s", "compaction") is not None:
                    await other.changed("s", "compaction", LONG)

            await one.release("s", "compaction", "ada")


async def test_lease_concurrent_takes_one_wins(reopen: Callable[[], Any]) -> None:
    async with reopen() as one, reopen() as other:
        await begin(one, "e1")
        got: list[str] = []

        async def try_take(store: Any, owner: str) -> None:
            if await store.take("s", "compaction", owner, LONG):
                got.append(owner)

        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(try_take, (one, other)[number % 2], f"owner {number}")
        assert len(got) == 1


async def test_lease_file_truncated_counts_as_released(tmp_path: Path) -> None:
    async with JSONLStore(tmp_path) as store:
        await begin(store, "e1")
        assert await store.take("s", "compaction", "ada", LONG)
        os.truncate(tmp_path / "s.compaction.lease", 7)
        assert await store.held("s", "compaction") is None
        assert await store.take("s", "compaction", "ben", LONG)


async def test_lease_table_is_added_to_old_database(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    async with SQLiteStore(path) as store:
        await begin(store, "e1")
    connection = sqlite3.connect(path)
    connection.executescript("DROP TABLE leases; DROP TABLE origins; PRAGMA user_version = 1;")
    connection.close()
    async with SQLiteStore(path) as store:
        assert await store.held("s", "compaction") is None
        assert await store.take("s", "compaction", "ada", LONG)


async def test_lease_read_only_store_is_not_held(read_only_folder: Path) -> None:
    async with (
        SQLiteStore(read_only_folder / "sessions.db") as database,
        JSONLStore(read_only_folder / "sessions") as folder,
    ):
        for store in (database, folder):
            assert await store.held("s", "compaction") is None


@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
async def test_clock_set_back_prolongs_a_lease_by_no_more_than_its_length(
    open_one: Callable[[], Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder is dead, on another machine; nobody waits for the hour by which the clock was set back."""
    clock = [1_800_000_000.0]
    module = jsonl_store if kind == "jsonl" else sqlite_store
    monkeypatch.setattr(module.time, "time", lambda: clock[0])
    async with open_one() as store, open_one() as other:
        await begin(store, "e1")
        assert await store.take("s", "compaction", "ada", LONG)
        clock[0] -= 3600
        assert await other.held("s", "compaction") == LONG
        assert not await other.take("s", "compaction", "ben", LONG)
        clock[0] += LONG - 1
        assert not await other.take("s", "compaction", "ben", LONG)
        assert await store.take("s", "compaction", "ada", LONG), "a live holder renews it"
        assert await other.held("s", "compaction") == LONG
        clock[0] += LONG
        assert await other.held("s", "compaction") is None
        assert await other.take("s", "compaction", "ben", LONG)


async def test_postgres_leases_ignore_the_clocks_of_clients(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with PostgresStore(postgres, tenant=str(tmp_path)) as store:
        await begin(store, "e1")
        assert await store.take("s", "compaction", "ada", LONG)
        monkeypatch.setattr(time, "time", lambda: 0.0)
        left = await store.held("s", "compaction")
        assert left is not None and LONG - 30 < left <= LONG
        assert not await store.take("s", "compaction", "ben", LONG)
