"""One list of stores; every conformance test runs on each of them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.stores import JSONLStore, MemoryStore, SQLiteStore
from stores.logs import begin

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


def allow(place: Path, folders: int, files: int) -> None:
    for path in (place, *place.rglob("*")):
        path.chmod(folders if path.is_dir() else files)


@pytest.fixture
async def locked_away() -> AsyncIterator[Path]:
    """A folder with a session in each format, which this process may read but not write."""
    if sys.platform == "win32":
        pytest.skip("permissions work differently here")
    place = Path(tempfile.mkdtemp())
    for kind in LASTING:
        async with MAKERS[kind](place) as store:
            await begin(store, "e1", "e2")
    allow(place, 0o555, 0o444)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield place
    finally:
        if root:
            os.seteuid(0)
        allow(place, 0o755, 0o644)
        shutil.rmtree(place)
