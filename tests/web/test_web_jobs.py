"""Background jobs in the inspector: what the store tells about each session, and the queue if one is named."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from test_web_api import HOSTILE
from web_harness import compact, run_inspector, talk

from holdfast import SessionService
from holdfast.context.events import Event, EventKind, new_id, now
from holdfast.jobs import BullMQQueue, BullMQWorker, Job, JobRunner, QueueSettings
from holdfast.jobs.queue_status import QueueReader

pytestmark = pytest.mark.anyio


async def states(running: Any) -> dict[str, dict[str, Any]]:
    return {one["path"]: one for one in (await running.json("/api/jobs"))["sessions"]}


async def test_store_alone_tells_what_is_compacted_due_or_failing() -> None:
    async with run_inspector(preset="holdfast", window=2_000) as running:
        service = running.sessions
        for name, turns in (("idle", 2), ("done", 12), ("due", 90), ("failing", 12), ("leased", 2)):
            await talk(service, name, turns=turns)
        seq = await compact(service, "done")
        body = {"outcome": "summary_failed", "why": "the model is away", "failures": 2, "retry_at": 0, "calls": 1}
        await service.store.append("failing", [Event(new_id(), EventKind.ATTEMPT, now(), body)])
        assert await service.store.take("leased", "compaction", "a worker", 30)
        reply = await running.json("/api/jobs")
        found = [(one["path"], one["state"]) for one in reply["sessions"]]
        assert found == [
            ("/s/leased", "compacting"),
            ("/s/due", "due"),
            ("/s/failing", "failed"),
            ("/s/done", "compacted"),
            ("/s/idle", "never compacted"),
        ]
        assert reply["preset"] == "holdfast" and reply["queue"] is None
        by = await states(running)
        assert by["/s/failing"]["reason"] == "2 in a row: the model is away"
        assert by["/s/done"]["compaction"] == seq and 0 < by["/s/leased"]["lease"] <= 30


async def test_state_follows_the_session() -> None:
    async with run_inspector(preset="holdfast", window=2_000) as running:
        await talk(running.sessions, turns=90)
        assert (await states(running))["/s/s"]["state"] == "due"
        await running.sessions.compact("s")
        assert (await states(running))["/s/s"]["state"] == "compacted"
        await running.sessions.undo("s")
        assert (await states(running))["/s/s"]["compaction"] is None


async def test_session_that_cannot_be_read_is_listed_with_the_reason() -> None:
    async with run_inspector() as running:
        await running.sessions.create(id="broken")
        await running.sessions.store.append("broken", [Event("x", "message", "", {"message": {"role": 7}})])
        (one,) = (await states(running)).values()
        assert one["state"] == "unreadable" and one["reason"]


async def test_login_of_an_owner_sees_own_sessions_and_no_queue(valkey: str) -> None:
    queue = QueueReader(valkey, f"test-{new_id()}")
    async with run_inspector(owner="ann", queue=queue) as running:
        await talk(running.sessions, "ann-s", owner="ann")
        await talk(running.sessions, "ben-s", owner="ben")
        reply = await running.json("/api/jobs")
        assert [one["path"] for one in reply["sessions"]] == ["/s/ann-s"] and "queue" not in reply


async def test_queue_has_counts_workers_and_jobs(valkey: str) -> None:
    settings = QueueSettings(name=f"test-{new_id()}", lock=5.0)
    async with (
        run_inspector(queue=QueueReader(valkey, settings.name)) as running,
        BullMQQueue(valkey, settings) as queue,
    ):
        await talk(running.sessions, turns=90)
        await queue.enqueue(Job("session", "s"))
        await queue.enqueue(Job("session", "gone"))
        waiting = (await running.json("/api/jobs"))["queue"]
        assert waiting["counts"] == {"active": 0, "waiting": 2, "delayed": 0, "failed": 0, "completed": 0}
        assert waiting["workers"] == [] and "@" not in waiting["address"]
        assert [(job["path"], job["state"]) for job in waiting["jobs"]] == [("/s/s", "waiting"), ("/s/gone", "waiting")]
        service = SessionService(running.sessions.store, preset="holdfast", window=2_000)
        stop = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(BullMQWorker(valkey, JobRunner(service, settings)).run, stop)
            with anyio.fail_after(20):
                while True:
                    found = (await running.json("/api/jobs"))["queue"]
                    if found["counts"]["completed"] + found["counts"]["failed"] == 2:
                        break
                    await anyio.sleep(0.05)
            assert found["workers"][0]["address"] and found["workers"][0]["connected"] >= 0
            stop.set()
        done, failed = (
            next(job for job in found["jobs"] if job["state"] == state) for state in ("completed", "failed")
        )
        assert (
            done["path"] == "/s/s" and done["outcome"].startswith("compacted, ") and done["finished"] >= done["started"]
        )
        assert failed["path"] == "/s/gone" and "gone" in failed["outcome"] and failed["attempts"] == 1


async def test_hostile_jobs_stay_text_and_bounded(valkey: str) -> None:
    import bullmq

    name = f"test-{new_id()}"
    queue = bullmq.Queue(name, {"connection": valkey})
    for number in range(60):
        await queue.add(HOSTILE, {"domain": "session", "entityId": f"../{HOSTILE}{number}" + "x" * 5_000}, {})
    await queue.add("other", {"what": HOSTILE}, {"delay": 60_000})
    async with run_inspector(queue=QueueReader(valkey, name)) as running:
        reply = await running.get("/api/jobs")
        found = reply.json()["queue"]
        assert found["counts"]["waiting"] == 60 and len(found["jobs"]) == 21 and len(reply.content) < 400_000
        assert found["jobs"][0]["path"].startswith("/s/~") and len(found["jobs"][0]["session_id"]) == 300
        assert found["jobs"][-1]["path"] is None and found["jobs"][-1]["state"] == "delayed"
        assert reply.headers["content-type"] == "application/json"
    await queue.close()


async def test_queue_that_cannot_be_reached_is_named_without_its_password() -> None:
    async with run_inspector(queue=QueueReader("redis://user:harbour-secret@127.0.0.1:9")) as running:
        reply = await running.get("/api/jobs")
        assert "127.0.0.1:9" in reply.json()["problem"] and "harbour-secret" not in reply.text
