"""Copies of a store: each run of an operation starts from the same files, or from the same database."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg

from holdfast import open_store
from holdfast.stores import PostgresStore
from servers.fixtures import database
from servers.server import Server
from stress.two_writers import store_address


class Scene:
    """The files of one store, copied before each run."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder

    def clear(self) -> None:
        """Makes an empty base, from which copies are made."""
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "base").mkdir(parents=True)

    def copy(self, source: str, target: str) -> None:
        shutil.rmtree(self.folder / target, ignore_errors=True)
        shutil.copytree(self.folder / source, self.folder / target)

    def open(self, name: str) -> Any:
        return open_store(store_address(self.kind, self.folder / name))

    def wait_idle(self) -> None:
        """Waits until nothing that a killed process began is still running."""

    async def places_with(self, text: str) -> list[str]:
        """Names of files that have a text."""
        found = (path for path in (self.folder / "work").rglob("*") if path.is_file())
        return [path.name for path in found if text.encode() in path.read_bytes()]


class ServerScene(Scene):
    """Databases of a PostgreSQL server, copied before each run; only its clients are killed."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__("postgres", folder)
        self._url = url

    def clear(self) -> None:
        self._execute('DROP DATABASE IF EXISTS "base" WITH (FORCE)', 'CREATE DATABASE "base" TEMPLATE template0')

    def copy(self, source: str, target: str) -> None:
        self._execute(
            f'DROP DATABASE IF EXISTS "{target}" WITH (FORCE)', f'CREATE DATABASE "{target}" TEMPLATE "{source}"'
        )

    def open(self, name: str) -> Any:
        return PostgresStore(database(self._url, name), migrate=True)

    def wait_idle(self) -> None:
        busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'work'"
        while self._execute(busy):
            time.sleep(0.002)

    async def places_with(self, text: str) -> list[str]:
        """Names of tables that have a text."""
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'holdfast'"
        connection: Any = await asyncpg.connect(database(self._url, "work"))
        try:
            names = [name for (name,) in await connection.fetch(tables)]
            count = 'SELECT count(*) FROM holdfast."{}" AS t WHERE strpos(t::text, $1) > 0'
            return [name for name in names if await connection.fetchval(count.format(name), text)]
        finally:
            await connection.close()

    def _execute(self, *statements: str) -> Any:
        async def run() -> Any:
            connection: Any = await asyncpg.connect(self._url)
            try:
                return [await connection.fetchval(statement) for statement in statements][-1]
            finally:
                await connection.close()

        return asyncio.run(run())


@contextmanager
def scene_of(kind: str, folder: Path) -> Iterator[Scene]:
    """The store to kill processes on, in a folder or on a server of its own."""
    if kind != "postgres":
        yield Scene(kind, folder)
        return
    with Server("postgres") as server:
        yield ServerScene(folder, server.url)
