"""Migrations of the PostgreSQL schema: concurrent servers, old and new applications, errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import anyio
import msgspec
import pytest

from holdfast.errors import StoreError
from holdfast.stores import PostgresStore
from holdfast.stores.postgres import schema
from servers.server import Server
from stores.databases import raw_connection
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


async def open_and_list(url: str, **options: Any) -> None:
    async with PostgresStore(url, **options) as store:
        await store.sessions()


async def test_migrate_concurrent_servers_apply_once(empty: str) -> None:
    outputs: list[tuple[bytes, bytes]] = []

    async def start() -> None:
        done = await anyio.run_process([sys.executable, "-c", SERVER, empty], check=False)
        outputs.append((done.stdout, done.stderr))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(start)
    assert outputs == [(b"0\n", b"")] * 8
    async with raw_connection(empty) as connection:
        applied = await connection.fetch("SELECT number, why, digest FROM holdfast.migrations ORDER BY number")
    assert [tuple(row) for row in applied] == [(m.number, m.description, m.digest) for m in schema.load_migrations()]


async def test_schema_missing_tables_raises_with_remedy(empty: str) -> None:
    with pytest.raises(StoreError, match="has no tables of Holdfast yet: run `holdfast migrate`"):
        await open_and_list(empty)
    await open_and_list(empty, migrate=True)
    await open_and_list(empty)


async def test_schema_behind_raises_with_remedy(migrated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = schema.load_migrations()
    here, next_one = len(known), len(known) + 1
    newer = schema.Migration(next_one, "-- A table more.\nCREATE TABLE holdfast.more (id integer);", here)
    monkeypatch.setattr(schema, "load_migrations", lambda: (*known, newer))
    with pytest.raises(
        StoreError, match=f"is at schema {here}, and this Holdfast needs {next_one}: run `holdfast migrate`"
    ):
        await open_and_list(migrated)
    await open_and_list(migrated, migrate=True)
    monkeypatch.setattr(schema, "load_migrations", lambda: known)
    await open_and_list(migrated)  # the previous version still works


async def test_schema_too_new_raises(migrated: str) -> None:
    async with raw_connection(migrated) as connection:
        await connection.execute(
            "INSERT INTO holdfast.migrations (number, why, digest, oldest) VALUES (99, '', '', 99)"
        )
    for migrate in (False, True):
        with pytest.raises(StoreError, match=r"was migrated by a newer Holdfast .* upgrade this one"):
            await open_and_list(migrated, migrate=migrate)


async def test_schema_changed_digest_raises(migrated: str) -> None:
    async with raw_connection(migrated) as connection:
        await connection.execute("UPDATE holdfast.migrations SET digest = 'other'")
    with pytest.raises(StoreError, match="has another migration 1 than this Holdfast"):
        await open_and_list(migrated)


async def test_migrate_failure_applies_nothing(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = schema.load_migrations()
    broken = msgspec.structs.replace(
        known[0], number=len(known) + 1, script="-- It fails.\nCREATE TABLE holdfast.events ()"
    )
    monkeypatch.setattr(schema, "load_migrations", lambda: (*known, broken))
    with pytest.raises(StoreError, match="already exists"):
        await open_and_list(empty, migrate=True)
    async with raw_connection(empty) as connection:
        assert await connection.fetchval("SELECT to_regnamespace('holdfast')") is None


async def test_store_works_with_documented_rights(migrated: str, postgres_server: Server) -> None:
    async with raw_connection(migrated) as connection:
        await connection.execute("DROP ROLE IF EXISTS holdfast_application")
        await connection.execute("CREATE ROLE holdfast_application LOGIN")
        await connection.execute("GRANT USAGE ON SCHEMA holdfast TO holdfast_application")
        await connection.execute(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO holdfast_application"
        )
        user = await connection.fetchval("SELECT current_user")
    async with PostgresStore(migrated.replace(f"{user}:@", "holdfast_application:@"), migrate=True) as store:
        await begin(store, "e1", "e2")
        assert await ids(store) == ["e1", "e2"]
        assert len(await store.search("says")) == 2
        assert await store.take("s", "compaction", "ann", 60)
        await store.delete("s")
    async with raw_connection(migrated) as connection:
        await connection.execute("DROP OWNED BY holdfast_application")
        await connection.execute("DROP ROLE holdfast_application")


def test_migration_files_have_description_and_oldest_schema() -> None:
    for number, migration in enumerate(schema.load_migrations(), 1):
        why, oldest = migration.script.splitlines()[:2]
        assert why.startswith("-- ") and why.endswith("."), number
        assert migration.number == number
        assert 1 <= migration.oldest_schema <= number and oldest.startswith("-- Applications from schema")
