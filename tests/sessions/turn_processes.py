"""Run as a separate process: turns in forked children that are killed at any call of their store.

Usage: python turn_processes.py ADDRESS killed|together

`killed`: a child is killed with SIGKILL at its n-th call, and another one does the same turn; for each n. `together`:
four children do the same turn of a session at once, and each another one after it. Prints what is stored as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from turn_loop import Harbour, MortalStore

from holdfast import SessionService, check, open_store


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Any) -> int:
    """Starts async work in a child; returns its process id."""
    child = os.fork()
    if not child:
        try:
            asyncio.run(work())
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    return child


def status(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(address: str, how: str) -> None:
    async def create(session: str) -> None:
        async with SessionService(open_store(address)) as service:
            await service.create(id=session, format="openai-chat")

    async def turn(session: str, at: int | None = None, id: str = "t") -> None:
        async with SessionService(MortalStore(open_store(address), at, kill)) as service:
            await Harbour().answer(service, id, session=session)

    async def report(session: str) -> None:
        async with SessionService(open_store(address)) as service:
            names = [event.id for event in await service.events(session, kind="message")]
            problems = [str(problem) for problem in check(list(await service.context(session)), "openai-chat")]
            print(json.dumps({"session": session, "events": names, "problems": problems}))

    async def several(number: int) -> None:
        await turn("s")
        await turn("s", id=f"t{number}")

    def do(work: Any) -> None:
        assert status(in_child(work)) == 0

    if how == "together":
        do(lambda: create("s"))
        children = [in_child(lambda number=number: several(number)) for number in range(4)]
        assert [status(child) for child in children] == [0] * 4
        do(lambda: report("s"))
        return
    point, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        point += 5
        session = f"s{point}"
        do(lambda session=session: create(session))
        code = status(in_child(lambda session=session, point=point: turn(session, point)))
        do(lambda session=session: turn(session))
        do(lambda session=session: report(session))


if __name__ == "__main__":
    main(*sys.argv[1:])
