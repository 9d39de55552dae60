"""A session that was compacted, on every store: what recall is for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from recall_story import tell

from holdfast import JSONLStore, MemoryStore, Recall, SessionService, SQLiteStore
from holdfast.stores import Log


@pytest.fixture(params=["memory", "sqlite", "jsonl"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    if request.param == "sqlite":
        return SQLiteStore(tmp_path / "sessions.db")
    return MemoryStore() if request.param == "memory" else JSONLStore(tmp_path / "sessions")


@pytest.fixture
async def service(store: Log) -> AsyncIterator[SessionService]:
    async with SessionService(store) as service:
        yield service


@pytest.fixture
async def recall(service: SessionService) -> Recall:
    """The story of `recall_story`, of which the first twelve events are archived."""
    await tell(service)
    return Recall(service, "s")
