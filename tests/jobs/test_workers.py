"""Workers as real processes on one SQLite file: stopped in order, killed, and paused for too long (W12, W13, S3)."""

from __future__ import annotations

import json
import signal
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from worker_processes import SUMMARY, Harbour, long_talk, until

from holdfast import SessionService
from holdfast.jobs import BullMQQueue, Job, QueueSettings

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="signals and shells work differently here"),
]


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[Harbour]:
    home = Harbour(tmp_path)
    yield home
    home.close()


async def compactions(service: SessionService, name: str = "s") -> list[Any]:
    return await service.events(name, kind="compaction")


async def once_and_sound(service: SessionService, name: str = "s") -> None:
    """Compacted exactly once, nothing lost, nobody at work any more."""
    (event,) = await compactions(service, name)
    assert event.body["summary"] == SUMMARY
    assert await service.verify(name) == []
    assert len(await service.events(name, kind="message")) == 50
    assert await service.store.held(name) is None  # type: ignore[attr-defined]


async def test_it_finds_what_is_due_tells_its_health_and_stops_in_order(harbour: Harbour, tmp_path: Path) -> None:
    file = tmp_path / "health.json"
    async with harbour.service() as service:
        await long_talk(service, "s", "t")
        await long_talk(service, "short", turns=3)
        worker = harbour.start("worker", "--health", str(file))
        until(lambda: worker.said().count("compacted,") == 2)
        assert json.loads(file.read_text())["status"] == "ok"
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0
        assert not file.exists()
        assert "'outcomes': {'compacted': 2}" in worker.said()
        for name in ("s", "t"):
            await once_and_sound(service, name)
        assert await compactions(service, "short") == []


async def test_told_to_stop_it_ends_what_it_has_begun(harbour: Harbour) -> None:
    async with harbour.service() as service:
        await long_talk(service, "s")
        worker = harbour.start("worker", gated=True)
        until(worker.has_begun)
        worker.signal(signal.SIGTERM)
        worker.open()
        assert worker.ends() == 0
        await once_and_sound(service)


async def test_a_killed_worker_keeps_nobody_waiting_for_ever(harbour: Harbour) -> None:
    """W13: its flag falls when the lease ends, and another does its work."""
    async with harbour.service() as service:
        await long_talk(service, "s")
        dies = harbour.start("dies", "--lock", "1", gated=True)
        until(dies.has_begun)
        assert await service.ready("s", 0.05) is False, "another process sees that it is at work"
        dies.signal(signal.SIGKILL)
        assert dies.ends() == -signal.SIGKILL
        await service.append("s", {"role": "user", "content": "said while nobody was there"}, id="said")
        assert await service.ready("s", 60) is True
        assert await compactions(service) == []
        lives = harbour.start("lives")
        until(lambda: "compacted," in lives.said())
        assert len(await compactions(service)) == 1 and await service.verify("s") == []
        assert (await service.context("s"))[-1]["content"] == "said while nobody was there"


async def test_a_worker_that_was_paused_for_too_long_loses_the_race_and_says_so(harbour: Harbour) -> None:
    """S3: never twice for the same boundary."""
    async with harbour.service() as service:
        await long_talk(service, "s")
        pauses = harbour.start("pauses", "--lock", "0.5", gated=True)
        until(pauses.has_begun)
        pauses.signal(signal.SIGSTOP)
        goes_on = harbour.start("goes-on")
        until(lambda: "compacted," in goes_on.said())
        pauses.open()
        pauses.signal(signal.SIGCONT)
        until(lambda: "conflict," in pauses.said())
        await once_and_sound(service)


async def test_two_workers_on_one_session_pay_for_one_summary(harbour: Harbour) -> None:
    async with harbour.service() as service:
        await long_talk(service, "s")
        first = harbour.start("first", gated=True)
        until(first.has_begun)
        second = harbour.start("second", gated=True)
        until(lambda: "working on" in second.said())
        assert await service.ready("s", 0.5) is False
        first.open()
        until(lambda: "not_needed," in second.said())
        assert not second.has_begun()
        await once_and_sound(service)


# -- on a queue ------------------------------------------------------------------------------------------------------


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def get(port: int, path: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


async def test_a_worker_on_a_queue_is_watched_and_stopped(
    harbour: Harbour, redis_url: str, settings: QueueSettings, port: int
) -> None:
    pytest.importorskip("bullmq")
    on_queue = ("--queue", redis_url, "--name", settings.name)
    async with harbour.service() as service, BullMQQueue(redis_url, settings) as queue:
        await long_talk(service, "s", "t")
        worker = harbour.start("worker", *on_queue, "--health", str(port), "--lock", "1", "--grace", "0.2", gated=True)
        until(lambda: "working on redis://" in worker.said())
        assert get(port, "/healthz") == (200, {"status": "ok"})
        assert get(port, "/else")[0] == 404
        await queue.enqueue(Job("session", "s"))
        until(worker.has_begun)
        assert get(port, "/metrics")[1]["running"] == 1
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0
        assert "was given back" in worker.said() and "'given_back': 1" in worker.said()
        assert await compactions(service) == []
        assert await service.ready("s", 0.5), "its flag is down"
        another = harbour.start("another", *on_queue)
        until(lambda: "compacted," in another.said())
        await once_and_sound(service)
        assert await compactions(service, "t") == [], "what nobody enqueued is nobody's business"


async def test_a_job_of_a_killed_worker_is_run_by_another(
    harbour: Harbour, redis_url: str, settings: QueueSettings
) -> None:
    pytest.importorskip("bullmq")
    on_queue = ("--queue", redis_url, "--name", settings.name, "--lock", "1")
    async with harbour.service() as service, BullMQQueue(redis_url, settings) as queue:
        await long_talk(service, "s")
        await queue.enqueue(Job("session", "s"))
        dies = harbour.start("dies", *on_queue, gated=True)
        until(dies.has_begun)
        dies.signal(signal.SIGKILL)
        lives = harbour.start("lives", *on_queue)
        until(lambda: "compacted," in lives.said())
        assert "was left by a worker that died" in lives.said()
        await once_and_sound(service)


async def test_without_its_queues_server_it_waits_and_gives_no_secret_away(harbour: Harbour, port: int) -> None:
    pytest.importorskip("bullmq")
    worker = harbour.start("worker", "--queue", "redis://ada:0s7erhaven@127.0.0.1:1", "--health", str(port))
    until(lambda: "cannot be used" in worker.said())
    assert get(port, "/healthz") == (503, {"status": "unreachable"})
    why = get(port, "/metrics")[1]["why"]
    assert "The queue at redis://127.0.0.1:1 cannot be reached" in why
    worker.signal(signal.SIGTERM)
    assert worker.ends() == 0
    assert "0s7erhaven" not in worker.said() + why
