"""`PostgresStore.expire`: deletion of old sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from holdfast.errors import InvalidInput
from holdfast.stores import PostgresStore
from holdfast.stores.postgres import writes
from stores.databases import raw_connection
from stores.logs import fork, ids, message, record

pytestmark = pytest.mark.anyio
TABLES = ("records", "lanes", "events", "media", "leases", "unindexed", "search")


@pytest.fixture
async def store(postgres: str, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    """Sessions whose last events are of the 1st, 3rd and 5th, and an empty one created on the 2nd."""
    async with PostgresStore(postgres, tenant=str(tmp_path)) as opened:
        for day in (1, 3, 5):
            await opened.create(record(f"s{day}", created="2026-01-01T00:00:00.000Z"))
            for until in range(1, day + 1):
                event = message(f"e{until}", lane="sub" if until == 2 else None)
                time = f"2026-01-0{until}T12:00:00.000Z"
                await opened.append(f"s{day}", [msgspec.structs.replace(event, time=time)], media={"d": "data"})
        await opened.create(record("empty", created="2026-01-02T00:00:00.000Z"))
        yield opened


async def test_expire_deletes_older_sessions(store: PostgresStore) -> None:
    assert await store.expire(datetime(2026, 1, 2, tzinfo=UTC)) == ["s1"]
    assert await store.expire("2026-01-04T00:00:00.000Z") == ["empty", "s3"]
    assert await store.expire("2026-01-04T00:00:00.000Z") == []
    assert [each.id for each in await store.sessions()] == ["s5"]


async def test_expire_deletes_all_rows(store: PostgresStore, postgres: str) -> None:
    await store.take("s3", "compaction", "ann", 60)
    keys = "SELECT key FROM holdfast.sessions WHERE tenant = $1"
    gone = await store._run(lambda c, _: c.fetch(keys, store._tenant))
    assert len(await store.expire(datetime(2100, 1, 1).astimezone())) == 4
    async with raw_connection(postgres) as connection:
        for table in TABLES:
            left = f"SELECT count(*) FROM holdfast.{table} WHERE session = ANY ($1)"
            assert await connection.fetchval(left, [row["key"] for row in gone]) == 0, table


async def test_expire_forks_keep_shared_events(store: PostgresStore) -> None:
    await fork(store, "s3", 2, "f")
    await store.append("f", [msgspec.structs.replace(message("new"), time="2026-01-09T00:00:00.000Z")])
    assert "s3" in await store.expire("2026-01-05T00:00:00.000Z")
    assert await ids(store, "f") == ["e1", "e2", "new"]
    assert await store.problems("f") == []
    assert len(await store.search("says", session_id="f")) == 3


async def test_expire_keeps_session_appended_meanwhile(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real = writes.list_expired

    async def list_then_append(connection: object, tenant: str, before: str) -> list[str]:
        listed = await real(connection, tenant, before)
        await store.append("s1", [msgspec.structs.replace(message("late"), time="2026-01-09T00:00:00.000Z")])
        return listed

    monkeypatch.setattr(writes, "list_expired", list_then_append)
    assert await store.expire("2026-01-02T00:00:00.000Z") == []
    assert await ids(store, "s1") == ["e1", "late"]


async def test_expire_invalid_time_raises(store: PostgresStore) -> None:
    with pytest.raises(InvalidInput):
        await store.expire("\ud800")
