"""W13: whoever waits for a session's flag is told by the server, and looks for himself where it cannot be heard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.stores import PostgresStore
from holdfast.stores.postgres import listening
from stores.databases import by_hand, cut_all
from stores.logs import begin

pytestmark = pytest.mark.anyio
LONG = 60.0


@pytest.fixture
async def pair(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Any, Any]]:
    """Two servers on one database, and a flag that stands; nobody looks again by himself before the test is over."""
    monkeypatch.setattr(listening, "A_WHILE", LONG)
    one, two = (PostgresStore(postgres, tenant=str(tmp_path)) for _ in range(2))
    async with one, two:
        await begin(one, "e1")
        assert await one.take("s", "ann", LONG)
        yield one, two


async def down(store: Any) -> None:
    while (left := await store.held("s")) is not None:
        await store.changed("s", left)


async def test_it_is_heard_at_once(pair: tuple[Any, Any]) -> None:
    one, two = pair
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(down, two)
            await listened(two)
            await one.release("s", "ann")


async def test_so_is_the_end_of_a_session(pair: tuple[Any, Any]) -> None:
    one, two = pair
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(down, two)
            await listened(two)
            await one.delete("s")


async def test_a_connection_that_breaks_is_opened_anew(pair: tuple[Any, Any], postgres: str) -> None:
    one, two = pair
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group, by_hand(postgres) as hand:
            group.start_soon(down, two)
            first = await listened(two)
            await cut_all(hand)
            assert await listened(two, other_than=first) is not first
            await one.release("s", "ann")


async def test_where_nothing_can_be_heard_it_is_looked_at(
    pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    await two.held("s")

    async def refuses() -> Any:
        raise OSError("no more connections")

    monkeypatch.setattr(two._station.listening, "_connect", refuses)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(down, two)
            await anyio.sleep(0.05)
            await one.release("s", "ann")


async def test_the_servers_clock_counts(pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose clock is wrong neither keeps a flag up nor takes one from its owner."""
    import time

    _, two = pair
    monkeypatch.setattr(time, "time", lambda: 4_000_000_000.0)
    left = await two.held("s")
    assert left is not None and 0 < left <= LONG
    assert not await two.take("s", "ben", LONG)


async def listened(store: Any, other_than: Any = None) -> Any:
    """Its connection for listening, once there is one and somebody waits."""
    ear = store._station.listening
    while ear._connection in (None, other_than) or ear._connection.is_closed() or not ear._waiting:  # noqa: ASYNC110
        await anyio.sleep(0.005)
    return ear._connection
