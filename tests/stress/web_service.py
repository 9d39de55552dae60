"""Conversations with a web service while its replicas and workers are killed (H9).

Usage: python -m tests.stress.web_service [--conversations 200] [--turns 10] [--store postgres|sqlite] [--no-kills]

Real processes: two replicas of `examples/web_service.py`, two `holdfast worker`, PostgreSQL and Valkey, and a scripted
provider that judges every request. Clients send each turn again until it is answered. Without kills and then with them:
counts events that were lost or doubled, invalid requests, wrong replies, and the longest turn. With kills no turn may
take longer than the longest without by more than a lease; a replica that was killed is started again.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import asyncpg

from examples_programs.web_replicas import Replica, answer, create, multiplier, question
from holdfast import SessionService, check, open_store
from holdfast.sessions.lease import LEASE_SECONDS
from holdfast.stores import PostgresStore
from providers import Answer, ProviderServer, Request
from servers.fixtures import database
from servers.server import Server

WINDOW = 4_000
STEPS = ("say", "1", "1/0", "2", "2/0", "3")
"""Events of every turn, besides prompts to continue after a compaction."""


class Run:
    """One run of the service: all its conversations, with or without kills."""

    def __init__(self, conversations: int, turns: int, clients: int, kills: bool) -> None:
        self.conversations, self.turns, self.clients, self.kills = conversations, turns, clients, kills
        self.counts: Counter[str] = Counter()
        self.longest = 0.0
        self.problems: list[str] = []
        self._lock = threading.Lock()
        self._chance = random.Random(7)

    def model(self, request: Request) -> Answer:
        """Judges a request as the provider does, then answers it."""
        found = check(request.body["messages"], "openai-chat")
        if found:
            with self._lock:
                self.problems.append(f"invalid request: {found[0]}")
        return multiplier(request)

    def converse(self, ports: list[int], session: str) -> None:
        """Has one conversation; its padding makes every second turn or so exceed the window."""
        chance = random.Random(session)
        for number in range(self.turns):
            a, b, c = (chance.randrange(2, 99) for _ in range(3))
            started = time.monotonic()
            reply, attempts = answer(ports, session, f"t{number}", question(a, b, c, chance.randrange(200)))
            seconds = time.monotonic() - started
            with self._lock:
                self.counts["turns"] += 1
                self.counts["requests sent again"] += attempts - 1
                self.longest = max(self.longest, seconds)
                if not reply.startswith(f"It is {a * b * c}."):
                    self.problems.append(f"wrong reply in {session}: {reply}")

    def break_processes(self, replicas: list[Replica], workers: list[Worker], over: threading.Event) -> None:
        while not over.wait(self._chance.uniform(0.5, 3.0)):
            if self._chance.random() < 0.6:
                victim = self._chance.choice(replicas)
                victim.kill()
                self.counts["replicas killed"] += 1
                victim.start()
                victim.wait_until_ready()
            else:
                self._chance.choice(workers).restart()
                self.counts["workers killed"] += 1

    async def check(self, store: str, sessions: list[str]) -> None:
        """Compares every log with what its conversation must have written."""
        async with SessionService(open_store(store)) as service:
            for session in sessions:
                events = await service.events(session)
                names = Counter(e.id for e in events if e.kind == "message" and "~" not in e.id)
                wanted = Counter(f"t{number}/{step}" for number in range(self.turns) for step in STEPS)
                self.counts["events lost"] += (wanted - names).total()
                self.counts["events doubled"] += (names - wanted).total()
                self.problems += [f"{session}: {name} is one too many" for name in (names - wanted).elements()]
                self.counts["compactions"] += sum(event.kind == "compaction" for event in events)
                self.problems += [f"{session}: {problem}" for problem in await service.verify(session)]


class Worker:
    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._start()

    def _start(self) -> None:
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def restart(self) -> None:
        self.process.kill()
        self.process.wait()
        self._start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


@contextmanager
def servers(kind: str, folder: Path) -> Iterator[tuple[str, str | None]]:
    """Yields the addresses of a store and a queue; with SQLite, workers scan the store instead."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'sessions.db'}", None
        return
    with Server("postgres") as postgres, Server("valkey") as valkey:
        store = database(postgres.url, "stress")
        asyncio.run(_migrate(postgres.url, store))
        yield store, valkey.url


async def _migrate(server: str, store: str) -> None:
    connection = await asyncpg.connect(server)
    await connection.execute("CREATE DATABASE stress TEMPLATE template0")
    await connection.close()
    async with PostgresStore(store, migrate=True) as opened:
        await opened.sessions(limit=1)


def run_service(kind: str, conversations: int, turns: int, *, kills: bool, clients: int = 8) -> Run:
    """Runs all conversations with the service, and checks their logs."""
    os.environ.setdefault("OPENAI_API_KEY", "none")
    run = Run(conversations, turns, clients, kills)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        store, queue = stack.enter_context(servers(kind, Path(folder)))
        server = stack.enter_context(ProviderServer(run.model, window=WINDOW))
        more = {} if queue is None else {"QUEUE": queue}
        replicas = [Replica(server, STORE=store, WINDOW=str(WINDOW), **more) for _ in range(2)]
        command = [
            sys.executable, "-m", "holdfast", "worker", "--store", store, *(["--queue", queue] if queue else []),
            "--preset", "holdfast", "--summarizer", f"{server.openai_url}#first", "--sweep", "2",
        ]  # fmt: skip
        workers = [Worker(command) for _ in range(2)]
        for part in (*replicas, *workers):
            stack.callback(part.stop)
        for replica in replicas:
            replica.wait_until_ready()
        ports = [replica.port for replica in replicas]
        sessions = [create(ports[0]) for _ in range(conversations)]
        over = threading.Event()
        breaker = threading.Thread(target=run.break_processes, args=(replicas, workers, over))
        if kills:
            breaker.start()
        with ThreadPoolExecutor(clients) as pool:
            for done in [pool.submit(run.converse, ports, session) for session in sessions]:
                done.result()
        over.set()
        if kills:
            breaker.join()
        asyncio.run(run.check(store, sessions))
        run.counts["model requests"] = len(server.requests)
        run.problems += [f"refused: {refusal}" for refusal in server.refused]
        run.counts["overflows"] = server.overflowed
    for name in ("events lost", "events doubled"):
        if run.counts[name]:
            run.problems.append(f"{run.counts[name]} {name}")
    return run


def report(run: Run) -> None:
    print(f"{'with' if run.kills else 'without'} kills: longest turn {run.longest:.1f} s")
    for name, number in sorted(run.counts.items()):
        print(f"  {name:24}{number:8}")
    print(*run.problems[:20], sep="\n", end="\n" if run.problems else "", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--store", choices=("postgres", "sqlite"), default="postgres")
    parser.add_argument("--no-kills", action="store_true", help="only the run without kills")
    given = parser.parse_args()
    runs = []
    for kills in (False,) if given.no_kills else (False, True):
        runs.append(run_service(given.store, given.conversations, given.turns, kills=kills, clients=given.clients))
        report(runs[-1])
    problems = sum(len(run.problems) for run in runs)
    late = runs[-1].longest - runs[0].longest
    print(f"{problems} problems; the longest turn took {late:.1f} s longer with kills, of {LEASE_SECONDS:g} s allowed")
    return 1 if problems or late > LEASE_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
