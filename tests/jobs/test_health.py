"""Health of a worker: in a file that is removed at the end, or on an HTTP port."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import anyio
import pytest
from job_sessions import until

from holdfast import MemoryStore, SessionService
from holdfast.errors import InvalidInput
from holdfast.jobs import JobRunner, JobStats, QueueError
from holdfast.jobs.health import Health, HealthFile, HealthPort, health_reporter

pytestmark = pytest.mark.anyio


class Needs:
    """A dependency of a worker that may be unreachable."""

    away = False

    async def __call__(self) -> None:
        if self.away:
            raise QueueError("The queue at redis://ada:0s7erhaven@host cannot be reached.")


async def test_health_file_is_updated_and_removed_at_the_end(tmp_path: Path) -> None:
    needs, path = Needs(), tmp_path / "health.json"
    place = health_reporter(str(path), Health(JobStats(), needs, every=0.01))
    assert isinstance(place, HealthFile)
    await place.open()
    assert json.loads(path.read_text())["status"] == "ok"
    async with anyio.create_task_group() as group:
        group.start_soon(place.run_forever)
        needs.away = True
        await until(lambda: json.loads(path.read_text())["status"] == "unreachable")
        assert "0s7erhaven" not in path.read_text()
        needs.away = False
        await until(lambda: json.loads(path.read_text())["status"] == "ok")
        group.cancel_scope.cancel()
    await place.close()
    assert not path.exists()


async def test_health_file_unwritable_is_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        await HealthFile(str(tmp_path / "no" / "folder"), Health(JobStats(), Needs())).open()


async def test_health_check_timeout_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.jobs.health.CHECK_TIMEOUT", 0.01)
    health = Health(JobStats(), anyio.sleep_forever)
    await health.refresh()
    assert not health.healthy and health.report()["why"] == "no answer in 0.01 s"


async def test_health_stopping_worker_is_healthy() -> None:
    health = Health(JobStats(), Needs())
    assert not health.healthy
    health.status = "stopping"
    await health.refresh()
    assert health.status == "stopping" and health.healthy


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"200 OK"),
        (b"GET /metrics?now HTTP/1.0\r\n\r\n", b"200 OK"),
        (b"GET /status HTTP/1.1\r\n\r\n", b"200 OK"),
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /healthz HTTP/1.1\r\n\r\n", b"404"),
        (b"\xff\xfe\r\n\r\n", b"404"),
        (b"GET /" + b"x" * 20_000, b"404"),
    ],
)
async def test_health_port_answers_http_requests(request_bytes: bytes, status: bytes) -> None:
    place = await _listening()
    async with anyio.create_task_group() as group:
        group.start_soon(place.run_forever)
        async with await anyio.connect_tcp("127.0.0.1", place._port) as stream:
            await stream.send(request_bytes)
            answer = await stream.receive()
        assert answer.startswith(b"HTTP/1.1 " + status)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"text/plain; version=0.0.4" in head or json.loads(body)
        async with await anyio.connect_tcp("127.0.0.1", place._port):
            pass  # a client that sends nothing and disconnects
        group.cancel_scope.cancel()
    await place.close()


async def test_health_port_in_use_is_refused_at_start() -> None:
    place = await _listening()
    with pytest.raises(InvalidInput, match=r"Cannot listen on port .*name another port"):
        await HealthPort("127.0.0.1", place._port, Health(JobStats(), Needs())).open()
    await place.close()


async def _listening() -> HealthPort:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = health_reporter(str(free.getsockname()[1]), Health(JobStats(), Needs()))
    assert isinstance(place, HealthPort)
    await place.open()
    return place


def test_health_reporter_file_or_port() -> None:
    health = Health(JobStats(), Needs())
    for where, host, port in (("8080", "127.0.0.1", 8080), ("0.0.0.0:80", "0.0.0.0", 80), ("[::1]:80", "::1", 80)):
        place = health_reporter(where, health)
        assert isinstance(place, HealthPort) and (place._host, place._port) == (host, port)
    for where in ("", "0", "host:99999"):
        with pytest.raises(InvalidInput, match="is neither a file nor a port"):
            health_reporter(where, health)


def test_metrics_are_in_the_text_format_of_prometheus() -> None:
    """A help and a type for each family, then samples: names, labels, a number."""
    stats = JobStats()
    stats.count("compacted", 400)
    stats.count("failed")
    health = Health(stats, Needs())
    lines = health.metrics().splitlines()
    assert {'holdfast_jobs_total{outcome="compacted"} 1', "holdfast_tokens_saved_total 400"} <= set(lines)
    assert "holdfast_healthy 0" in lines
    samples = [line for line in lines if not line.startswith("#")]
    for line in samples:
        found = re.fullmatch(r'(holdfast_[a-z_]+)(?:\{[a-z_]+="[^"\\\n]*"\})? ([0-9.]+)', line)
        assert found and f"# TYPE {found[1]} " in health.metrics(), line
    assert health.metrics().endswith("\n")


def test_job_stats_count_outcomes_and_time() -> None:
    stats = JobStats()
    with stats.timed():
        assert stats.report()["running"] == 1
    stats.count("compacted", 400)
    stats.count("failed")
    metrics = stats.report()
    assert (metrics["running"], metrics["jobs"], metrics["tokens_saved"]) == (0, 2, 400)
    assert metrics["outcomes"] == {"compacted": 1, "failed": 1}
    assert 0 <= metrics["seconds_longest"] <= metrics["seconds_total"] <= metrics["up_seconds"]


async def test_views_that_differ_from_the_log_are_counted() -> None:
    """By the next call that looks at the tip, and by `verify`; in `/status` and `/metrics`."""
    service = SessionService(MemoryStore(), preset="holdfast")
    session = await service.create(format="openai-chat")
    for n in range(6):
        await service.append(session.id, {"role": "user", "content": f"question {n} " + "word " * 50})
        await service.append(session.id, {"role": "assistant", "content": f"answer {n} " + "word " * 50})
    await service.compact(session.id, budget=300)
    runner = JobRunner(service)
    live = service._open[session.id]
    (await live.view()).checkpoint_id = "another"
    before = await SessionService(service.store).context(session.id)
    await service.append(session.id, {"role": "user", "content": "next"})
    await live.refresh()
    assert (await service.context(session.id)).messages[: len(before)] == before.messages
    (await live.view()).messages.pop()
    assert [problem for problem in await service.verify(session.id) if "differs" in problem]
    assert await service.verify(session.id) == []
    service.use_preset("claude_code")
    assert service.healed_views == runner.stats.report()["healed_views"] == 2, "a counter never falls"
    assert "holdfast_healed_views_total 2" in Health(runner.stats, Needs()).metrics().splitlines()
    await service.close()
