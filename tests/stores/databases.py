"""What the tests of PostgreSQL do behind a store's back."""

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
async def by_hand(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def cut_all(connection: Any) -> int:
    """Break every connection that a store has to this database; says how many there were."""
    count: int = (await connection.fetchrow(_OTHERS))[0]
    return count
