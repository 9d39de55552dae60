"""Fixtures: every conformance test runs on each kind of store."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.stores import JSONLStore, MemoryStore, PostgresStore, SQLiteStore
from stores.logs import begin

MAKERS: dict[str, Callable[[Path], Any]] = {
    "memory": lambda folder: MemoryStore(),
    "jsonl": lambda folder: JSONLStore(folder / "sessions"),
    "sqlite": lambda folder: SQLiteStore(folder / "sessions.db"),
    "sqlite in memory": lambda folder: SQLiteStore(":memory:"),
}
IN_FILES = ["jsonl", "sqlite"]
POSTGRES = "postgres"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=[*MAKERS, POSTGRES])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opener(kind: str, request: pytest.FixtureRequest, folder: Path) -> Callable[[], Any]:
    """Returns a function that opens a store isolated from other tests, by its folder or tenant."""
    if kind == POSTGRES:
        url = request.getfixturevalue("postgres")
        return lambda: PostgresStore(url, tenant=str(folder))
    return lambda: MAKERS[kind](folder)


@pytest.fixture
def open_one(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    return opener(kind, request, tmp_path)


@pytest.fixture
async def store(open_one: Callable[[], Any]) -> AsyncIterator[Any]:
    opened = open_one()
    yield opened
    await opened.close()


@pytest.fixture(params=[*IN_FILES, POSTGRES])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """A function that opens the same store each time it is called."""
    return opener(request.param, request, tmp_path)


def set_permissions(place: Path, folders: int, files: int) -> None:
    for path in (place, *place.rglob("*")):
        path.chmod(folders if path.is_dir() else files)


@pytest.fixture
async def read_only_folder() -> AsyncIterator[Path]:
    """A folder with a session in each format that this process can read but not write."""
    if sys.platform == "win32":
        pytest.skip("Windows permissions differ")
    place = Path(tempfile.mkdtemp())
    for kind in IN_FILES:
        async with MAKERS[kind](place) as store:
            await begin(store, "e1", "e2")
    set_permissions(place, 0o555, 0o444)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield place
    finally:
        if root:
            os.seteuid(0)
        set_permissions(place, 0o755, 0o644)
        shutil.rmtree(place)
