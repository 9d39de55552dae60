"""Processes carry out random operations on the same sessions and are killed at random (S3, H1).

Usage: python -m tests.stress.session_processes [--minutes 30] [--store sqlite|jsonl|postgres|all] [--seed S]

Between the kills a process that wrote nothing checks the logs against a model: what was acknowledged is there once,
what was not is there as a whole or not at all, every context is valid and follows from its log, and what was redacted
is in no event, index, context, file or table.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from holdfast import SessionService, open_store
from holdfast.stores import PostgresStore
from servers.fixtures import database
from servers.server import Server
from stores.databases import raw_connection, tenant_rows
from stress.log_model import COMPACTION, MESSAGE, PIN, UNDO, Plain, lanes_of, mark_problems, shown_words, words_in
from stress.operations import (
    APPENDS,
    COMPACTIONS,
    DONE,
    ESTIMATOR,
    FORMAT,
    METADATA,
    PROMPT,
    UNCHANGED,
    Call,
    Done,
    perform,
)
from stress.session_worker import Begun, Ended, Violation, problems_of, read_entries

WORKER = Path(__file__).with_name("session_worker.py")
KINDS = ("sqlite", "jsonl", "postgres")
ROOT, WORKERS = "s", 3
EARLY = 0.1
"""Share of workers killed while they start."""
CHECKS = 4
"""Checks of one store before a new one is begun."""


class Findings(msgspec.Struct):
    problems: list[str] = []
    counts: dict[str, int] = {}


class Checker:
    """Compares the logs of a store with what the workers reported."""

    def __init__(self, service: SessionService, reports: Sequence[Path]) -> None:
        self.service = service
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self.calls: dict[str, Call] = {}
        self.answers: dict[str, list[Done]] = {}
        self.logs: dict[str, list[Plain]] = {}
        self.gone: set[str] = set()
        self.fork_points: set[str] = set()
        """Last events that forks took over."""
        for entry in (entry for report in reports for entry in read_entries(report)):
            if isinstance(entry, Begun):
                self.calls[entry.call.id] = entry.call
                if entry.call.kind == "fork" and entry.call.event:
                    self.fork_points.add(entry.call.event)
            elif isinstance(entry, Ended):
                self.answers.setdefault(entry.id, []).append(entry.done)
            elif isinstance(entry, Violation):
                self.problems.append(entry.text)
        for id, call in self.calls.items():
            outcomes = [done.outcome for done in self.answers.get(id, ())] or ["killed"]
            self.counts.update(f"{call.kind}: {outcome}" for outcome in outcomes)

    async def check(self) -> None:
        for call in self.calls.values():
            if call.kind.startswith("redact") and not self.acknowledged(call):
                await perform(self.service, call)  # as its killed caller would
        await self.service.store.rewrite(())
        self.gone = self.redacted_words()
        self.logs = {record.id: await self.log(record.id) for record in await self.service.list()}
        for session, log in self.logs.items():
            self.check_log(session, log)
            self.problems += await self.service.verify(session)
            await self.check_contexts(session, log)
        self.check_counts()
        for left in sorted(self.gone):
            self.problems += [f"a search finds {left} in {hit.event}" for hit in await self.service.store.search(left)]  # type: ignore[attr-defined]

    async def log(self, session: str) -> list[Plain]:
        header, *log = await self.service.export(session)
        self.problems += [f"{session}: {left} in its record" for left in self.gone & set(words_in(header))]
        return log

    def acknowledged(self, call: Call) -> bool:
        return any(done.outcome == DONE for done in self.answers.get(call.id, ()))

    def refused(self, call: Call) -> bool:
        answers = self.answers.get(call.id, ())
        return bool(answers) and all(done.outcome == UNCHANGED for done in answers)

    def words_of(self, event_id: str | None) -> list[str]:
        """Words of a message as it was appended."""
        call = self.calls.get(event_id or "") or self.calls.get((event_id or "").rpartition(".")[0])
        if call is None:
            return []
        return self.words_of(call.event) if call.kind == "restore" else call.words.get(event_id or "", [])

    def redacted_words(self) -> set[str]:
        texts = {call.text for call in self.calls.values() if call.kind == "redact_text"}
        targets = [call.event or "" for call in self.calls.values() if call.kind == "redact"]
        copies = {call.id for call in self.calls.values() if call.kind == "restore"}
        return texts.union(*(self.words_of(target) for target in targets if target not in copies))

    def check_log(self, session: str, log: list[Plain]) -> None:
        seqs = {event["id"]: event["seq"] for event in log}
        if [event["seq"] for event in log] != list(range(1, len(seqs) + 1)):
            self.problems.append(f"{session}: an event is lost or doubled: {[event['id'] for event in log]}")
        self.problems += [f"{session}: {left} is in the log" for left in self.gone & set(words_in(log))]
        for index, event in enumerate(log):
            if event["kind"] in (COMPACTION, UNDO):
                self.problems += mark_problems(log[: index + 1], event)
            elif event["kind"] == MESSAGE:
                self.check_message(session, event, [later["id"] for later in log[index + 1 :]])
            elif event["kind"] == PIN and event["id"] not in self.calls:
                self.problems.append(f"{session}: nobody wrote {event}")
        for call in self.calls.values():
            if call.session == session:
                self.check_written(call, seqs)

    def check_message(self, session: str, event: Plain, later: list[str]) -> None:
        id, closed_by = event["id"], event["id"].partition("~")[0]
        expected = [found for found in self.words_of(id) if found not in self.gone]
        if words_in(event["body"]["message"]) != expected and "redacted" not in event["body"]:
            self.problems.append(f"{session}: {event} should have {expected}")
        follows = next((each for each in later if not each.startswith(f"{closed_by}~")), "") == closed_by
        if closed_by != id and not follows and id not in self.fork_points:
            self.problems.append(f"{session}: {id} closes a call, and {closed_by} does not follow")
        known = self.calls.get(closed_by) or self.calls.get(id.rpartition(".")[0])
        if known is None or known.kind not in APPENDS | {"restore", "remember"}:
            self.problems.append(f"{session}: nobody wrote {event}")

    def check_written(self, call: Call, seqs: dict[str, int]) -> None:
        ids = [call.id] if call.kind in ("pin", "unpin") else call.ids
        present = [id in seqs for id in ids]
        whole = all(present) if self.acknowledged(call) else all(present) or not any(present)
        if not whole or (self.refused(call) and any(present)):
            self.problems.append(f"{call}: {self.answers.get(call.id)}, in the log: {present}")
        for done in self.answers.get(call.id, ()):
            wrong = {id: seq for id, seq in done.seqs.items() if seqs.get(id) != seq}
            self.problems += [f"{call}: acknowledged at {wrong}, not {seqs}"] if wrong else []
        if call.kind == "fork" and self.acknowledged(call) and call.id not in self.logs:
            self.problems.append(f"{call} was acknowledged and is not there")

    def check_counts(self) -> None:
        """Marks without an id of their own: those acknowledged, and one more at most for each unanswered call."""
        events = {event["id"]: event["kind"] for log in self.logs.values() for event in log}
        for kind, names in ((COMPACTION, COMPACTIONS), (UNDO, {"undo", "undo_to"})):
            calls = [call for call in self.calls.values() if call.kind in names]
            answers = [self.answers.get(call.id, []) for call in calls]
            least = sum(done.outcome == DONE for dones in answers for done in dones)
            most = least + sum(done.outcome not in (DONE, UNCHANGED) for dones in answers for done in dones)
            most += sum(not dones or dones[-1].outcome not in (DONE, UNCHANGED) for dones in answers)
            if not least <= (found := sum(each == kind for each in events.values())) <= most:
                self.problems.append(f"{found} {kind} events, {least} to {most} are due")
        self.counts.update(f"events: {kind}" for kind in events.values())

    async def check_contexts(self, session: str, log: list[Plain]) -> None:
        for lane in lanes_of(log):
            context = (await self.service.context(session, lane)).messages
            self.problems += [f"{session}/{lane}: {problem}" for problem in problems_of(context)]
            if words_in(context) != (expected := shown_words(log, lane)):
                self.problems.append(f"{session}/{lane} shows {words_in(context)}, its log gives {expected}")


async def check_logs(store: str, reports: Sequence[Path]) -> Checker:
    async with SessionService(open_store(store), estimator=ESTIMATOR) as service:
        checker = Checker(service, reports)
        await checker.check()
    return checker


def check_store(store: str, place: Path) -> Findings:
    checker = asyncio.run(check_logs(store, sorted(place.glob("*.report"))))
    contents = {path.name: path.read_bytes() for path in (place / "store").rglob("*") if path.is_file()}
    if store.startswith("postgres"):
        contents["a table"] = asyncio.run(tenant_rows(store.partition("&tenant=")[0], ROOT))
    checker.problems += [
        f"{name} has {left}"
        for name, data in contents.items()
        for left in sorted(checker.gone)
        if left[3:].encode() in data
    ]
    return Findings(checker.problems, dict(checker.counts))


class Processes:
    """Workers on one store, killed and started again."""

    def __init__(self, store: str, place: Path, seed: str) -> None:
        self.store, self.place, self.seed = store, place, seed
        self.chance = random.Random(seed)
        self.started = self.killed = 0
        self.running: list[subprocess.Popen[bytes]] = []
        self.reports: list[Path] = []

    def run(self, seconds: float) -> Findings:
        """Runs workers for some seconds, kills all of them, and checks the store in a process of its own."""
        self._fill()
        while not all(report.stat().st_size for report in self.reports) and not any(map(_has_ended, self.running)):
            time.sleep(0.05)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._fill()
            time.sleep(self.chance.uniform(0.1, 1.0))
            victim = self.chance.randrange(WORKERS)
            if self.reports[victim].stat().st_size or self.chance.random() < EARLY:
                self._kill(victim)
        while self.running:
            self._kill(0)
        command = [sys.executable, __file__, "--check", self.store, "--place", str(self.place)]
        done = subprocess.run(command, capture_output=True, timeout=600)
        if done.returncode:
            return Findings([done.stderr.decode()[-2000:]])
        return msgspec.json.decode(done.stdout, type=Findings)

    def _fill(self) -> None:
        while len(self.running) < WORKERS:
            self._start()

    def _start(self) -> None:
        path = self.place / f"w{self.started}.report"
        self.started += 1
        with path.open("wb") as report, path.with_suffix(".err").open("wb") as errors:
            command = [sys.executable, str(WORKER), self.store, path.stem, self.seed]
            self.running.append(subprocess.Popen(command, stdout=report, stderr=errors))
        self.reports.append(path)

    def _kill(self, index: int) -> None:
        worker, _ = self.running.pop(index), self.reports.pop(index)
        worker.kill()
        worker.wait()
        self.killed += 1


def _has_ended(worker: subprocess.Popen[bytes]) -> bool:
    return worker.poll() is not None


async def begin(store: str) -> None:
    async with SessionService(open_store(store), estimator=ESTIMATOR) as service:
        await service.create(id=ROOT, format=FORMAT, system=PROMPT, metadata=METADATA)


def new_store(kind: str, place: Path, server: Server | None) -> str:
    (place / "store").mkdir()
    if kind != "postgres":
        return f"sqlite:///{place / 'store' / 's.db'}" if kind == "sqlite" else f"jsonl:{place / 'store' / 'files'}"
    assert server is not None
    name = "stress" + "".join(character for character in place.name if character.isalnum()).lower()
    asyncio.run(_create_database(server.url, name))
    return f"{database(server.url, name)}&tenant={ROOT}"


async def _create_database(url: str, name: str) -> None:
    async with raw_connection(url) as connection:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    async with PostgresStore(database(url, name), migrate=True) as store:
        await store.sessions(limit=1)


def rounds(kind: str, seconds: float, seed: str, pause: float = 8.0) -> Iterator[tuple[Findings, int]]:
    """Yields what each check found and how many workers were killed; a new store after some checks."""
    until = time.monotonic() + seconds
    with ExitStack() as stack:
        server = stack.enter_context(Server("postgres")) if kind == "postgres" else None
        number = 0
        while time.monotonic() < until:
            with tempfile.TemporaryDirectory() as folder:
                store = new_store(kind, Path(folder), server)
                asyncio.run(begin(store))
                processes = Processes(store, Path(folder), f"{seed}/{number}")
                for left in reversed(range(CHECKS)):
                    found = processes.run(min(pause, max(0.1, until - time.monotonic())))
                    last = not left or time.monotonic() >= until
                    yield Findings(found.problems, found.counts if last else {}), processes.killed if last else 0
                    if last:
                        break
            number += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=30, help="on all stores together")
    parser.add_argument("--store", choices=(*KINDS, "all"), default="all")
    parser.add_argument("--seed", default=None)
    parser.add_argument("--check", help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.check:
        sys.stdout.buffer.write(msgspec.json.encode(check_store(given.check, given.place)))
        return 0
    seed = given.seed or str(random.SystemRandom().randrange(10**6))
    kinds = KINDS if given.store == "all" else (given.store,)
    failed = False
    for kind in kinds:
        counts: Counter[str] = Counter()
        problems: list[str] = []
        for found, killed in rounds(kind, given.minutes * 60 / len(kinds), seed):
            counts.update(found.counts)
            counts.update({"checks": 1, "killed": killed})
            problems += found.problems
        print(f"{kind}, {given.minutes / len(kinds):g} minutes, seed {seed}")
        for name, number in sorted(counts.items()):
            print(f"  {name:32}{number:8}")
        print(f"  {'violations':32}{len(problems):8}", *(text[:600] for text in problems[:20]), sep="\n", flush=True)
        failed = failed or bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
