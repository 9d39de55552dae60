"""Run as a process of its own: appends to one session and compacts it, and says what was acknowledged.

Usage: python writer.py STORE NAME SECONDS
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fire.words import Appended, Compacted, Complaint, say
from holdfast import SessionService, SlidingWindow, always, check, open_store
from holdfast.view import Plan, Request, Skip
from judge import judge

SESSION = "s"
FORMAT = "openai-chat"
PAUSES = (0.0, 0.0, 0.004, 0.02)
"""How long a plan takes: planning is fast, and a race is lost only by one who plans while the other writes."""
MODES = ("skip", "skip", "rebase")
WORDS = {2: 40, 40: 40, 600: 20, 200_000: 1}
"""How long messages are, and how often: a very long one can be torn in the middle."""


class SlowWindow:
    """A window that takes its time, and signs its plan so that the log tells whose it was."""

    def __init__(self, max_events: int, label: str, pause: float) -> None:
        self._window = SlidingWindow(max_events)
        self._label = label
        self._pause = pause

    def __call__(self, request: Request) -> Plan | Skip:
        plan = self._window(request)
        time.sleep(self._pause)
        return plan if isinstance(plan, Skip) else msgspec.structs.replace(plan, by=self._label)


def turn(name: str, chance: random.Random) -> Iterator[Any]:
    """The user asks, the assistant calls one or two tools, both answer at once, and it speaks."""
    said = "words " * chance.choices(list(WORDS), list(WORDS.values()))[0]
    yield {"role": "user", "content": f"{name} asks: {said}"}
    calls = [f"{name}-call{place}" for place in range(chance.randint(0, 2))]
    if calls:
        function = {"name": "look", "arguments": '{"at": "it"}'}
        asked = [{"id": call, "type": "function", "function": function} for call in calls]
        yield {"role": "assistant", "content": None, "tool_calls": asked}
        yield [{"role": "tool", "tool_call_id": call, "content": f"{call} found {said}"} for call in calls]
    yield {"role": "assistant", "content": f"{name} says: {said}"}


def complaints(messages: list[dict[str, Any]]) -> list[str]:
    """What our own check and a referee that does not know our library hold against a context.

    No two messages of these trials say the same, but for the answers to calls that were interrupted.
    """
    said = Counter(message["content"] for message in messages if message["content"] and message["role"] != "tool")
    doubled = [f"shown {times} times: {text[:40]!r}" for text, times in said.items() if times > 1]
    return [*map(str, check(messages, FORMAT)), *judge(messages, FORMAT), *doubled]


async def work(service: SessionService, name: str, seconds: float) -> None:
    chance, end = random.Random(name), time.monotonic() + seconds
    for number in count():
        if time.monotonic() > end:
            return
        label = f"{name}-{number}"
        for place, message in enumerate(turn(label, chance)):
            events = await service.append(SESSION, message, id=f"{label}-{place}")
            say(Appended([event.id for event in events], [event.seq for event in events]))
        mode = chance.choice(MODES)
        window = SlowWindow(chance.randint(2, 9), label, chance.choice(PAUSES))
        result = await service.compact(SESSION, always, window, mode)  # type: ignore[arg-type]
        assert result.version is not None
        say(Compacted(label, result.outcome, result.version, mode))
        context = await service.context(SESSION)
        for text in complaints(list(result.messages)) + complaints(context.messages):
            say(Complaint(f"{label}: {text}"))


async def main(store: str, name: str, seconds: str) -> None:
    async with SessionService(open_store(store), estimator="chars/4") as service:
        await work(service, name, float(seconds))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
