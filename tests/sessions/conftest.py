"""Fixtures with every kind of store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import JSONLStore, MemoryStore, SQLiteStore
from holdfast.stores import Log, PostgresStore


@pytest.fixture(params=["memory", "sqlite", "jsonl"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    if request.param == "sqlite":
        return SQLiteStore(tmp_path / "sessions.db")
    return MemoryStore() if request.param == "memory" else JSONLStore(tmp_path / "sessions")


class KeptMemoryStore(MemoryStore):
    """Outlives the services that close it."""

    async def close(self) -> None:
        pass


@pytest.fixture(params=["memory", "sqlite", "jsonl", "postgres"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """A function that opens the same store each time; the one in memory is always the same object."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres")
        return lambda: PostgresStore(url, tenant=str(tmp_path))
    if request.param == "memory":
        store = KeptMemoryStore()
        return lambda: store
    kind = SQLiteStore if request.param == "sqlite" else JSONLStore
    return lambda: kind(tmp_path / "sessions.db")
