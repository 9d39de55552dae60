"""Workers as real processes on one SQLite file: stopped, killed, and paused for too long (W12, W13, S3)."""

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
from worker_processes import SUMMARY, WorkerHome, append_turns, until

from holdfast import SessionService
from holdfast.jobs import BullMQQueue, Job, QueueSettings

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="signals and shells work differently here"),
]


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[WorkerHome]:
    home = WorkerHome(tmp_path)
    yield home
    home.close()


async def compactions(service: SessionService, name: str = "s") -> list[Any]:
    return await service.events(name, kind="compaction")


async def compacted_exactly_once(service: SessionService, name: str = "s") -> None:
    """Asserts that the session was compacted exactly once, lost nothing, and is not leased."""
    (event,) = await compactions(service, name)
    assert event.body["summary"] == SUMMARY
    assert await service.verify(name) == []
    assert len(await service.events(name, kind="message")) == 50
    assert await service.store.held(name, "compaction") is None  # type: ignore[attr-defined]


async def test_worker_process_sweeps_reports_health_and_stops(harbour: WorkerHome, tmp_path: Path) -> None:
    file = tmp_path / "health.json"
    async with harbour.service() as service:
        await append_turns(service, "s", "t")
        await append_turns(service, "short", turns=3)
        worker = harbour.start("worker", "--health", str(file))
        until(lambda: worker.log_text().count("compacted,") == 2)
        assert json.loads(file.read_text())["status"] == "ok"
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0
        assert not file.exists()
        assert "'outcomes': {'compacted': 2}" in worker.log_text()
        for name in ("s", "t"):
            await compacted_exactly_once(service, name)
        assert await compactions(service, "short") == []


async def test_worker_process_finishes_running_job_on_stop(harbour: WorkerHome) -> None:
    async with harbour.service() as service:
        await append_turns(service, "s")
        worker = harbour.start("worker", gated=True)
        until(worker.has_begun)
        worker.signal(signal.SIGTERM)
        worker.open()
        assert worker.exit_code() == 0
        await compacted_exactly_once(service)


async def test_worker_process_killed_lease_expires(harbour: WorkerHome) -> None:
    """W13: its lease expires, and another worker takes over."""
    async with harbour.service() as service:
        await append_turns(service, "s")
        dies = harbour.start("dies", "--lock", "1", gated=True)
        until(dies.has_begun)
        assert await service.ready("s", 0.05) is False, "another process sees that it is at work"
        dies.signal(signal.SIGKILL)
        assert dies.exit_code() == -signal.SIGKILL
        await service.append("s", {"role": "user", "content": "sent while no worker was running"}, id="sent")
        assert await service.ready("s", 60) is True
        assert await compactions(service) == []
        lives = harbour.start("lives")
        until(lambda: "compacted," in lives.log_text())
        assert len(await compactions(service)) == 1 and await service.verify("s") == []
        assert (await service.context("s"))[-1]["content"] == "sent while no worker was running"


async def test_worker_process_paused_too_long_returns_conflict(harbour: WorkerHome) -> None:
    """S3: never twice for the same boundary."""
    async with harbour.service() as service:
        await append_turns(service, "s")
        pauses = harbour.start("pauses", "--lock", "0.5", gated=True)
        until(pauses.has_begun)
        pauses.signal(signal.SIGSTOP)
        goes_on = harbour.start("goes-on")
        until(lambda: "compacted," in goes_on.log_text())
        pauses.open()
        pauses.signal(signal.SIGCONT)
        until(lambda: "conflict," in pauses.log_text())
        await compacted_exactly_once(service)


async def test_worker_processes_on_one_session_make_one_summary(harbour: WorkerHome) -> None:
    async with harbour.service() as service:
        await append_turns(service, "s")
        first = harbour.start("first", gated=True)
        until(first.has_begun)
        second = harbour.start("second", gated=True)
        until(lambda: "working on" in second.log_text())
        assert await service.ready("s", 0.5) is False
        first.open()
        until(lambda: "not_needed," in second.log_text())
        assert not second.has_begun()
        await compacted_exactly_once(service)


# -- on a queue ------------------------------------------------------------------------------------------------------


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def get(port: int, path: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


async def test_worker_process_on_queue_serves_health_and_stops(
    harbour: WorkerHome, redis_url: str, settings: QueueSettings, port: int
) -> None:
    pytest.importorskip("bullmq")
    on_queue = ("--queue", redis_url, "--name", settings.name)
    async with harbour.service() as service, BullMQQueue(redis_url, settings) as queue:
        await append_turns(service, "s", "t")
        worker = harbour.start("worker", *on_queue, "--health", str(port), "--lock", "1", "--grace", "0.2", gated=True)
        until(lambda: "working on redis://" in worker.log_text())
        assert get(port, "/healthz") == (200, {"status": "ok"})
        assert get(port, "/else")[0] == 404
        await queue.enqueue(Job("session", "s"))
        until(worker.has_begun)
        assert get(port, "/status")[1]["running"] == 1
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0
        assert "was given back" in worker.log_text() and "'given_back': 1" in worker.log_text()
        assert await compactions(service) == []
        assert await service.ready("s", 0.5), "its flag is down"
        another = harbour.start("another", *on_queue)
        until(lambda: "compacted," in another.log_text())
        await compacted_exactly_once(service)
        assert await compactions(service, "t") == [], "what nobody enqueued is nobody's business"


async def test_worker_process_killed_job_is_run_by_another(
    harbour: WorkerHome, redis_url: str, settings: QueueSettings
) -> None:
    pytest.importorskip("bullmq")
    on_queue = ("--queue", redis_url, "--name", settings.name, "--lock", "1")
    async with harbour.service() as service, BullMQQueue(redis_url, settings) as queue:
        await append_turns(service, "s")
        await queue.enqueue(Job("session", "s"))
        dies = harbour.start("dies", *on_queue, gated=True)
        until(dies.has_begun)
        dies.signal(signal.SIGKILL)
        lives = harbour.start("lives", *on_queue)
        until(lambda: "compacted," in lives.log_text())
        assert "stalled, its worker died" in lives.log_text()
        await compacted_exactly_once(service)


async def test_worker_process_unreachable_queue_waits_and_hides_secrets(harbour: WorkerHome, port: int) -> None:
    pytest.importorskip("bullmq")
    worker = harbour.start("worker", "--queue", "redis://ada:0s7erhaven@127.0.0.1:1", "--health", str(port))
    until(lambda: " failed: " in worker.log_text())
    assert get(port, "/healthz") == (503, {"status": "unreachable"})
    why = get(port, "/status")[1]["why"]
    assert "The queue at redis://127.0.0.1:1 cannot be reached" in why
    worker.signal(signal.SIGTERM)
    assert worker.exit_code() == 0
    assert "0s7erhaven" not in worker.log_text() + why
