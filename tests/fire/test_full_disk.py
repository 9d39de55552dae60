"""A full disk: the append fails in clear words, nothing is half written, and with room it goes on (H1)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fire.full_disk import SESSION, fill, stands
from fire.two_writers import place_for
from holdfast import SessionService, SQLiteStore

SCRIPT = Path(__file__).with_name("full_disk.py")


@pytest.mark.parametrize(("kind", "words"), [("sqlite", "check the disk"), ("jsonl", "no room left")])
def test_files_that_may_not_grow(kind: str, words: str, tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, place_for(kind, tmp_path), tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    large, small, refusal = done.stdout.splitlines()
    assert int(large) + int(small) > 0
    assert words in refusal


@pytest.mark.anyio
async def test_a_database_that_may_not_grow(tmp_path: Path) -> None:
    async def allow(pages: int) -> None:
        await store._writer.run(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone())

    store = SQLiteStore(tmp_path / "s.db")
    async with SessionService(store, estimator="chars/4") as service:
        await service.create(id=SESSION, format="openai-chat")
        pages = await store._writer.run(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
        await allow(pages + 8)
        acknowledged, refusal = await fill(service, 5_000)
        assert "no room left" in str(refusal)
        await stands(service, acknowledged)
        await allow(100_000)
        await service.append(SESSION, {"role": "user", "content": "room again"}, id="again")
        await stands(service, [*acknowledged, "again"])
