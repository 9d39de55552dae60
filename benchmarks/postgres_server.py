"""The PostgreSQL server to measure: HOLDFAST_TEST_POSTGRES, else a private one with fsync."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from tests.servers.server import Server


@asynccontextmanager
async def empty_database() -> AsyncIterator[str]:
    """URL of a new database that is dropped at the end."""
    given = os.environ.get("HOLDFAST_TEST_POSTGRES")
    server = None if given else Server("postgres")
    address = given or (server.url if server else "")
    name = f"holdfast_benchmark_{secrets.token_hex(4)}"
    connection = await asyncpg.connect(address)
    try:
        if server:
            await connection.execute("ALTER SYSTEM SET fsync = on")
            await connection.execute("ALTER SYSTEM SET max_wal_size = '4GB'")
            await connection.execute("SELECT pg_reload_conf()")
        await connection.execute(f"CREATE DATABASE {name}")
        yield urlunsplit(urlsplit(address)._replace(path=f"/{name}"))
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()
        if server:
            server.close()
