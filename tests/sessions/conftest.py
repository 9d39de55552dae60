"""Fixture with every kind of store."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import JSONLStore, MemoryStore, SQLiteStore
from holdfast.stores import Log


@pytest.fixture(params=["memory", "sqlite", "jsonl"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    if request.param == "sqlite":
        return SQLiteStore(tmp_path / "sessions.db")
    return MemoryStore() if request.param == "memory" else JSONLStore(tmp_path / "sessions")
