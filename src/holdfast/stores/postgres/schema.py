"""Migrations: numbered SQL files, each applied once, one process at a time, in one transaction."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from ...errors import HoldfastError, StoreError
from .connections import PostgresAddress
from .rows import LONG_TIMEOUT, load_statements

MIGRATE_COMMAND = "`holdfast migrate`"
_MIGRATION_SQL = load_statements("migrating.sql")
_OLDEST_APPLICATION = re.compile(r"^-- Applications from schema (\d+) on can work with it\.$", re.MULTILINE)


class Migration(msgspec.Struct, frozen=True):
    """One numbered SQL file."""

    number: int
    script: str
    oldest_schema: int
    """Schema of the oldest application that still works after it, for rolling upgrades."""

    @property
    def description(self) -> str:
        return self.script.partition("\n")[0].removeprefix("-- ")

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.script.encode()).hexdigest()[:32]


class SchemaStatus(msgspec.Struct, frozen=True):
    """Migrations applied to a database, compared with those of this Holdfast."""

    applied: int
    """Schema of the database; 0 without tables of Holdfast."""
    missing: tuple[Migration, ...]
    problem: str | None = None
    """Why this Holdfast cannot use the database, apart from missing migrations."""


@cache
def load_migrations() -> tuple[Migration, ...]:
    folder = resources.files(__package__) / "migrations"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    found = []
    for number, file in enumerate(files, 1):
        script = file.read_text(encoding="utf-8")
        oldest = _OLDEST_APPLICATION.search(script)
        assert oldest is not None and int(file.name.partition(".")[0]) == number, file.name
        found.append(Migration(number, script, int(oldest[1])))
    return tuple(found)


async def schema_status(connection: Any) -> SchemaStatus:
    """Compares the applied migrations with ours."""
    ours = load_migrations()
    if not await connection.fetchval(_MIGRATION_SQL["there"]):
        return SchemaStatus(0, ours)
    rows = {row["number"]: row for row in await connection.fetch(_MIGRATION_SQL["applied"])}
    applied = max(rows, default=0)
    missing = tuple(each for each in ours if each.number not in rows)
    oldest = max((row["oldest"] for row in rows.values()), default=0)
    changed = [each.number for each in ours if each.number in rows and rows[each.number]["digest"] != each.digest]
    problem = None
    if oldest > len(ours):
        problem = f"was migrated by a newer Holdfast (schema {applied}, ours is {len(ours)}): upgrade this one"
    elif changed:
        problem = f"has another migration {changed[0]} than this Holdfast: use the version that migrated it"
    return SchemaStatus(applied, missing, problem)


async def check_schema(connection: Any, where: str) -> None:
    """Raises StoreError unless this Holdfast can use the database; the message says which of them to upgrade."""
    status = await schema_status(connection)
    if status.problem:
        raise StoreError(f"{where} {status.problem}.")
    if not status.applied:
        raise StoreError(
            f"{where} has no tables of Holdfast yet: run {MIGRATE_COMMAND} on it, or open it with migrate=True."
        )
    if status.missing:
        raise StoreError(
            f"{where} is at schema {status.applied}, and this Holdfast needs {status.missing[-1].number}: "
            f"run {MIGRATE_COMMAND} on it, or open it with migrate=True."
        )


async def apply_migrations(connection: Any, where: str) -> tuple[Migration, ...]:
    """Applies missing migrations under an advisory lock, so that several servers may start at once."""
    status = await schema_status(connection)
    if status.missing and not status.problem:
        async with connection.transaction():
            await connection.execute(_MIGRATION_SQL["alone"], timeout=LONG_TIMEOUT)
            await connection.execute(_MIGRATION_SQL["make"])
            status = await schema_status(connection)
            if not status.problem:
                for each in status.missing:
                    await connection.execute(each.script, timeout=LONG_TIMEOUT)
                    await connection.execute(
                        _MIGRATION_SQL["note"], each.number, each.description, each.digest, each.oldest_schema
                    )
    if status.problem:
        raise StoreError(f"{where} {status.problem}.")
    return status.missing


class MigrationReport(msgspec.Struct, frozen=True):
    """Migrations that were applied, or that are missing."""

    where: str
    schema: int
    migrations: tuple[Migration, ...]


async def migrate_database(url: str, check: bool = False) -> MigrationReport:
    """Applies missing migrations; with `check`, only reports them."""
    address = PostgresAddress(url)
    try:
        connection = await address.connect(LONG_TIMEOUT)
        try:
            if not check:
                return MigrationReport(
                    address.public, len(load_migrations()), await apply_migrations(connection, address.public)
                )
            status = await schema_status(connection)
        finally:
            connection.terminate()
    except HoldfastError:
        raise
    except Exception as error:
        raise address.translate(error) from None
    if status.problem:
        raise StoreError(f"{address.public} {status.problem}.")
    return MigrationReport(address.public, status.applied, status.missing)
