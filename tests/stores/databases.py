"""Direct access to a store's PostgreSQL database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

_OTHERS = """
SELECT count(*), coalesce(bool_and(pg_terminate_backend(pid)), true) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'holdfast'
"""


@asynccontextmanager
async def raw_connection(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def terminate_connections(connection: Any) -> int:
    """Terminates all connections of stores to this database; returns their number."""
    count: int = (await connection.fetchrow(_OTHERS))[0]
    return count
