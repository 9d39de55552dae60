"""Stateful property test: sessions on every store, against a model of their logs (S3, H1).

Operations of several services are cancelled before and after every call of the store and then repeated, run while
another is half done, and find their service behind the log. After each step nothing that was acknowledged is lost or
doubled, every context is valid and the one that the log gives, and what was redacted is nowhere.
HYPOTHESIS_PROFILE=thorough runs 2,000 examples of 50 steps on each store.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from holdfast import SessionService
from holdfast.context.events import SessionRecord
from holdfast.stores import JSONLStore, MemoryStore, PostgresStore, SQLiteStore
from stores.databases import tenant_rows
from stress.log_model import (
    COMPACTION,
    MESSAGE,
    REDACTION,
    UNDO,
    FamilyModel,
    Plain,
    lanes_of,
    mark_problems,
    shown_words,
    words_in,
)
from stress.operations import (
    APPENDS,
    CANCELLED,
    COMPACTIONS,
    DONE,
    ESTIMATOR,
    FORMAT,
    METADATA,
    PROMPT,
    WEIGHTS,
    Call,
    Done,
    must_conflict,
    perform,
    plan_call,
)
from stress.session_worker import problems_of

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
ROOT, SERVICES, MAX_SESSIONS = "s", 3, 3
STORE_CALLS = (
    "create session sessions append read media forks relatives rewrite erase delete problems search ids take release "
    "held changed close"
).split()
WRITES = frozenset({"create", "append", "rewrite"})
KINDS = st.sampled_from([kind for kind, weight in WEIGHTS.items() for _ in range(weight)])
DERIVED = st.sampled_from(["restore", "fork", "ledger", "window", "pin"])
REDACTIONS = st.sampled_from(["redact", "redact_text"])
NUMBERS = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 40), st.integers(0, 6))
"""Session, lane, event and size of an operation."""
Numbers = tuple[int, ...]
SERVICE = st.integers(0, SERVICES - 1)
AT, BOOL = st.just(0) | st.integers(1, 12), st.booleans()
LOOK = st.sets(SERVICE)
"""Services whose contexts are compared after a step; the others stay behind the log."""


class SteppedStore:
    """A store that runs a function before or after its nth call since `arm`; for 0, its first call that writes."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.disarm()

    def arm(self, at: int, after: bool, act: Callable[[], Awaitable[None]] | None) -> None:
        self._left, self._after, self._act = at, after, act
        self._at_write = at == 0

    def disarm(self) -> None:
        self.arm(0, False, None)

    async def _step(self, name: str, args: Any, named: Any) -> Any:
        self._left -= 1
        act = self._act if (name in WRITES if self._at_write else self._left == 0) else None
        if act is not None:
            self._act = None
        if act is not None and not self._after:
            await act()
        result = await getattr(self.store, name)(*args, **named)
        if act is not None and self._after:
            await act()
        return result


def _stepped(name: str) -> Any:
    async def call(self: SteppedStore, *args: Any, **named: Any) -> Any:
        return await self._step(name, args, named)

    return call


for _name in STORE_CALLS:
    setattr(SteppedStore, _name, _stepped(_name))


