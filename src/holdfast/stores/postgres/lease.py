"""Leases as rows, and notifications when one is released."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio

from ...errors import UnknownSession
from ...io.processes import has_ended
from ..base import LeaseName
from .rows import escape_nul, load_statements

_LEASE_SQL = load_statements("leases.sql")


async def take_lease(
    connection: Any, tenant: str, session_id: str, name: LeaseName, owner: str, seconds: float
) -> bool:
    """Takes a lease whose process has ended on this machine at once; on another machine, when it expires."""
    arguments = tenant, escape_nul(session_id), name, escape_nul(owner), seconds
    known, taken, holder = await connection.fetchrow(_LEASE_SQL["take"], *arguments)
    if not known:
        raise UnknownSession(session_id)
    if not taken and holder is not None and has_ended(holder):
        await connection.execute(_LEASE_SQL["release"], *arguments[:3], holder)
        _, taken, _ = await connection.fetchrow(_LEASE_SQL["take"], *arguments)
    return bool(taken)


async def release_lease(connection: Any, tenant: str, session_id: str, name: LeaseName, owner: str) -> None:
    await connection.execute(_LEASE_SQL["release"], tenant, escape_nul(session_id), name, escape_nul(owner))


async def active_lease(connection: Any, tenant: str, session_id: str, name: LeaseName) -> tuple[int, float] | None:
    """Returns the session's key and the seconds until the lease expires; None if nobody holds it."""
    row = await connection.fetchrow(_LEASE_SQL["held"], tenant, escape_nul(session_id), name)
    return None if row is None or has_ended(row["owner"]) else (row["session"], row["seconds"])


log = logging.getLogger("holdfast.stores.postgres")
CHANNEL = "holdfast_lease"
NOTIFICATION_TIMEOUT = 5.0
"""How long to wait for a notification before checking again: a connection can die unnoticed."""
POLL_SECONDS = 0.2
"""Polling interval if notifications are unavailable."""


class LeaseNotifications:
    """Listens on one connection for released leases, for all waiters of an event loop; wakes them if it breaks."""

    def __init__(self, connect: Callable[[], Awaitable[Any]]) -> None:
        self._connect = connect
        self._connection: Any = None
        self._connect_lock = asyncio.Lock()
        self._waiters: dict[str, list[anyio.Event]] = {}

    async def ensure_listening(self) -> float:
        """Opens the connection if needed; returns how long to wait before checking the lease again."""
        async with self._connect_lock:
            if self._connection is not None and not self._connection.is_closed():
                return NOTIFICATION_TIMEOUT
            try:
                connection = await self._connect()
                connection.add_termination_listener(self._on_disconnect)
                await connection.add_listener(CHANNEL, self._on_notification)
            except Exception as error:
                log.warning("Lease notifications are unavailable, polling instead: %s", type(error).__name__)
                return POLL_SECONDS
            self._connection = connection
            return NOTIFICATION_TIMEOUT

    @contextmanager
    def subscribe(self, key: int) -> Iterator[anyio.Event]:
        """Yields an event that is set when a lease of the session is released."""
        released = anyio.Event()
        waiters = self._waiters.setdefault(str(key), [])
        waiters.append(released)
        try:
            yield released
        finally:
            waiters.remove(released)
            if not waiters:
                self._waiters.pop(str(key), None)

    def _on_notification(self, connection: Any, process: int, channel: str, payload: str) -> None:
        for released in self._waiters.get(payload, ()):
            released.set()

    def _on_disconnect(self, connection: Any) -> None:
        for waiters in self._waiters.values():
            for released in waiters:
                released.set()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()
