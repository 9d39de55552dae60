"""Run as a separate process: one application server with many sessions, which reports acknowledged appends.

Usage: python application.py STORE QUEUE NAME SESSIONS SECONDS
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import Counter
from itertools import count
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from holdfast import SessionService, open_store
from holdfast.errors import NoRoom, StaleVersion, StoreError
from holdfast.jobs import BackgroundCompactor, BullMQQueue
from judge import judge
from stress.reports import Appended, Complaint, Counted, report

PRESET = "spring"
CONCURRENCY = 8
"""Requests that one server handles at the same time."""
MAX_WAIT = 20.0
"""Seconds that a request waits for a compaction."""


def session_name(number: int) -> str:
    return f"talk-{number}"


class Application:
    def __init__(self, sessions: SessionService, background: BackgroundCompactor, name: str) -> None:
        self.sessions, self.background, self.name = sessions, background, name
        self.counts: Counter[str] = Counter()
        self._numbers = count(1)
        self._chance = random.Random(name)

    async def serve(self, number_of_sessions: int, until: float) -> None:
        """Handles one request after the other, each in a random session."""
        while time.monotonic() < until:
            try:
                await self.answer(session_name(self._chance.randrange(number_of_sessions)))
                self.counts["answered"] += 1
            except NoRoom:
                self.counts["timed out"] += 1
            except StaleVersion:
                self.counts["overtaken by another request"] += 1
            except StoreError:
                self.counts["store unavailable"] += 1
                await asyncio.sleep(0.2)

    async def answer(self, session: str) -> None:
        name = f"{self.name}-{next(self._numbers)}"
        words = "words " * self._chance.choice((10, 60, 300))
        await self._append(session, {"role": "user", "content": f"{name} asks: {words}"}, f"{name}-u")
        started = time.monotonic()
        context = await self.background.before_turn(session, MAX_WAIT)
        self.counts["waited"] += time.monotonic() - started > 0.5
        for complaint in judge(context.messages, "openai-chat", pending_ok=True, extras_ok=True):
            report(Complaint(f"{session} at {context.version}: {complaint}"))
        await self._append(session, {"role": "assistant", "content": f"{name} says: {words}"}, f"{name}-a")
        await self.background.on_turn_end(session)

    async def _append(self, session: str, message: dict[str, str], id: str) -> None:
        events = await self.sessions.append(session, message, id=id)
        report(Appended([event.id for event in events], [event.seq for event in events], session))


async def main(store: str, queue: str, name: str, sessions: int, seconds: float) -> None:
    async with SessionService(open_store(store), preset=PRESET) as service, BullMQQueue(queue) as jobs:
        application = Application(service, BackgroundCompactor(service, jobs), name)
        until = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            for _ in range(CONCURRENCY):
                group.create_task(application.serve(sessions, until))
    report(Counted(msgspec.to_builtins(dict(application.counts))))


if __name__ == "__main__":
    given = sys.argv[1:]
    asyncio.run(main(given[0], given[1], given[2], int(given[3]), float(given[4])))
