"""W13: lease waiters are notified by the PostgreSQL server, and poll if notifications are unavailable."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.stores import PostgresStore
from holdfast.stores.postgres import lease
from stores.databases import raw_connection, terminate_connections
from stores.logs import begin

pytestmark = pytest.mark.anyio
LONG = 60.0


@pytest.fixture
async def pair(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Any, Any]]:
    """Two stores on one database with a held lease; the time-out is too long for polling to help."""
    monkeypatch.setattr(lease, "NOTIFICATION_TIMEOUT", LONG)
    one, two = (PostgresStore(postgres, tenant=str(tmp_path)) for _ in range(2))
    async with one, two:
        await begin(one, "e1")
        assert await one.take("s", "compaction", "ann", LONG)
        yield one, two


async def wait_until_released(store: Any) -> None:
    while (left := await store.held("s", "compaction")) is not None:
        await store.changed("s", "compaction", left)


async def test_lease_release_notifies_waiters(pair: tuple[Any, Any]) -> None:
    one, two = pair
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(wait_until_released, two)
            await listening_connection(two)
            await one.release("s", "compaction", "ann")


async def test_lease_session_deleted_notifies_waiters(pair: tuple[Any, Any]) -> None:
    one, two = pair
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(wait_until_released, two)
            await listening_connection(two)
            await one.delete("s")


async def test_lease_listening_connection_broken_is_reopened(pair: tuple[Any, Any], postgres: str) -> None:
    one, two = pair
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group, raw_connection(postgres) as hand:
            group.start_soon(wait_until_released, two)
            first = await listening_connection(two)
            await terminate_connections(hand)
            assert await listening_connection(two, other_than=first) is not first
            await one.release("s", "compaction", "ann")


async def test_lease_without_notifications_is_polled(pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = pair
    await two.held("s", "compaction")

    async def refuse() -> Any:
        raise OSError("no more connections")

    monkeypatch.setattr(two._loop_resources.notifications, "_connect", refuse)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(wait_until_released, two)
            await anyio.sleep(0.05)
            await one.release("s", "compaction", "ann")


async def test_lease_expiry_uses_server_clock(pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A client with a wrong clock neither extends a lease nor takes it from its owner."""
    import time

    _, two = pair
    monkeypatch.setattr(time, "time", lambda: 4_000_000_000.0)
    left = await two.held("s", "compaction")
    assert left is not None and 0 < left <= LONG
    assert not await two.take("s", "compaction", "ben", LONG)


async def listening_connection(store: Any, other_than: Any = None) -> Any:
    """Returns the listening connection, once it is open and has waiters."""
    listener = store._loop_resources.notifications
    while listener._connection in (None, other_than) or listener._connection.is_closed() or not listener._waiters:  # noqa: ASYNC110
        await anyio.sleep(0.005)
    return listener._connection
