"""One list of stores; every conformance test runs on each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.stores import JSONLStore, MemoryStore, SQLiteStore

MAKERS: dict[str, Callable[[Path], Any]] = {
    "memory": lambda folder: MemoryStore(),
    "jsonl": lambda folder: JSONLStore(folder / "sessions"),
    "sqlite": lambda folder: SQLiteStore(folder / "sessions.db"),
    "sqlite in memory": lambda folder: SQLiteStore(":memory:"),
}
LASTING = ["jsonl", "sqlite"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=list(MAKERS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def store(kind: str, tmp_path: Path) -> AsyncIterator[Any]:
    opened = MAKERS[kind](tmp_path)
    yield opened
    await opened.close()


@pytest.fixture(params=LASTING)
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """Opens the same place again and again."""
    return lambda: MAKERS[request.param](tmp_path)
