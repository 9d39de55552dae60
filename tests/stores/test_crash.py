"""Processes killed while appending: acknowledged events are stored, and no append is stored in part (H1).

HOLDFAST_KILL_ROUNDS is the number of rounds; they continue in the same log, as a restarted agent does.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from holdfast.errors import StaleVersion
from stores.crash_writer import open_log
from stores.logs import EVERYTHING, begin, message

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(3600)]

ROUNDS = int(os.environ.get("HOLDFAST_KILL_ROUNDS", "5"))
CLIENT_ROUNDS = 2
"""Rounds out of five for PostgreSQL, where only clients are killed and the server keeps running."""
ROUNDS_EACH = 10
"""Rounds per log."""
WORKERS = 2
SCRIPT = Path(__file__).with_name("crash_writer.py")


def run_and_kill_writers(kind: str, place: str, prefix: str) -> list[str]:
    """Starts writers, kills each at a random moment, and returns the ids they acknowledged."""
    command = [sys.executable, str(SCRIPT), kind, place]
    workers = [
        subprocess.Popen([*command, f"{prefix}-{number}"], stdout=subprocess.PIPE, text=True)
        for number in range(WORKERS)
    ]
    acknowledged: list[str] = []
    for worker in workers:
        assert worker.stdout is not None
        acknowledged.append(worker.stdout.readline().strip())
    for worker in workers:
        time.sleep(random.uniform(0, 0.15))
        worker.kill()
    for worker in workers:
        assert worker.stdout is not None
        *whole, _ = worker.stdout.read().split("\n")
        acknowledged.extend(whole)
        worker.stdout.close()
        worker.wait()
    return [line for line in acknowledged if line]


@pytest.fixture(params=["jsonl", "sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def prefix(kind: str, request: pytest.FixtureRequest) -> str:
    """Prefix that turns a folder into a place for `open_log`."""
    return f"{request.getfixturevalue('postgres')} " if kind == "postgres" else ""


async def test_append_killed_process_keeps_acknowledged_events(kind: str, prefix: str, tmp_path: Path) -> None:
    rounds = -(-ROUNDS * CLIENT_ROUNDS // 5) if kind == "postgres" else ROUNDS
    for first in range(0, rounds, ROUNDS_EACH):
        os.mkdir(tmp_path / str(first))
        place = f"{prefix}{tmp_path / str(first)}"
        async with open_log(kind, place) as store:
            await begin(store)
        acknowledged: list[str] = []
        for number in range(first, min(rounds, first + ROUNDS_EACH)):
            acknowledged += run_and_kill_writers(kind, place, f"round{number}")
            await check(kind, place, acknowledged)


async def check(kind: str, place: str, acknowledged: list[str]) -> None:
    async with open_log(kind, place) as store:
        while True:
            events = await store.read("s", EVERYTHING)
            try:
                after = await store.append("s", [message(f"check.{len(events)}.0/1")], after=len(events))
            except StaleVersion:
                if kind != "postgres":  # which finishes the last statement of a client that was killed
                    raise
            else:
                break
        problems = await store.problems("s")
    assert [problem for problem in problems if "skipped" not in problem] == []
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert after.version == len(events) + 1
    assert set(acknowledged) <= {event.id for event in events}
    appends = Counter(event.id.rsplit(".", 1)[0] for event in events)
    sizes = {event.id.rsplit(".", 1)[0]: int(event.id.rsplit("/", 1)[1]) for event in events}
    assert appends == sizes, "an append is stored in part"
