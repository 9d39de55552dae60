"""Run as a separate process: appends to one session, compacts it, and reports acknowledged operations.

Usage: python writer.py STORE NAME SECONDS [FILE], until the file exists
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from holdfast import SessionService, SlidingWindow, check, open_store
from holdfast.context import Plan, Request, Skip
from holdfast.triggers import always
from judge import judge
from stress.replay import Labelled
from stress.reports import Appended, Compacted, Complaint, report

SESSION = "s"
FORMAT = "openai-chat"
PAUSES = (0.0, 0.0, 0.004, 0.02)
"""Seconds that planning takes: a race is lost only while the other process writes during planning."""
MODES = ("skip", "skip", "rebase")
WORDS = {2: 40, 40: 40, 600: 20, 200_000: 1}
"""Message lengths in words and their weights: a very long one can be torn in the middle."""


class SlowWindow(Labelled):
    """A sliding window with a pause, so that other writers are faster."""

    def __init__(self, max_events: int, label: str, mode: str, pause: float) -> None:
        super().__init__(SlidingWindow(max_events), label, mode)
        self._pause = pause

    def __call__(self, request: Request) -> Plan | Skip:
        plan = super().__call__(request)
        time.sleep(self._pause)
        return plan


def turn(name: str, chance: random.Random) -> Iterator[Any]:
    """Yields a user message, up to two tool calls with their results, and an assistant message."""
    text = "words " * chance.choices(list(WORDS), list(WORDS.values()))[0]
    yield {"role": "user", "content": f"{name} asks: {text}"}
    calls = [f"{name}-call{place}" for place in range(chance.randint(0, 2))]
    if calls:
        function = {"name": "look", "arguments": '{"at": "it"}'}
        tool_calls = [{"id": call, "type": "function", "function": function} for call in calls]
        yield {"role": "assistant", "content": None, "tool_calls": tool_calls}
        yield [{"role": "tool", "tool_call_id": call, "content": f"{call} found {text}"} for call in calls]
    yield {"role": "assistant", "content": f"{name} says: {text}"}


def complaints(messages: list[dict[str, Any]]) -> list[str]:
    """Violations found in a context by our own check and by a validator independent of the library.

    No two messages of these tests are equal, except the results of interrupted calls.
    """
    contents = Counter(message["content"] for message in messages if message["content"] and message["role"] != "tool")
    doubled = [f"shown {times} times: {text[:40]!r}" for text, times in contents.items() if times > 1]
    return [*map(str, check(messages, FORMAT)), *judge(messages, FORMAT), *doubled]


async def work(service: SessionService, name: str, seconds: float, stop: str) -> None:
    chance, end = random.Random(name), time.monotonic() + seconds
    for number in count():
        if time.monotonic() > end or (stop and os.path.exists(stop)):  # noqa: ASYNC240 - as quick as it gets
            return
        label = f"{name}-{number}"
        for place, message in enumerate(turn(label, chance)):
            events = await service.append(SESSION, message, id=f"{label}-{place}")
            report(Appended([event.id for event in events], [event.seq for event in events]))
        mode = chance.choice(MODES)
        window = SlowWindow(chance.randint(2, 9), label, mode, chance.choice(PAUSES))
        result = await service.compact(SESSION, always, window, mode)  # type: ignore[arg-type]
        assert result.version is not None
        report(Compacted(label, result.outcome, result.version, mode))
        context = await service.context(SESSION)
        for text in complaints(list(result.messages)) + complaints(context.messages):
            report(Complaint(f"{label}: {text}"))


async def main(store: str, name: str, seconds: str, stop: str = "") -> None:
    async with SessionService(open_store(store), estimator="chars/4") as service:
        await work(service, name, float(seconds), stop)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
