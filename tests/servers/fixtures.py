"""Fixtures to import into a conftest: a PostgreSQL and a Valkey server, started by the first test that needs one.

Each worker of a test run has its own, which takes no longer than sharing one. An address in HOLDFAST_TEST_POSTGRES or
HOLDFAST_TEST_REDIS takes precedence; tests that stop and start the server are then skipped.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from servers.server import Server

POSTGRES, REDIS = "HOLDFAST_TEST_POSTGRES", "HOLDFAST_TEST_REDIS"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    if os.environ.get(POSTGRES):
        pytest.skip(f"{POSTGRES} names a server that tests must not stop")
    with Server("postgres") as server:
        yield server


@pytest.fixture(scope="session")
def new_database(request: pytest.FixtureRequest) -> Iterator[Callable[[], str]]:
    """Creates an empty database and returns its address; all are dropped at the end."""
    given = os.environ.get(POSTGRES)
    url: str = given or request.getfixturevalue("postgres_server").url
    made: list[str] = []

    def make() -> str:
        made.append(f"holdfast_test_{secrets.token_hex(6)}")
        asyncio.run(_execute(url, f"CREATE DATABASE {made[-1]} TEMPLATE template0"))
        return database(url, made[-1])

    yield make
    if given:
        for name in made:
            asyncio.run(_execute(url, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture(scope="session")
def postgres(new_database: Callable[[], str]) -> str:
    """The address of a migrated database; tests are isolated by tenant."""
    from holdfast.stores import PostgresStore

    async def migrate(url: str) -> None:
        async with PostgresStore(url, migrate=True) as store:
            await store.sessions(limit=1)

    url = new_database()
    asyncio.run(migrate(url))
    return url


@pytest.fixture(scope="session")
def valkey() -> Iterator[str]:
    """The address of a Valkey server."""
    if given := os.environ.get(REDIS):
        yield given
        return
    with Server("valkey") as server:
        yield server.url


def database(url: str, name: str) -> str:
    """Returns the address of another database on the same server."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"/{name}"))


async def _execute(url: str, statement: str) -> Any:
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        return await connection.execute(statement)
    finally:
        await connection.close()
