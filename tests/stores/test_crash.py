"""Processes that are killed while they append: what was acknowledged is there, and nothing is half there (H1).

HOLDFAST_KILL_ROUNDS says how often; the rounds go on in the same log, as an agent that is started again does.
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

from stores.crashing import open_log
from stores.logs import EVERYTHING, begin, message

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(3600)]

ROUNDS = int(os.environ.get("HOLDFAST_KILL_ROUNDS", "5"))
OF_CLIENTS = 2
"""Rounds for each five where only clients die, and the server goes on."""
ROUNDS_EACH = 10
"""Rounds in one log, before the next begins with a new one."""
WORKERS = 2
SCRIPT = Path(__file__).with_name("crashing.py")


def kill_some(kind: str, place: str, prefix: str) -> list[str]:
    """Start writers, kill each at a moment of its own, and return what they had acknowledged."""
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
    """What comes before a folder to make it a place."""
    return f"{request.getfixturevalue('postgres')} " if kind == "postgres" else ""


async def test_killed_while_appending(kind: str, prefix: str, tmp_path: Path) -> None:
    rounds = -(-ROUNDS * OF_CLIENTS // 5) if kind == "postgres" else ROUNDS
    for first in range(0, rounds, ROUNDS_EACH):
        os.mkdir(tmp_path / str(first))
        place = f"{prefix}{tmp_path / str(first)}"
        async with open_log(kind, place) as store:
            await begin(store)
        acknowledged: list[str] = []
        for number in range(first, min(rounds, first + ROUNDS_EACH)):
            acknowledged += kill_some(kind, place, f"round{number}")
            await check(kind, place, acknowledged)


async def check(kind: str, place: str, acknowledged: list[str]) -> None:
    async with open_log(kind, place) as store:
        events = await store.read("s", EVERYTHING)
        problems = await store.problems("s")
        after = await store.append("s", [message(f"check.{len(events)}.0/1")], after=len(events))
    assert [problem for problem in problems if "passed over" not in problem] == []
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert after.version == len(events) + 1
    assert set(acknowledged) <= {event.id for event in events}
    appends = Counter(event.id.rsplit(".", 1)[0] for event in events)
    sizes = {event.id.rsplit(".", 1)[0]: int(event.id.rsplit("/", 1)[1]) for event in events}
    assert appends == sizes, "an append is there in part"
