"""The flag of a session as a row: whoever finds it expired may take it over (W13)."""

from __future__ import annotations

from typing import Any

from ...errors import UnknownSession
from .nul import kept
from .statements import blocks

_SQL = blocks("leases.sql")


async def take(connection: Any, tenant: str, session_id: str, owner: str, seconds: float) -> bool:
    known, taken = await connection.fetchrow(_SQL["take"], tenant, kept(session_id), kept(owner), seconds)
    if not known:
        raise UnknownSession(session_id)
    return bool(taken)


async def release(connection: Any, tenant: str, session_id: str, owner: str) -> None:
    await connection.execute(_SQL["release"], tenant, kept(session_id), kept(owner))


async def held(connection: Any, tenant: str, session_id: str) -> tuple[int, float] | None:
    """The session's key and for how long its flag still stands; None where it is down."""
    row = await connection.fetchrow(_SQL["held"], tenant, kept(session_id))
    return None if row is None else (row["session"], row["seconds"])
