"""Application servers and workers on many sessions, while servers and workers are killed (W12, W13, S3, H1).

Usage: python tests/stress/cluster.py [--seconds 120] [--applications 4] [--workers 3] [--sessions 200]

Real processes: PostgreSQL, Valkey, `holdfast worker`, and applications. Meanwhile workers are killed and paused for
longer than their lock, connections are terminated, and both servers are stopped or killed and restarted. Afterwards
every acknowledged event must be stored once, no session may be stuck or have been compacted twice for the same
boundary, every context must be valid, and every request must have been answered or have raised an error.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import asyncpg

from holdfast import Outcome, SessionService, open_store
from holdfast.jobs import BackgroundCompactor, BullMQQueue
from holdfast.stores import PostgresStore
from judge import judge
from providers import ProviderServer, Say
from servers.fixtures import database
from servers.server import Server
from stress.application import PRESET, session_name
from stress.reports import Appended, Complaint, Counted, read_reports

APPLICATION = Path(__file__).with_name("application.py")
LOCK = 4.0
TERMINATE_CONNECTIONS = """\
SELECT count(pg_terminate_backend(pid)) FROM (
    SELECT pid FROM pg_stat_activity WHERE datname = 'stress' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 5
) AS victims
"""
SUMMARY = "They talked of the harbour, its ships and its tides; nothing is left to do."


class Worker:
    """One `holdfast worker`, restarted whenever it has ended."""

    def __init__(self, place: Path, number: int, command: list[str]) -> None:
        self._log = place / f"worker-{number}.log"
        self._command = command
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(self._command, stderr=log, stdout=log)

    def ensure_running(self) -> bool:
        """Restarts the worker if it has ended; True if so."""
        if self.process.poll() is None:
            return False
        self.process = self._start()
        return True

    def stop(self) -> int:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


class Cluster:
    def __init__(self, place: Path, stack: ExitStack, applications: int, workers: int, sessions: int) -> None:
        self.place, self.sessions = place, sessions
        self.postgres = stack.enter_context(Server("postgres"))
        self.valkey = stack.enter_context(Server("valkey"))
        self.model = stack.enter_context(ProviderServer(lambda request: Say(SUMMARY, delay=0.05), window=None))
        self.store = database(self.postgres.url, "stress")
        asyncio.run(self._prepare())
        self.command = [
            sys.executable, "-m", "holdfast", "worker", "--store", self.store, "--queue", self.valkey.url,
            "--preset", PRESET, "--summarizer", f"{self.model.openai_url}#harbour", "--lock", f"{LOCK:g}",
            "--deadline", "60", "--sweep", "5",
        ]  # fmt: skip
        self.workers = [Worker(place, number, self.command) for number in range(workers)]
        self.applications = applications
        self.done: Counter[str] = Counter()
        self._chance = random.Random()

    async def _prepare(self) -> None:
        connection = await asyncpg.connect(self.postgres.url)
        await connection.execute("CREATE DATABASE stress TEMPLATE template0")
        await connection.close()
        async with SessionService(PostgresStore(self.store, migrate=True), preset=PRESET) as service:
            for number in range(self.sessions):
                await service.create(id=session_name(number))

    def run(self, seconds: float) -> None:
        """Runs the applications for some seconds and breaks something about every second."""
        outputs = [self.place / f"application-{number}.txt" for number in range(self.applications)]
        running = []
        for number, output in enumerate(outputs):
            command = [sys.executable, str(APPLICATION), self.store, self.valkey.url, f"app{number}"]
            with output.open("wb") as out, (self.place / f"application-{number}.err").open("wb") as err:
                running.append(subprocess.Popen([*command, str(self.sessions), str(seconds)], stdout=out, stderr=err))
        until = time.monotonic() + seconds
        while time.monotonic() < until - 10:
            time.sleep(self._chance.uniform(0.3, 1.5))
            self._break_something()
            self.done["workers restarted"] += sum(worker.ensure_running() for worker in self.workers)
        for process in running:
            process.wait(seconds + 120)
        self.ended = [process.returncode for process in running]

    def _break_something(self) -> None:
        worker = self._chance.choice(self.workers)
        match self._chance.choices(("kill", "pause", "cut", "queue", "database"), (6, 2, 6, 1, 1))[0]:
            case "kill":
                worker.process.kill()
                worker.process.wait()
                self.done["workers killed"] += 1
            case "pause":
                worker.process.send_signal(signal.SIGSTOP)
                time.sleep(LOCK + 2)
                worker.process.send_signal(signal.SIGCONT)
                self.done["workers paused for longer than their lock"] += 1
            case "cut":
                with suppress(OSError, asyncpg.PostgresConnectionError, asyncpg.CannotConnectNowError):
                    self.done["connections terminated"] += asyncio.run(self._terminate_connections())
            case "queue":
                self._restart(self.valkey)
                self.done["queue restarted"] += 1
            case "database":
                self._restart(self.postgres)
                self.done["PostgreSQL restarted"] += 1

    def _restart(self, server: Server) -> None:
        (server.kill if self._chance.random() < 0.5 else server.stop)()
        time.sleep(self._chance.uniform(0.1, 1.0))
        server.start()

    async def _terminate_connections(self) -> int:
        connection = await asyncpg.connect(self.store)
        try:
            return int(await connection.fetchval(TERMINATE_CONNECTIONS))
        finally:
            await connection.close()

    def finish(self) -> list[str]:
        """Waits until the workers have compacted all due sessions, then stops them."""
        for worker in self.workers:
            worker.ensure_running()
        problems = asyncio.run(self._all_compacted(90))
        codes = [worker.stop() for worker in self.workers]
        return problems + [f"a worker ended with {code}" for code in codes if code]

    async def _all_compacted(self, seconds: float) -> list[str]:
        """Enqueues every session again, since a killed queue may have lost jobs, and waits until none is due.

        A session may stay over its threshold if the messages that the preset keeps are long: compacting it must then
        report nothing to compact. Any other session that is left was missed.
        """
        until = time.monotonic() + seconds
        store = open_store(self.store)
        async with SessionService(store, preset=PRESET) as service, BullMQQueue(self.valkey.url) as queue:
            names = [session_name(number) for number in range(self.sessions)]
            for name in names:
                await BackgroundCompactor(service, queue).on_turn_end(name)
            while names and time.monotonic() < until:
                names = [name for name in names if await service.due(name)]
                await asyncio.sleep(0.5 if names else 0)
            left = {name: await service.compact(name) for name in names}
        self.done["still over their threshold, nothing to compact"] = len(left)
        return [
            f"{name} was still over its threshold, and then {result.outcome}: {result.why}"
            for name, result in left.items()
            if result.outcome is not Outcome.NOTHING_TO_COMPACT
        ]

    async def check(self) -> tuple[list[str], Counter[str]]:
        """Checks all sessions, in a process that wrote nothing."""
        reports = [
            item
            for number in range(self.applications)
            for item in read_reports(self.place / f"application-{number}.txt")
        ]
        problems = [item.text for item in reports if isinstance(item, Complaint)]
        counts: Counter[str] = Counter()
        for item in reports:
            if isinstance(item, Counted):
                counts.update(item.counts)
        problems += [f"an application ended with {code}" for code in self.ended if code]
        if sum(isinstance(item, Counted) for item in reports) != self.applications:
            problems.append("an application did not report its counts")
        acknowledged: dict[str, list[str]] = {}
        for item in reports:
            if isinstance(item, Appended):
                acknowledged.setdefault(item.session, []).extend(item.ids)
        async with SessionService(open_store(self.store), preset=PRESET) as service:
            for number in range(self.sessions):
                name = session_name(number)
                problems += await self._session(service, name, acknowledged.get(name, []), counts)
        return problems, counts

    async def _session(
        self, service: SessionService, name: str, acknowledged: list[str], counts: Counter[str]
    ) -> list[str]:
        events = await service.events(name)
        ids = Counter(event.id for event in events)
        problems = [
            f"{name}: {id} was acknowledged and is stored {ids[id]} times" for id in acknowledged if ids[id] != 1
        ]
        if [event.seq for event in events] != list(range(1, len(events) + 1)):
            problems.append(f"{name}: the versions do not increase by one")
        compactions = [event for event in events if event.kind == "compaction"]
        boundaries = Counter(event.body.get("boundary") for event in compactions)
        problems += [
            f"{name}: {times} compactions to {boundary}" for boundary, times in boundaries.items() if times > 1
        ]
        if await service.store.held(name) is not None:  # type: ignore[attr-defined]
            problems.append(f"{name}: its lease is still held")
        problems += [f"{name}: {problem}" for problem in await service.verify(name)]
        context = await service.context(name)
        problems += [
            f"{name}: {complaint}"
            for complaint in judge(context.messages, "openai-chat", pending_ok=True, extras_ok=True)
        ]
        counts["events acknowledged"] += len(acknowledged)
        counts["events in the logs"] += len(events)
        counts["compactions"] += len(compactions)
        counts["compactions without a model's summary"] += sum(
            bool(event.body.get("fallback")) for event in compactions
        )
        counts["failed attempts, recorded"] += sum(event.kind == "attempt" for event in events)
        return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--applications", type=int, default=4)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=200)
    given = parser.parse_args()
    os.environ.setdefault("OPENAI_API_KEY", "none")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        cluster = Cluster(Path(folder), stack, given.applications, given.workers, given.sessions)
        cluster.run(given.seconds)
        problems = cluster.finish()
        found, counts = asyncio.run(cluster.check())
        problems += found
        if problems:
            for file in sorted(Path(folder).glob("*.[el]*")):
                print(file.name, file.read_text()[-1000:])
    print(f"{given.applications} applications, {given.workers} workers, {given.sessions} sessions, {given.seconds:g} s")
    for name, number in sorted((cluster.done + counts).items()):
        print(f"  {name:48}{number:8}")
    print(f"  {'problems':48}{len(problems):8}")
    print(*problems[:20], sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
