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


async def tenant_rows(url: str, tenant: str) -> bytes:
    """All rows of one tenant, in every table."""
    rows: list[str] = []
    async with raw_connection(url) as connection:
        tables = await connection.fetch(
            "SELECT table_name, bool_or(column_name = 'session') FROM information_schema.columns "
            "WHERE table_schema = 'holdfast' GROUP BY 1 HAVING bool_or(column_name IN ('session', 'tenant'))"
        )
        for table, of_session in tables:
            own = (
                "t.session IN (SELECT key FROM holdfast.sessions WHERE tenant = $1)" if of_session else "t.tenant = $1"
            )
            query = f'SELECT t::text FROM holdfast."{table}" AS t WHERE {own}'
            rows += [row[0] for row in await connection.fetch(query, tenant)]
    return "\n".join(rows).encode()
