"""Numbered files of SQL, run once: by many servers at once, and with old and new applications side by side."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import anyio
import msgspec
import pytest

from holdfast.errors import StoreError
from holdfast.stores import PostgresStore
from holdfast.stores.postgres import migrating
from servers.running import Server
from stores.databases import by_hand
from stores.logs import begin, ids

pytestmark = pytest.mark.anyio
SERVER = """
import asyncio, sys
from holdfast.stores import PostgresStore

async def main():
    async with PostgresStore(sys.argv[1], migrate=True) as store:
        print(len(await store.sessions()))

asyncio.run(main())
"""


@pytest.fixture
def empty(new_database: Callable[[], str]) -> str:
    return new_database()


@pytest.fixture
async def migrated(empty: str) -> str:
    async with PostgresStore(empty, migrate=True) as store:
        await store.sessions()
    return empty


async def opens(url: str, **options: Any) -> None:
    async with PostgresStore(url, **options) as store:
        await store.sessions()


async def test_eight_servers_start_at_once(empty: str) -> None:
    said: list[tuple[bytes, bytes]] = []

    async def starts() -> None:
        done = await anyio.run_process([sys.executable, "-c", SERVER, empty], check=False)
        said.append((done.stdout, done.stderr))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(starts)
    assert said == [(b"0\n", b"")] * 8
    async with by_hand(empty) as hand:
        applied = await hand.fetch("SELECT number, why, digest FROM holdfast.migrations ORDER BY number")
    assert [tuple(row) for row in applied] == [(m.number, m.why, m.digest) for m in migrating.migrations()]


async def test_a_database_without_tables_says_what_to_do(empty: str) -> None:
    with pytest.raises(StoreError, match="has no tables of Holdfast yet: run `holdfast migrate`"):
        await opens(empty)
    await opens(empty, migrate=True)
    await opens(empty)


async def test_a_database_that_is_behind_says_so(migrated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = migrating.Migration(2, "-- A table more.\nCREATE TABLE holdfast.more (id integer);", 1)
    known = migrating.migrations()
    monkeypatch.setattr(migrating, "migrations", lambda: (*known, newer))
    with pytest.raises(StoreError, match="is at schema 1, and this Holdfast needs 2: run `holdfast migrate`"):
        await opens(migrated)
    await opens(migrated, migrate=True)
    monkeypatch.setattr(migrating, "migrations", lambda: known)
    await opens(migrated)  # the application of the version before goes on


async def test_a_database_that_is_too_new_says_so(migrated: str) -> None:
    async with by_hand(migrated) as hand:
        await hand.execute("INSERT INTO holdfast.migrations (number, why, digest, oldest) VALUES (2, '', '', 2)")
    for migrate in (False, True):
        with pytest.raises(StoreError, match=r"was migrated by a newer Holdfast .* upgrade this one"):
            await opens(migrated, migrate=migrate)


async def test_one_that_another_history_made_is_left_alone(migrated: str) -> None:
    async with by_hand(migrated) as hand:
        await hand.execute("UPDATE holdfast.migrations SET digest = 'other'")
    with pytest.raises(StoreError, match="has another migration 1 than this Holdfast"):
        await opens(migrated)


async def test_all_that_is_missing_or_nothing(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrating.migrations()
    broken = msgspec.structs.replace(known[0], number=2, script="-- It fails.\nCREATE TABLE holdfast.events ()")
    monkeypatch.setattr(migrating, "migrations", lambda: (*known, broken))
    with pytest.raises(StoreError, match="already exists"):
        await opens(empty, migrate=True)
    async with by_hand(empty) as hand:
        assert await hand.fetchval("SELECT to_regnamespace('holdfast')") is None


async def test_an_application_needs_no_more_rights_than_the_manual_says(migrated: str, postgres_server: Server) -> None:
    async with by_hand(migrated) as hand:
        await hand.execute("DROP ROLE IF EXISTS holdfast_application")
        await hand.execute("CREATE ROLE holdfast_application LOGIN")
        await hand.execute("GRANT USAGE ON SCHEMA holdfast TO holdfast_application")
        await hand.execute(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO holdfast_application"
        )
        user = await hand.fetchval("SELECT current_user")
    async with PostgresStore(migrated.replace(f"{user}:@", "holdfast_application:@"), migrate=True) as store:
        await begin(store, "e1", "e2")
        assert await ids(store) == ["e1", "e2"]
        assert len(await store.search("says")) == 2
        assert await store.take("s", "ann", 60)
        await store.delete("s")
    async with by_hand(migrated) as hand:
        await hand.execute("DROP OWNED BY holdfast_application")
        await hand.execute("DROP ROLE holdfast_application")


def test_every_file_says_why_and_who_may_go_on() -> None:
    for number, migration in enumerate(migrating.migrations(), 1):
        why, oldest = migration.script.splitlines()[:2]
        assert why.startswith("-- ") and why.endswith("."), number
        assert migration.number == number
        assert 1 <= migration.oldest <= number and oldest.startswith("-- Applications from schema")
