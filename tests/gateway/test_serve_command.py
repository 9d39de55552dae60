"""`holdfast serve` as a program: items of one run are valid in the next, with another store."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from providers import ProviderServer

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def served(folder: Path, store: str, *options: str) -> AsyncIterator[AsyncOpenAI]:
    """Starts the program; it ends by a signal, without an error."""
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0", "--store", f"sqlite:///{folder / store}"]
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    environ = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")} | home
    process = await asyncio.create_subprocess_exec(*command, *options, env=environ, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    address = (await process.stdout.readline()).decode().split()[-1]
    async with AsyncOpenAI(base_url=f"{address}/v1", api_key="sk-harbor", max_retries=0) as client:
        yield client
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0


async def test_items_survive_a_restart_with_the_key_file(tmp_path: Path) -> None:
    with ProviderServer("Aye.") as server:
        upstream = ("--upstream", server.anthropic_url)
        given: list[Any] = [{"role": "user", "content": f"Berth {number} is free. " * 200} for number in range(30)]
        async with served(tmp_path, "first.db", *upstream) as client:
            compacted = await client.responses.compact(model="harbor", input=given)
        [key] = (tmp_path / "data").rglob("gateway-items.key")
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        async with served(tmp_path, "second.db", *upstream, "--item-key-file", str(key)) as client:
            item = compacted.output[-1].model_dump(exclude_none=True)
            asked: list[Any] = [item, {"role": "user", "content": "Which berths are free?"}]
            assert (await client.responses.create(model="harbor", input=asked)).output_text == "Aye."
        assert "Berth 29 is free." in json.dumps(server.requests[-1].body["input"])