class Sessions(RuleBasedStateMachine):
    """Services on one store, each with its own connection to it."""

    kind: ClassVar[str]
    database: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.memory = MemoryStore()
        self.model = FamilyModel()
        self.model.logs[ROOT] = []
        self.appends: list[Call] = []
        self.labels = 0
        self.searched: set[str] = set()
        self.reader = self.open()
        self.services = [self.service() for _ in range(SERVICES)]
        self.loop.run_until_complete(self.services[0].create(id=ROOT, format=FORMAT, system=PROMPT, metadata=METADATA))

    def open(self) -> Any:
        match self.kind:
            case "sqlite":
                return SQLiteStore(self.folder / "s.db", "NORMAL")
            case "jsonl":
                return JSONLStore(self.folder / "files")
            case "postgres":
                return PostgresStore(self.database, tenant=self.folder.name, max_connections=2)
        return self.memory

    def service(self) -> SessionService:
        return SessionService(SteppedStore(self.open()), estimator=ESTIMATOR)  # type: ignore[arg-type]

    # -- rules --------------------------------------------------------------------------------------------

    @rule(by=SERVICE, kind=KINDS, numbers=NUMBERS, look=LOOK, reopen=st.sampled_from([False] * 9 + [True]))
    def run(self, by: int, kind: str, numbers: Numbers, look: set[int], reopen: bool) -> None:
        self.loop.run_until_complete(self.alone(by, kind, numbers, look, reopen))

    @rule(by=SERVICE, kind=KINDS, numbers=NUMBERS, look=LOOK, at=AT, after=BOOL, native=BOOL, again=SERVICE)
    def cancel(
        self,
        by: int,
        kind: str,
        numbers: Numbers,
        look: set[int],
        at: int,
        after: bool,
        native: bool,
        again: int,
    ) -> None:
        """Cancels an operation at a call of the store; then the same or another service repeats it."""
        self.loop.run_until_complete(self.cancelled(by, kind, numbers, look, at, after, native, again))

    @rule(by=SERVICE, kind=KINDS, numbers=NUMBERS, look=LOOK, at=AT, other=KINDS, others=st.none() | NUMBERS)
    def interleave(
        self,
        by: int,
        kind: str,
        numbers: Numbers,
        look: set[int],
        at: int,
        other: str,
        others: Numbers | None,
    ) -> None:
        """Another service carries out a whole operation before a call of the store."""
        self.loop.run_until_complete(self.interleaved(by, kind, numbers, look, at, other, others))

    @rule(by=SERVICE, kind=DERIVED, numbers=NUMBERS, look=LOOK, other=REDACTIONS, first=BOOL)
    def redact_meanwhile(self, by: int, kind: str, numbers: Numbers, look: set[int], other: str, first: bool) -> None:
        """Another service redacts what an operation has just read, or acts in the midst of a redaction."""
        kind, other = (kind, other) if first else (other, kind)
        self.loop.run_until_complete(self.interleaved(by, kind, numbers, look, 0, other, None))

    # -- steps --------------------------------------------------------------------------------------------

    async def plan(self, kind: str, numbers: Numbers) -> Call | None:
        if kind == "retry":
            return self.appends[numbers[2] % len(self.appends)] if self.appends else None
        if kind == "fork" and len(self.model.logs) >= MAX_SESSIONS:
            return None
        self.labels += 1
        session = list(self.model.logs)[numbers[0] % len(self.model.logs)]
        call = plan_call(kind, numbers[1:], session, await self.log(session), f"e{self.labels}")
        if call is not None and kind in APPENDS:
            self.appends.append(call)
        return call

    async def alone(self, by: int, kind: str, numbers: Numbers, look: set[int], reopen: bool) -> None:
        if reopen:
            if self.kind != "memory":
                await self.services[by].close()
            self.services[by] = self.service()
        if (call := await self.plan(kind, numbers)) is None:
            return
        log = await self.log(call.session)
        done = await perform(self.services[by], call)
        if call.after is not None:
            assert not (done.outcome == DONE and must_conflict(call, log)), f"{call} took a newer mark away"
            assert must_conflict(call, log) or "Conflict" not in done.why or call.session != ROOT, f"{call}: {done.why}"
        await self.check([(call, done)], look)

    async def cancelled(
        self,
        by: int,
        kind: str,
        numbers: Numbers,
        look: set[int],
        at: int,
        after: bool,
        native: bool,
        again: int,
    ) -> None:
        service = self.services[by]
        if (call := await self.plan(kind, numbers)) is None:
            return
        scope, first = anyio.CancelScope(), Done(CANCELLED)

        async def work() -> None:
            nonlocal first
            with scope:
                first = await perform(service, call)

        async def act() -> None:
            if native:
                task.cancel()
            else:
                scope.cancel()
            await anyio.lowlevel.checkpoint()

        service.store.arm(at, after, act)
        task = asyncio.create_task(work(), context=contextvars.Context())
        with contextlib.suppress(asyncio.CancelledError):
            await task
        service.store.disarm()
        second = await perform(self.services[again], call)
        await self.check([(call, first), (call, second)], look)

    async def interleaved(
        self,
        by: int,
        kind: str,
        numbers: Numbers,
        look: set[int],
        at: int,
        other: str,
        others: Numbers | None,
    ) -> None:
        first, second = await self.plan(kind, numbers), await self.plan(other, others or numbers)
        if first is None or second is None:
            return
        service, others_service = self.services[by], self.services[(by + 1) % SERVICES]
        attempts: list[tuple[Call, Done]] = []

        async def act() -> None:
            loop = asyncio.get_running_loop()
            done = await loop.create_task(perform(others_service, second), context=contextvars.Context())
            attempts.append((second, done))

        service.store.arm(at, False, act)
        attempts.append((first, await perform(service, first)))
        service.store.disarm()
        await self.check(attempts, look)

    # -- invariants ---------------------------------------------------------------------------------------

    async def log(self, session: str) -> list[Plain]:
        exported = await SessionService(self.reader, estimator=ESTIMATOR).export(session)
        return exported[1:]

    async def check(self, attempts: list[tuple[Call, Done]], look: set[int]) -> None:
        known = list(self.model.logs)
        records = {record.id: record for record in await self.reader.sessions()}
        self.add_forks(attempts, set(records))
        problems: list[str] = []
        touched = {call.session for call, _ in attempts}
        touched |= {name for name, entries in self.model.logs.items() if records[name].version != len(entries)}
        logs = {session: await self.log(session) for session in self.model.logs if session in touched}
        for session in (name for name in known if name in logs):
            problems += self.absorb(session, logs[session], attempts)
        for call in {call.id: call for call, _ in attempts if call.kind == "fork" and call.id in logs}.values():
            shared = self.model.logs[call.session][: records[call.id].parent_seq]
            self.model.logs[call.id] = [dict(entry) for entry in shared]
            problems += self.absorb(call.id, logs[call.id], attempts)
            if call.event is not None and shared[-1]["id"] != call.event:
                problems.append(f"{call.id} was forked at {shared[-1]}, not at {call.event}")
        for call, done in attempts:
            if done.outcome == DONE and call.kind == "redact":
                self.model.redact(call.event or "")
            elif done.outcome == DONE and call.kind == "redact_text":
                self.model.redact_text(call.text)
            elif call.kind == "title":
                problems += [f"the title has {left}" for left in self.model.gone & set(words_in(done.why))]
        for session, log in logs.items():
            problems += self.model.problems(session, log)
            problems += await self.context_problems(session, log, look)
        problems += [f"{name}: {left} is in the record" for name in records for left in self.left_in(records[name])]
        problems += await self.search_problems(self.model.gone - self.searched)
        assert not problems, "\n".join(problems)

    def add_forks(self, attempts: list[tuple[Call, Done]], stored: set[str]) -> None:
        forks = {call.id: done.outcome for call, done in reversed(attempts) if call.kind == "fork"}
        assert stored <= self.model.logs.keys() | forks.keys()
        assert all(name in stored for name in self.model.logs)
        for name, outcome in forks.items():
            assert name in stored or outcome != DONE, f"the fork {name} was acknowledged and is not there"
            if name in stored:
                self.model.logs[name] = []

    def absorb(self, session: str, log: list[Plain], attempts: list[tuple[Call, Done]]) -> list[str]:
        """Adds new events of a log to the model; returns those that no operation of this step may have written."""
        known = {entry["id"]: entry for entry in self.model.logs[session]}
        fresh = log[len(known) :]
        new = Counter(event["id"] for event in fresh)
        problems: list[str] = []
        words: dict[str, list[str]] = {}
        for call, _ in attempts:
            if call.session == session:
                words |= {
                    id: known[call.event or ""]["words"] if call.kind == "restore" else call.words[id]
                    for id in call.ids
                }
                words |= {call.id: []} if call.kind in ("pin", "unpin") else {}
        for index, event in enumerate(fresh, len(known)):
            if event["kind"] in (COMPACTION, UNDO):
                problems += mark_problems(log[: index + 1], event)
            elif event["kind"] != REDACTION and event["id"] not in words and event["id"].partition("~")[0] not in new:
                problems.append(f"{session}: nobody wrote {event}")
            self.model.add(session, event, words.get(event["id"], []) if event["kind"] == MESSAGE else [])
        notes = Counter(event["body"]["event"] for event in log if event["kind"] == REDACTION and event["body"])
        problems += [f"{session}: {times} redactions of {id}" for id, times in notes.items() if times > 1]
        kinds = Counter(event["kind"] for event in fresh)
        for kind, names in ((COMPACTION, COMPACTIONS), (UNDO, {"undo", "undo_to"})):
            outcomes = Counter(
                done.outcome for call, done in attempts if call.kind in names and call.session == session
            )
            if not outcomes[DONE] <= kinds[kind] <= outcomes[DONE] + outcomes[CANCELLED]:
                problems.append(f"{session}: {kinds[kind]} {kind} events, {outcomes}")
        if kinds[REDACTION] > sum(call.kind.startswith("redact") for call, _ in attempts):
            problems.append(f"{session}: {kinds[REDACTION]} redactions")
        for call in {call.id: call for call, _ in attempts if call.session == session}.values():
            problems += self.written(call, [done for each, done in attempts if each == call], log, known)
        return problems

    def written(self, call: Call, answers: list[Done], log: list[Plain], known: dict[str, Plain]) -> list[str]:
        """An operation with an id is in the log once if it was acknowledged, else as a whole or not at all."""
        ids = [call.id] if call.kind in ("pin", "unpin") else call.ids
        if not ids:
            return []
        seqs = {event["id"]: event["seq"] for event in log}
        present = [id in seqs for id in ids]
        acknowledged = any(done.outcome == DONE for done in answers)
        wrong = [
            f"{id} was acknowledged at {seq}, not {seqs.get(id)}"
            for done in answers
            for id, seq in done.seqs.items()
            if seqs.get(id) != seq
        ]
        if any(present) != all(present) or (acknowledged and not all(present)):
            wrong.append(f"{call}: {answers}, {present}")
        unchanged = all(done.outcome not in (DONE, CANCELLED) for done in answers)
        if unchanged and any(id in seqs and id not in known for id in ids):
            wrong.append(f"{call} was refused and written: {answers}")
        return wrong

    async def context_problems(self, session: str, log: list[Plain], look: set[int]) -> list[str]:
        problems: list[str] = []
        fresh = SessionService(self.reader, estimator=ESTIMATOR)
        for lane in lanes_of(log):
            name, context = f"{session}/{lane}", (await fresh.context(session, lane)).messages
            problems += [f"{name}: {found}" for found in problems_of(context)]
            problems += [f"{name} shows {left}" for left in self.model.gone & set(words_in(context))]
            if words_in(context) != (expected := shown_words(log, lane)):
                problems.append(f"{name} shows {words_in(context)}, the log gives {expected}")
            for number in sorted(look):
                seen = (await self.services[number].context(session, lane)).messages
                if seen != context:
                    problems.append(
                        f"{name}: service {number} shows {words_in(seen)}, the log gives {expected}: {seen}, {context}"
                    )
        return problems

    def left_in(self, record: SessionRecord) -> set[str]:
        return self.model.gone & set(words_in([record.system, record.metadata]))

    async def search_problems(self, gone: set[str]) -> list[str]:
        self.searched |= gone
        return [f"a search finds {left}: {hits}" for left in sorted(gone) if (hits := await self.reader.search(left))]

    async def final_problems(self) -> list[str]:
        problems = await self.search_problems(self.model.gone)
        service = SessionService(self.reader, estimator=ESTIMATOR)
        for session, entries in self.model.logs.items():
            problems += await service.verify(session)
            problems += await self.context_problems(session, await self.log(session), set(range(SERVICES)))
            for entry in (entry for entry in entries if entry["source"] is None):
                for left in entry["words"]:
                    hits = {hit.event.id for hit in await self.reader.search(left, session_id=session)}
                    if entry["id"] not in hits:
                        problems.append(f"{session}: no search finds {left} of {entry['id']}")
        return problems + await self.bytes_left()

    async def bytes_left(self) -> list[str]:
        """Words that were redacted and are in a file or a table; an index may store a word without its beginning."""
        contents = {path.name: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        if self.kind == "postgres" and self.model.gone:
            contents["tables"] = await tenant_rows(self.database, self.folder.name)
        return [
            f"{name} has {left}"
            for name, data in contents.items()
            for left in sorted(self.model.gone)
            if left[3:].encode() in data
        ]

    def teardown(self) -> None:
        try:
            problems = self.loop.run_until_complete(self.final_problems())
        finally:
            for store in (self.reader, *(service.store for service in self.services)):
                self.loop.run_until_complete(store.close())
            problems_in_files = self.loop.run_until_complete(self.bytes_left())
            self.loop.close()
            shutil.rmtree(self.folder)
        problems += problems_in_files
        assert not problems, "\n".join(problems)


USUAL = {"memory": (10, 25), "jsonl": (3, 20), "sqlite": (3, 20), "postgres": (2, 15)}
"""Examples and steps on each store."""


@pytest.mark.timeout(36_000 if THOROUGH else 100)
@pytest.mark.parametrize("kind", USUAL)
def test_h1_every_operation_on_sessions_agrees_with_a_model_of_the_log(
    kind: str, request: pytest.FixtureRequest
) -> None:
    database = request.getfixturevalue("postgres") if kind == "postgres" else ""
    machine = type("Sessions", (Sessions,), {"kind": kind, "database": database})
    examples, steps = (2_000, 50) if THOROUGH else USUAL[kind]
    case = machine.TestCase  # type: ignore[attr-defined]
    case.settings = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )
    case("runTest").runTest()
