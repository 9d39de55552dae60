"""Run as a process of its own: one application server with many conversations, which says what was acknowledged.

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

from fire.words import Appended, Complaint, Counted, say
from holdfast import SessionService, open_store
from holdfast.errors import NoRoom, StaleVersion, StoreError
from holdfast.jobs import Background, BullMQQueue
from judge import judge

PRESET = "spring"
AT_ONCE = 8
"""Requests that one server answers at the same time."""
PATIENCE = 20.0
"""Seconds that a request waits for a compaction."""


def session_name(number: int) -> str:
    return f"talk-{number}"


class Application:
    def __init__(self, sessions: SessionService, background: Background, name: str) -> None:
        self.sessions, self.background, self.name = sessions, background, name
        self.counts: Counter[str] = Counter()
        self._numbers = count(1)
        self._chance = random.Random(name)

    async def serve(self, number_of_sessions: int, until: float) -> None:
        """Answer one request after the other, each in a conversation of chance."""
        while time.monotonic() < until:
            try:
                await self.answer(session_name(self._chance.randrange(number_of_sessions)))
                self.counts["answered"] += 1
            except NoRoom:
                self.counts["clear time-out"] += 1
            except StaleVersion:
                self.counts["overtaken by another request"] += 1
            except StoreError:
                self.counts["store away, clearly said"] += 1
                await asyncio.sleep(0.2)

    async def answer(self, session: str) -> None:
        name = f"{self.name}-{next(self._numbers)}"
        words = "words " * self._chance.choice((10, 60, 300))
        await self._append(session, {"role": "user", "content": f"{name} asks: {words}"}, f"{name}-u")
        started = time.monotonic()
        context = await self.background.before_turn(session, PATIENCE)
        self.counts["waited"] += time.monotonic() - started > 0.5
        for complaint in judge(context.messages, "openai-chat", pending_ok=True, extras_ok=True):
            say(Complaint(f"{session} at {context.version}: {complaint}"))
        await self._append(session, {"role": "assistant", "content": f"{name} says: {words}"}, f"{name}-a")
        await self.background.on_turn_end(session)

    async def _append(self, session: str, message: dict[str, str], id: str) -> None:
        events = await self.sessions.append(session, message, id=id)
        say(Appended([event.id for event in events], [event.seq for event in events], session))


async def main(store: str, queue: str, name: str, sessions: int, seconds: float) -> None:
    async with SessionService(open_store(store), preset=PRESET) as service, BullMQQueue(queue) as jobs:
        application = Application(service, Background(service, jobs), name)
        until = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(application.serve(sessions, until))
    say(Counted(msgspec.to_builtins(dict(application.counts))))


if __name__ == "__main__":
    given = sys.argv[1:]
    asyncio.run(main(given[0], given[1], given[2], int(given[3]), float(given[4])))
