"""Numbered files of SQL, each run once, one process at a time, all that are missing or none."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from ...errors import StoreError
from .statements import LONG, blocks

COMMAND = "`holdfast migrate`"

_SQL = blocks("migrating.sql")
_OLDEST = re.compile(r"^-- Applications from schema (\d+) on can work with it\.$", re.MULTILINE)


class Migration(msgspec.Struct, frozen=True):
    """One file of changes to the schema."""

    number: int
    script: str
    oldest: int
    """The schema of the oldest application that still works after it: both run while servers are replaced."""

    @property
    def why(self) -> str:
        return self.script.partition("\n")[0].removeprefix("-- ")

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.script.encode()).hexdigest()[:32]


class Standing(msgspec.Struct, frozen=True):
    """How a database and this Holdfast stand to each other."""

    applied: int
    """The schema of the database; 0 where it has none of our tables."""
    missing: tuple[Migration, ...]
    problem: str | None = None
    """Why this Holdfast cannot use the database, though nothing is missing."""


@cache
def migrations() -> tuple[Migration, ...]:
    folder = resources.files(__package__) / "migrations"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    found = []
    for number, file in enumerate(files, 1):
        script = file.read_text(encoding="utf-8")
        oldest = _OLDEST.search(script)
        assert oldest is not None and int(file.name.partition(".")[0]) == number, file.name
        found.append(Migration(number, script, int(oldest[1])))
    return tuple(found)


async def standing(connection: Any) -> Standing:
    """What the database has seen, and what that means for us."""
    ours = migrations()
    if not await connection.fetchval(_SQL["there"]):
        return Standing(0, ours)
    seen = {row["number"]: row for row in await connection.fetch(_SQL["applied"])}
    applied = max(seen, default=0)
    missing = tuple(each for each in ours if each.number not in seen)
    oldest = max((row["oldest"] for row in seen.values()), default=0)
    changed = [each.number for each in ours if each.number in seen and seen[each.number]["digest"] != each.digest]
    problem = None
    if oldest > len(ours):
        problem = f"was migrated by a newer Holdfast (schema {applied}, ours is {len(ours)}): upgrade this one"
    elif changed:
        problem = f"has another migration {changed[0]} than this Holdfast: use the version that made it"
    return Standing(applied, missing, problem)


async def check(connection: Any, where: str) -> None:
    """See that this Holdfast and the database go together; StoreError says which of them is behind."""
    stands = await standing(connection)
    if stands.problem:
        raise StoreError(f"{where} {stands.problem}.")
    if not stands.applied:
        raise StoreError(f"{where} has no tables of Holdfast yet: run {COMMAND} on it, or open it with migrate=True.")
    if stands.missing:
        raise StoreError(
            f"{where} is at schema {stands.applied}, and this Holdfast needs {stands.missing[-1].number}: "
            f"run {COMMAND} on it, or open it with migrate=True."
        )


async def migrate(connection: Any, where: str) -> tuple[Migration, ...]:
    """Run what is missing. Servers that start at once wait for the first of them, and find nothing left to do."""
    stands = await standing(connection)
    if stands.missing and not stands.problem:
        async with connection.transaction():
            await connection.execute(_SQL["alone"], timeout=LONG)
            await connection.execute(_SQL["make"])
            stands = await standing(connection)
            if not stands.problem:
                for each in stands.missing:
                    await connection.execute(each.script, timeout=LONG)
                    await connection.execute(_SQL["note"], each.number, each.why, each.digest, each.oldest)
    if stands.problem:
        raise StoreError(f"{where} {stands.problem}.")
    return stands.missing
