"""Deletion in pieces: a session disappears at once, its rows are removed step by step.

Hiding moves the session to a tenant that no caller can name; its forks still read the events they share, through its
key. Each step copies shared events to a fork, newest first, and lowers the fork's `parent_seq` with them: an event is
visible exactly once at any time. A process that dies leaves the next step to any other.
"""

from __future__ import annotations

from typing import Any

from ...context.events import new_id
from ...errors import UnknownSession
from .rows import escape_nul, load_statements

STEP_EVENTS = 250
"""Events copied or removed in one transaction, which is how long an append to a fork may wait."""
STEP_BYTES = 2_000_000
STEP_MEDIA = 4
LOCK_SECONDS = 30
"""How long a redaction or deletion waits for the indexers of other processes."""
_SQL = load_statements("deletion.sql")


async def lock_store(connection: Any) -> None:
    """Waits a limited time for the lock that keeps indexers away; inside a transaction."""
    await connection.execute(_SQL["limit_waiting"], f"{LOCK_SECONDS}s")
    await connection.execute(_SQL["alone"])


async def delete_session(connection: Any, tenant: str, session_id: str, unsure: bool) -> None:
    """Hides a session; raises UnknownSession if there is none, unless an earlier deletion of it goes on."""
    if await hide_session(connection, tenant, session_id) or unsure:
        return
    if not await connection.fetchval(_SQL["begun"], tenant, escape_nul(session_id)):
        raise UnknownSession(session_id)


async def hide_session(connection: Any, tenant: str, session_id: str, before: str | None = None) -> bool:
    """Hides a session without appends since `before`; under the lock that no indexer is at work on it."""
    async with connection.transaction():
        await lock_store(connection)
        hidden = await connection.fetch(_SQL["hide"], tenant, escape_nul(session_id), escape_nul(before), new_id())
    return bool(hidden)


async def has_hidden(connection: Any, tenant: str) -> bool:
    """Whether sessions are being deleted, or their deletion was interrupted."""
    hidden: bool = await connection.fetchval(_SQL["any_hidden"], tenant)
    return hidden


async def remove_hidden(connection: Any, tenant: str) -> bool:
    """Takes the next step of a deletion, in a short transaction; True if there may be more."""
    async with connection.transaction():
        hidden = await connection.fetchrow(_SQL["next_hidden"], tenant)
        if hidden is None:
            return await has_hidden(connection, tenant)
        fork = await connection.fetchrow(_SQL["next_fork"], tenant, hidden["key"])
        if fork is not None:
            await _copy_to_fork(connection, tenant, hidden, fork)
        elif hidden["version"] > hidden["parent_seq"]:
            low = max(hidden["parent_seq"], hidden["version"] - STEP_EVENTS)
            await connection.execute(_SQL["remove_events"], tenant, hidden["key"], low, hidden["version"])
        elif await connection.execute(_SQL["remove_media"], tenant, hidden["key"], STEP_MEDIA) == "DELETE 0":
            await connection.execute(_SQL["remove_session"], tenant, hidden["key"])
    return True


async def _copy_to_fork(connection: Any, tenant: str, hidden: Any, fork: Any) -> None:
    """Copies media, then events, newest first; the fork gets the grandparent as its parent with the last of them."""
    key, base, shared = hidden["key"], hidden["parent_seq"], fork["parent_seq"]
    digest = await connection.fetchval(_SQL["missing_media"], tenant, key, fork["key"], shared)
    if digest is not None:
        await connection.execute(_SQL["copy_media"], tenant, key, fork["key"], digest)
        return
    low = shared
    if shared > base:
        await connection.execute(_SQL["copy_origins"], tenant, key, fork["key"])
        low = await connection.fetchval(_SQL["batch"], tenant, key, shared, base, STEP_EVENTS, STEP_BYTES)
        await connection.execute(_SQL["copy_events"], tenant, key, fork["key"], low, shared)
    parent = key if low > base else hidden["parent"]
    await connection.execute(_SQL["set_parent"], tenant, fork["key"], parent, low)
