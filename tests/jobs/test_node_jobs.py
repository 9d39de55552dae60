"""Jobs of other producers: written key by key as Node's BullMQ does, and by Node itself (W12)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from job_sessions import rounds, service_with, talk, until

from holdfast.jobs import BullMQQueue, BullMQWorker, Job, JobRunner, QueueSettings

pytest.importorskip("bullmq", reason="BullMQ is not installed: the extra bullmq")
pytestmark = pytest.mark.anyio
HERE = Path(__file__).resolve().parent
PACKAGES = ("bullmq@6.7.0", "ioredis@6.0.0")


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Node's packages: those of HOLDFAST_NODE_MODULES, else newly installed."""
    if given := os.environ.get("HOLDFAST_NODE_MODULES"):
        return Path(given)
    if shutil.which("node") is None or (npm := shutil.which("npm")) is None:
        pytest.skip("there is no Node with npm here")
    folder = tmp_path_factory.mktemp("node")
    quietly = ("--no-audit", "--no-fund", "--no-save", "--ignore-scripts")
    try:
        subprocess.run(
            [npm, "install", *quietly, "--prefix", folder, *PACKAGES], check=True, capture_output=True, timeout=60
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip(f"npm could not install {' and '.join(PACKAGES)}: install them, and set HOLDFAST_NODE_MODULES")
    return folder / "node_modules"


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Any]:
    from redis.asyncio import Redis

    async with Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


async def compacts(url: str, settings: QueueSettings, *names: str) -> None:
    """Runs a worker until these sessions are compacted."""
    service, stop = service_with(), anyio.Event()
    await talk(service, *names)
    async with anyio.create_task_group() as group:
        group.start_soon(BullMQWorker(url, JobRunner(service, settings)).run, stop)
        for name in names:
            await until(lambda name=name: rounds(service, name))
        stop.set()


async def test_worker_runs_job_written_as_node_does(redis: Any, redis_url: str, settings: QueueSettings) -> None:
    """Key by key, as BullMQ's scripts do it: a hash for the job, its id in a list, and a marker that wakes a worker."""
    key = f"bull:{settings.name}"
    options = {
        "attempts": 2,
        "backoff": {"type": "exponential", "delay": 3000},
        "de": {"id": "compact:session:s", "keepLastIfActive": True},
    }
    number = await redis.incr(f"{key}:id")
    fields = {
        "name": "compact",
        "data": json.dumps({"domain": "session", "entityId": "s"}),
        "opts": json.dumps(options),
        "timestamp": int(time.time() * 1000),
        "delay": 0,
        "priority": 0,
        "deid": "compact:session:s",
    }
    await redis.hset(f"{key}:{number}", mapping=fields)
    await redis.set(f"{key}:de:compact:session:s", number)
    await redis.lpush(f"{key}:wait", number)
    await redis.zadd(f"{key}:marker", {"0": 0})
    async with BullMQQueue(redis_url, settings) as queue:
        await queue.enqueue(Job("session", "s"))
    assert await redis.llen(f"{key}:wait") == 1, "it has the same key, so that ours is not added"
    await compacts(redis_url, settings, "s")
    assert await redis.zrange(f"{key}:completed", 0, -1) == [str(number)]
    returned = json.loads(await redis.hget(f"{key}:{number}", "returnvalue"))
    assert returned["outcome"] == "compacted"
    assert await redis.exists(f"{key}:de:compact:session:s") == 0


async def test_enqueued_job_has_the_keys_of_node(redis: Any, redis_url: str, settings: QueueSettings) -> None:
    async with BullMQQueue(redis_url, settings) as queue:
        await queue.enqueue(Job("session", "s"))
    key = f"bull:{settings.name}"
    (number,) = await redis.lrange(f"{key}:wait", 0, -1)
    job = await redis.hgetall(f"{key}:{number}")
    assert job["name"] == "compact" and json.loads(job["data"]) == {"domain": "session", "entityId": "s"}
    assert job["deid"] == "compact:session:s"
    assert await redis.get(f"{key}:de:compact:session:s") == number


async def test_node_sees_jobs_and_adds_its_own(redis_url: str, settings: QueueSettings, modules: Path) -> None:
    async with BullMQQueue(redis_url, settings) as queue:
        await queue.enqueue(Job("session", "ours"))
    seen = await _node(modules, redis_url, settings, "theirs")
    assert seen["counts"]["waiting"] == 2
    assert sorted((job["data"]["entityId"], job["name"], job["attempts"]) for job in seen["jobs"]) == [
        ("ours", "compact", 2),
        ("theirs", "compact", 2),
    ]
    await compacts(redis_url, settings, "ours", "theirs")
    seen = await _node(modules, redis_url, settings, "later")
    assert seen["counts"]["completed"] == 2 and seen["counts"]["waiting"] == 1
    assert [job["returned"]["outcome"] for job in seen["jobs"] if job["returned"]] == ["compacted", "compacted"]


async def _node(modules: Path, url: str, settings: QueueSettings, session: str) -> Any:
    environ = {**os.environ, "NODE_PATH": str(modules)}
    command = ["node", str(HERE / "producer.js"), url, settings.name, session]
    done = await anyio.run_process(command, env=environ)
    return json.loads(done.stdout)
