"""Run as a separate process: random operations on the sessions of a store, until it is killed.

Usage: python session_worker.py STORE NAME SEED

Each operation is reported before it begins, with all of its arguments, and after it was acknowledged.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Sequence
from itertools import count, zip_longest
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from holdfast import SessionService, check, open_store
from holdfast.errors import StoreError
from judge import judge
from stress.log_model import Plain
from stress.operations import APPENDS, CANCELLED, ESTIMATOR, FORMAT, WEIGHTS, Call, Done, perform, plan_call

MAX_SESSIONS = 4
CANCEL, COMPARE = 0.2, 0.3
"""Shares of operations that are cancelled and then repeated, and after which the context is compared."""
FAILED = "failed"


class Begun(msgspec.Struct, tag=True):
    """An operation is about to be carried out."""

    call: Call


class Ended(msgspec.Struct, tag=True):
    """An operation was answered, cancelled, or failed because the store did."""

    id: str
    done: Done


class Violation(msgspec.Struct, tag=True):
    """A violated invariant that the worker itself observed."""

    text: str


Entry = Begun | Ended | Violation
_decoder = msgspec.json.Decoder(Entry)


def read_entries(path: Path) -> list[Entry]:
    """Returns all complete entries of a report; ignores a line cut by a kill."""
    *lines, _ = path.read_bytes().split(b"\n")
    return [_decoder.decode(line) for line in lines]


def write_entry(entry: Entry) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(entry) + b"\n")
    sys.stdout.buffer.flush()


class Worker:
    def __init__(self, service: SessionService, name: str, seed: str) -> None:
        self.service, self.name = service, name
        self.chance = random.Random(f"{seed}/{name}")
        self.earlier: list[Call] = []

    async def work(self) -> None:
        for number in count():
            call = await self._plan(f"{self.name}-{number}")
            if call is not None:
                await self._carry_out(call)
                if self.chance.random() < COMPARE:
                    await self._compare(call)

    async def _plan(self, label: str) -> Call | None:
        sessions = sorted(record.id for record in await self.service.list())
        [kind] = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
        if kind == "retry":
            return self.chance.choice(self.earlier) if self.earlier else None
        if kind == "fork" and len(sessions) >= MAX_SESSIONS:
            return None
        session = self.chance.choice(sessions)
        log: Sequence[Plain] = (await self.service.export(session))[1:]
        newest = max(0, len(log) - self.chance.choice((5, 20, 1000)))  # mostly recent events: others choose them, too
        numbers = [self.chance.randrange(10), newest + self.chance.randrange(40), self.chance.randrange(7)]
        call = plan_call(kind, numbers, session, log, label)
        if call is not None and kind in APPENDS:
            self.earlier = [*self.earlier[-20:], call]
        return call

    async def _carry_out(self, call: Call) -> None:
        write_entry(Begun(call))
        if self.chance.random() < CANCEL:
            task = asyncio.create_task(perform(self.service, call))
            await asyncio.wait({task}, timeout=self.chance.uniform(0, 0.02))
            task.cancel()
            [answer] = await asyncio.gather(task, return_exceptions=True)
            write_entry(Ended(call.id, answer if isinstance(answer, Done) else Done(CANCELLED, why=str(answer))))
        write_entry(Ended(call.id, await self._answer(call)))

    async def _answer(self, call: Call) -> Done:
        try:
            return await perform(self.service, call)
        except StoreError as error:
            return Done(FAILED, why=str(error))

    async def _compare(self, call: Call) -> None:
        """This service's next context is valid, and the one rebuilt from the log if nobody wrote in between."""
        seen = await self.service.context(call.session, call.lane)
        fresh = await SessionService(self.service.store, estimator=ESTIMATOR).context(call.session, call.lane)
        after = await self.service.store.session(
            call.session
        )  # a redaction in between changes what is read at a version
        if seen.version == fresh.version == after.version and seen.messages != fresh.messages:
            pairs = enumerate(zip_longest(seen.messages, fresh.messages))
            at, (old, new) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
            where = f"{call.session}/{call.lane} at {seen.version} after {call}, message {at}"
            sizes = f"{len(seen.messages)} and {len(fresh.messages)} messages"
            write_entry(Violation(f"{where}: live {_start(old)}, from the log {_start(new)}; {sizes}"))
        for problem in problems_of(seen.messages):
            write_entry(Violation(f"{call.session}/{call.lane} at {seen.version}: {problem}"))


def _start(message: dict[str, Any] | None) -> str:
    return str(message)[:150]


def problems_of(context: list[dict[str, Any]]) -> list[str]:
    """Why a provider would reject these messages."""
    return [*map(str, check(context, FORMAT)), *judge(context, FORMAT)] if context else []


async def main(store: str, name: str, seed: str) -> None:
    async with SessionService(open_store(store), estimator=ESTIMATOR) as service:
        try:
            await Worker(service, name, seed).work()
        except Exception as error:
            write_entry(Violation(f"{name}: {type(error).__name__}: {error}"))
            raise


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
