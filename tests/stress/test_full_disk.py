"""A full disk: the append raises, nothing is written in part, and appends work once there is room (H1)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import SessionService, SQLiteStore
from stress.full_disk import SESSION, check_session, fill
from stress.two_writers import store_address

SCRIPT = Path(__file__).with_name("full_disk.py")


@pytest.mark.parametrize(("kind", "expected"), [("sqlite", "check the disk"), ("jsonl", "no room left")])
def test_append_file_size_limit_raises_and_keeps_log(kind: str, expected: str, tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, store_address(kind, tmp_path), tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    large, small, error = done.stdout.splitlines()
    assert int(large) + int(small) > 0
    assert expected in error


@pytest.mark.anyio
async def test_append_database_page_limit_raises_and_keeps_log(tmp_path: Path) -> None:
    async def allow(pages: int) -> None:
        await store._writer.run(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone())

    store = SQLiteStore(tmp_path / "s.db")
    async with SessionService(store, estimator="chars/4") as service:
        await service.create(id=SESSION, format="openai-chat")
        pages = await store._writer.run(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
        await allow(pages + 8)
        acknowledged, error = await fill(service, 5_000)
        assert "no room left" in str(error)
        await check_session(service, acknowledged)
        await allow(100_000)
        await service.append(SESSION, {"role": "user", "content": "room again"}, id="again")
        await check_session(service, [*acknowledged, "again"])
