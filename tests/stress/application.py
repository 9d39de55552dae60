"""Run as a separate process: one application server with many sessions, which reports acknowledged operations.

Usage: python application.py STORE QUEUE NAME SESSIONS

It runs until it is killed. QUEUE is "-" where workers scan the store. Besides turns of a conversation it makes marks:
compactions, prunes, pins, undos, redactions, forks, restored messages and memory notes, some of them cancelled on the
way.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections import Counter, deque
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from holdfast import JSONLStore, PruneToolResults, SessionService, SlidingWindow, SQLiteStore, open_store
from holdfast.errors import Conflict, InvalidInput, NoRoom, StaleVersion, StoreError, UnknownEvent
from holdfast.jobs import BackgroundCompactor, BullMQQueue
from holdfast.stores import PostgresStore
from holdfast.strategies import KeepLedger
from holdfast.triggers import always
from judge import judge
from stress.replay import Labelled, batch_ids
from stress.reports import Appended, Compacted, Complaint, Counted, Forked, Pinned, Redaction, Undone, report

PRESET = "spring"
CONCURRENCY = 6
"""Requests that one server handles at the same time."""
MAX_WAIT = 20.0
"""Seconds that a request waits for a compaction."""
CANCELLED = 0.04
"""Fraction of operations that are cancelled at a random moment."""
WEIGHTS = {
    "answer": 30,
    "answer_with_tools": 14,
    "append_after": 8,
    "compact": 8,
    "prune": 2,
    "pin": 5,
    "undo": 4,
    "redact": 4,
    "redact_text": 2,
    "fork": 2,
    "restore": 3,
    "remember": 2,
    "verify": 3,
}


def session_name(number: int) -> str:
    return f"talk-{number}"


def session_secret(number: int) -> str:
    """The secret in the system prompt of a session."""
    return f"skq{number:016x}"


class Application:
    def __init__(self, sessions: SessionService, background: BackgroundCompactor | None, name: str) -> None:
        self.sessions, self.background, self.name = sessions, background, name
        self.counts: Counter[str] = Counter()
        self.syncs: Counter[int] = Counter()
        """Calls of fsync by inode."""
        self._numbers = count(1)
        self._chance = random.Random(name)
        self._written: deque[tuple[str, str, str]] = deque(maxlen=400)
        """Session, id and secret of messages of this application."""
        self._pinned: deque[tuple[str, str]] = deque(maxlen=50)

    async def report_counts(self) -> None:
        while True:
            await asyncio.sleep(1)
            counts, self.counts = self.counts, Counter()
            report(Counted(dict(counts)))

    async def serve(self, number_of_sessions: int) -> None:
        """Handles one request after the other; some sessions have more of them than others."""
        operations = list(WEIGHTS)
        while True:
            number = int(number_of_sessions * self._chance.random() ** 2)
            operation = self._chance.choices(operations, list(WEIGHTS.values()))[0]
            try:
                limit = self._chance.uniform(0, 0.05) if self._chance.random() < CANCELLED else 120.0
                async with asyncio.timeout(limit):
                    await getattr(self, operation)(number)
                self.counts[operation] += 1
            except TimeoutError:
                self.counts["cancelled"] += 1
                if limit == 120.0:
                    report(Complaint(f"{operation} of {session_name(number)} did not end"))
            except NoRoom:
                self.counts["timed out"] += 1
            except (StaleVersion, Conflict):
                self.counts["overtaken by another writer"] += 1
            except (InvalidInput, UnknownEvent):
                self.counts["not applicable"] += 1
            except StoreError:
                self.counts["store unavailable"] += 1
                await asyncio.sleep(0.2)

    # -- turns --------------------------------------------------------------------------------------------

    async def answer(self, number: int) -> None:
        session, name, secret, words = self._new(number)
        user = {"role": "user", "content": f"{name} asks with {secret}: {words}"}
        await self._append(session, [user], [f"{name}-u"], secret)
        context = await self._context(session)
        for complaint in judge(context.messages, "openai-chat", pending_ok=True, extras_ok=True):
            report(Complaint(f"{session} at {context.version}: {complaint}"))
        await self._append(session, [{"role": "assistant", "content": f"{name} says: {words}"}], [f"{name}-a"])
        if self.background is not None:
            await self.background.on_turn_end(session)

    async def answer_with_tools(self, number: int) -> None:
        """A turn with parallel tool calls, whose results are appended together."""
        session, name, secret, words = self._new(number)
        calls = [f"{name}-call{place}" for place in range(self._chance.randint(2, 4))]
        function = {"name": "look", "arguments": '{"path": "/srv/harbour.py"}'}
        tool_calls = [{"id": call, "type": "function", "function": function} for call in calls]
        user = {"role": "user", "content": f"{name} asks: {words}"}
        asked = {"role": "assistant", "content": None, "tool_calls": tool_calls}
        await self._append(session, [user, asked], batch_ids(f"{name}-q", 2))
        secrets = [f"{secret[:-1]}{place}" for place in range(len(calls))]
        results = [
            {
                "role": "tool",
                "tool_call_id": call,
                "content": f"ERROR in /srv/{call}.py: API_TOKEN={own} refused by dock_{own}.example\n{words}",
            }
            for call, own in zip(calls, secrets, strict=True)
        ]
        await self._append(session, results, batch_ids(f"{name}-r", len(calls)), *secrets)
        await self._append(session, [{"role": "assistant", "content": f"{name} is done."}], [f"{name}-a"])

    async def append_after(self, number: int) -> None:
        session, name, secret, words = self._new(number)
        version = (await self.sessions.context(session)).version
        user = {"role": "user", "content": f"{name} adds {secret}: {words}"}
        await self._append(session, [user], [f"{name}-u"], secret, after=version)

    async def _context(self, session: str) -> Any:
        started = time.monotonic()
        if self.background is not None:
            context = await self.background.before_turn(session, MAX_WAIT)
        else:
            context = await self.sessions.context(session, wait=MAX_WAIT)
        self.counts["waited"] += time.monotonic() - started > 0.5
        return context

    def _new(self, number: int) -> tuple[str, str, str, str]:
        name = f"{self.name}-{next(self._numbers)}"
        words = "words " * self._chance.choice((10, 60, 300))
        return session_name(number), name, f"skq{self._chance.getrandbits(64):016x}", words

    async def _append(
        self, session: str, messages: list[Any], ids: list[str], *secrets: str, after: int | None = None
    ) -> None:
        before = sum(self.syncs.values())
        events = await self.sessions.append(session, messages, id=ids, after=after)
        report(Appended([event.id for event in events], [event.seq for event in events], session, after))
        if isinstance(self.sessions.store, JSONLStore) and sum(self.syncs.values()) == before:
            report(Complaint(f"{session}: {ids} was acknowledged before it was on disk"))
        self._written.extend((session, id, secret) for id, secret in zip(ids, secrets, strict=bool(secrets)))

    # -- marks --------------------------------------------------------------------------------------------

    async def compact(self, number: int) -> None:
        session, label = session_name(number), f"{self.name}-{next(self._numbers)}"
        mode = self._chance.choice(("skip", "rebase"))
        inner = self._chance.choice((SlidingWindow(self._chance.randint(4, 12)), KeepLedger(1500)))
        result = await self.sessions.compact(session, always, Labelled(inner, label, mode), mode)  # type: ignore[arg-type]
        assert result.version is not None
        report(Compacted(label, result.outcome, result.version, mode, session))
        self.counts[f"outcome {result.outcome}"] += 1

    async def prune(self, number: int) -> None:
        session, label = session_name(number), f"{self.name}-{next(self._numbers)}"
        strategy: Any = Labelled(PruneToolResults(200, 50), label, "rebase")
        result = await self.sessions.prune(session, strategy)
        assert result.version is not None
        report(Compacted(label, result.outcome, result.version, "rebase", session))
        self.counts[f"outcome {result.outcome}"] += 1

    async def pin(self, number: int) -> None:
        """Pins a message of this application, or unpins one."""
        if not self._written:
            return
        session, event, _ = self._chance.choice(self._written)
        pinned = not (self._pinned and self._chance.random() < 0.7)
        if not pinned:
            session, event = self._pinned.popleft()
        seen = (await self.sessions.context(session)).version if self._chance.random() < 0.5 else None
        id = f"{self.name}-{next(self._numbers)}-pin"
        await self.sessions.pin(session, event, pinned=pinned, id=id, after=seen)
        report(Pinned(id, session, seen))
        if pinned:
            self._pinned.append((session, event))

    async def undo(self, number: int) -> None:
        session = session_name(number)
        seen = (await self.sessions.context(session)).version
        to = await self.sessions.undo(session, after=seen)
        report(Undone(session, to, seen))

    async def redact(self, number: int) -> None:
        if not self._written:
            return
        session, event, secret = self._chance.choice(self._written)
        report(Redaction(session, secret, event, done=False))
        await self.sessions.redact(session, event)
        report(Redaction(session, secret, event, done=True))

    async def redact_text(self, number: int) -> None:
        """Redacts the secret of a message, or that of a system prompt."""
        session, secret = session_name(number), session_secret(number)
        if self._written and self._chance.random() < 0.7:
            session, _, secret = self._chance.choice(self._written)
        report(Redaction(session, secret, None, done=False))
        await self.sessions.redact_text(session, secret)
        report(Redaction(session, secret, None, done=True))

    async def fork(self, number: int) -> None:
        """Forks, sometimes from an earlier message, and goes on in the fork."""
        session, id = session_name(number), f"{self.name}-{next(self._numbers)}-fork"
        own = [event for place, event, _ in self._written if place == session]
        at = self._chance.choice(own) if own and self._chance.random() < 0.5 else None
        record = await self.sessions.fork(session, at, id=id)
        report(Forked(session, id, record.version))
        await self._append(id, [{"role": "user", "content": f"{id} asks."}], [f"{id}-u"])

    async def restore(self, number: int) -> None:
        session = session_name(number)
        archived = await self.sessions.events(session, kind="message", archived=True)
        if archived:
            event = self._chance.choice(archived[-40:])
            restored = await self.sessions.restore(session, event.id, id=f"{self.name}-{next(self._numbers)}-restore")
            report(Appended([restored.id], [restored.seq], session))

    async def remember(self, number: int) -> None:
        session, id = session_name(number), f"{self.name}-{next(self._numbers)}-note"
        event = await self.sessions.remember(session, f"{id} is worth remembering.", id=id)
        report(Appended([event.id], [event.seq], session))

    async def verify(self, number: int) -> None:
        """The view of this process must be the one that the log gives; a redaction may come between two reads."""
        session = session_name(number)
        for _ in range(3):
            if not (found := [each for each in await self.sessions.verify(session) if "skipped" not in each]):
                return
        report(Complaint(f"{session}, as {self.name} sees it: {found}"))


async def _when_available(store: Any) -> list[str]:
    """The application may be started while its database restarts."""
    while True:
        try:
            return await durability_problems(store)
        except StoreError:
            await asyncio.sleep(0.5)


async def durability_problems(store: Any) -> list[str]:
    """The store must wait for the disk before it acknowledges: as its own connection is set, not as it was asked."""
    if isinstance(store, SQLiteStore):
        level = await store._writer.run(lambda connection: connection.execute("PRAGMA synchronous").fetchone()[0])
        return [] if level == 2 else [f"PRAGMA synchronous is {level}, not FULL (2)"]
    if isinstance(store, PostgresStore):
        shown = {name: await store._run(_show(name)) for name in ("fsync", "synchronous_commit")}
        return [f"{name} is {value}" for name, value in shown.items() if value != "on"]
    return []


def _show(name: str) -> Any:
    return lambda connection, _: connection.fetchval(f"SHOW {name}")


def count_syncs(counter: Counter[int]) -> None:
    """Counts the calls of fsync in this process, by inode."""
    real = os.fsync

    def fsync(handle: int) -> None:
        real(handle)
        counter[os.fstat(handle).st_ino] += 1

    os.fsync = fsync


async def main(store: str, queue: str, name: str, sessions: int) -> None:
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(SessionService(open_store(store), preset=PRESET))
        background = None
        if queue != "-":
            background = BackgroundCompactor(service, await stack.enter_async_context(BullMQQueue(queue)))
        application = Application(service, background, name)
        count_syncs(application.syncs)
        for problem in await _when_available(service.store):
            report(Complaint(problem))
        async with asyncio.TaskGroup() as group:
            group.create_task(application.report_counts())
            for _ in range(CONCURRENCY):
                group.create_task(application.serve(sessions))


if __name__ == "__main__":
    given = sys.argv[1:]
    asyncio.run(main(given[0], given[1], given[2], int(given[3])))
