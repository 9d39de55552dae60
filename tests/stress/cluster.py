"""Application servers and workers on many sessions, while everything is killed (W12, W13, S3, H1).

Usage: python -m tests.stress.cluster [--minutes 6] [--store postgres] [--applications 3] [--workers 2] [--sessions 30]

Real processes: applications that write turns and marks, `holdfast worker`, and for PostgreSQL its server (with fsync)
and Valkey. Meanwhile applications and workers are killed and paused for longer than their lock, connections are
terminated, and servers are stopped or killed and restarted. Each store has its turn, again and again. After a turn
every acknowledged operation must be in its log once, no log may have a mark that was made from an older state, no
batch may be stored in part, no session may be stuck, every context must be valid, and a redacted text must be in no
log, index or file.
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

from holdfast import SessionService, open_store
from holdfast.stores import PostgresStore
from providers import ProviderServer, Say
from servers.fixtures import database
from servers.server import Server
from stress.application import PRESET, session_name, session_secret
from stress.cluster_check import check_cluster
from stress.reports import Counted, Report, read_reports
from stress.two_writers import store_address

APPLICATION = Path(__file__).with_name("application.py")
KINDS = ("sqlite", "jsonl", "postgres")
LOCK = 4.0
READY = "working on"
"""Logged by a worker that listens for signals."""
TERMINATE_CONNECTIONS = """\
SELECT count(pg_terminate_backend(pid)) FROM (
    SELECT pid FROM pg_stat_activity WHERE datname = 'stress' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 5
) AS victims
"""
SUMMARY = "They talked of the harbour, its ships and its tides; nothing is left to do."
FAILURES = {"kill worker": 5, "kill application": 4, "pause": 2}
SERVER_FAILURES = {"cut": 6, "queue": 1, "database": 1}


class Process:
    """A process that is restarted whenever it has ended, with the next of its commands."""

    def __init__(self, place: Path, name: str, command: list[str]) -> None:
        self.place, self.name, self.command = place, name, command
        self.starts = 0
        self.outputs: list[Path] = []
        self.failures: list[str] = []
        self.start()

    def start(self) -> None:
        self.starts += 1
        name = f"{self.name}.{self.starts}"
        self.outputs.append(self.place / f"{name}.txt")
        self.errors = self.place / f"{name}.err"
        with self.outputs[-1].open("wb") as output, self.errors.open("wb") as errors:
            command = [argument.replace("NAME", name) for argument in self.command]
            self.process = subprocess.Popen(command, stdout=output, stderr=errors)

    def ensure_running(self) -> bool:
        """Restarts the process if it has ended; True if so."""
        if self.process.poll() is None:
            return False
        if self.process.returncode not in (0, -signal.SIGKILL):
            self.failures.append(f"{self.name} ended with {self.process.returncode}: {self.errors.read_text()[-500:]}")
        self.start()
        return True

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Stops the process in order; one that has just been started may not listen for the signal yet."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        return code if READY in self.errors.read_text() else 0


class Cluster:
    """One store with its applications, workers and servers."""

    def __init__(self, kind: str, place: Path, stack: ExitStack, workers: int, sessions: int) -> None:
        self.kind, self.place, self.sessions = kind, place, sessions
        self.postgres = self.valkey = None
        self.model = stack.enter_context(ProviderServer(lambda request: Say(SUMMARY, delay=0.05), window=None))
        if kind == "postgres":
            self.postgres = stack.enter_context(Server("postgres", durable=True))
            self.valkey = stack.enter_context(Server("valkey"))
            self.store = database(self.postgres.url, "stress")
        else:
            self.store = store_address(kind, place)
        asyncio.run(self._prepare())
        queue = [] if self.valkey is None else ["--queue", self.valkey.url]
        command = [
            sys.executable, "-m", "holdfast", "worker", "--store", self.store, *queue,
            "--preset", PRESET, "--summarizer", f"{self.model.openai_url}#harbour", "--lock", f"{LOCK:g}",
            "--deadline", "60", "--sweep", "2",
        ]  # fmt: skip
        self.workers = [Process(place, f"worker{number}", command) for number in range(workers)]
        self.applications: list[Process] = []
        self.done: Counter[str] = Counter()
        self._chance = random.Random()

    async def _prepare(self) -> None:
        if self.postgres is not None:
            connection = await asyncpg.connect(self.postgres.url)
            await connection.execute("CREATE DATABASE stress TEMPLATE template0")
            await connection.close()
        store = PostgresStore(self.store, migrate=True) if self.kind == "postgres" else open_store(self.store)
        async with SessionService(store, preset=PRESET) as service:
            for number in range(self.sessions):
                system = f"You work in the harbour; its word is {session_secret(number)}."
                await service.create(id=session_name(number), system=system, format="openai-chat")

    def run(self, applications: int, seconds: float) -> None:
        """Runs the applications for some seconds, once all work, and breaks something about every second."""
        queue = "-" if self.valkey is None else self.valkey.url
        command = [sys.executable, str(APPLICATION), self.store, queue, "NAME", str(self.sessions)]
        self.applications = [Process(self.place, f"app{number}", command) for number in range(applications)]
        while not all(process.outputs[0].stat().st_size or process.process.poll() for process in self.applications):
            time.sleep(0.05)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(self._chance.uniform(0.3, 2.5))
            self._break_something()
            for kind, processes in (("workers", self.workers), ("applications", self.applications)):
                self.done[f"{kind} restarted"] += sum(process.ensure_running() for process in processes)
        for application in self.applications:
            application.kill()

    def _break_something(self) -> None:
        failures = {**FAILURES, **(SERVER_FAILURES if self.postgres is not None else {})}
        worker, application = self._chance.choice(self.workers), self._chance.choice(self.applications)
        match self._chance.choices(list(failures), list(failures.values()))[0]:
            case "kill worker":
                worker.kill()
                self.done["workers killed"] += 1
            case "kill application":
                application.kill()
                self.done["applications killed"] += 1
            case "pause":
                paused = self._chance.choice((worker, application)).process
                paused.send_signal(signal.SIGSTOP)
                time.sleep(LOCK + 2 if paused is worker.process else 0.3)
                paused.send_signal(signal.SIGCONT)
                self.done["processes paused"] += 1
            case "cut":
                with suppress(OSError, asyncpg.PostgresConnectionError, asyncpg.CannotConnectNowError):
                    self.done["connections terminated"] += asyncio.run(self._terminate_connections())
            case "queue":
                self._restart(self.valkey)
                self.done["queue restarted"] += 1
            case "database":
                self._restart(self.postgres)
                self.done["PostgreSQL restarted"] += 1

    def _restart(self, server: Server | None) -> None:
        assert server is not None
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
        """Stops the workers and checks every log, in a process that wrote nothing."""
        codes = [worker.stop() for worker in self.workers]
        problems = [f"a worker ended with {code}" for code in codes if code]
        problems += [failure for process in self.workers + self.applications for failure in process.failures]
        reports: list[Report] = [
            item for process in self.applications for output in process.outputs for item in read_reports(output)
        ]
        for item in reports:
            if isinstance(item, Counted):
                self.done.update(item.counts)
        found, counts = asyncio.run(check_cluster(self.kind, self.store, self.place, reports))
        self.done.update(counts)
        return problems + found


def run_cluster(
    kind: str, seconds: float, applications: int, workers: int, sessions: int
) -> tuple[list[str], Counter[str]]:
    """Runs one store for some seconds; returns the violations, and counts of everything."""
    os.environ.setdefault("OPENAI_API_KEY", "none")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        cluster = Cluster(kind, Path(folder), stack, workers, sessions)
        cluster.run(applications, seconds)
        problems = cluster.finish()
    return problems, cluster.done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--store", choices=KINDS, action="append", help="default: all in turn")
    parser.add_argument("--turn", type=float, default=90, help="seconds on a store before the next has its turn")
    parser.add_argument("--applications", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sessions", type=int, default=30)
    given = parser.parse_args()
    totals: dict[str, Counter[str]] = {}
    violations: list[str] = []
    until = time.monotonic() + 60 * given.minutes
    while time.monotonic() < until:
        for kind in given.store or KINDS:
            seconds = min(given.turn, 60 * given.minutes)
            found, counts = run_cluster(kind, seconds, given.applications, given.workers, given.sessions)
            totals.setdefault(kind, Counter()).update(counts)
            violations += [f"{kind}: {problem}" for problem in found]
            print(f"{kind}: {counts['events in the logs']} events, {len(found)} violations", flush=True)
            print(*found[:20], sep="\n", end="\n" if found else "", flush=True)
    for kind, total in totals.items():
        print(f"{kind}:")
        for name, number in sorted(total.items()):
            print(f"  {name:48}{number:9}")
    print(f"{len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
