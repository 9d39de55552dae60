"""Fixtures: a compacted session on every store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from recall_story import append_story

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
    """A session with the messages of `recall_story`, the first twelve archived."""
    await append_story(service)
    return Recall(service, "s")
