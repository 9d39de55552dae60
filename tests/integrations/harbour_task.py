"""The task of every framework: eighty tool calls, in a window that holds half of them.

The model is played by `HarbourModel`, which knows only what a request has: a task that is no longer in the prompt is a
task that it cannot finish, and what it has read is what the prompt still says about it.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from tests.clients.upstream import ClientUpstream
from tests.providers import Answer, Call, Request, Say

DEEPEST = 2
SEAL = "ORLOP-4711"
SYSTEM = "You are the clerk of a harbour. Use the tools."


class HarbourTask(NamedTuple):
    """How many logs there are to read, and the tokens of the model's window."""

    logs: int
    window: int

    @property
    def prompt(self) -> str:
        return (
            f"Read all the {self.logs} harbour logs with read_log, in order, starting at number one. After the last, "
            f"answer with the deepest berth, its depth, and the seal word {SEAL}."
        )


WHOLE = HarbourTask(80, 16_000)
SMALL = HarbourTask(17, 6_000)
"""For tests, which run it several times in each framework."""
ANSWER = f"Deepest is berth {DEEPEST} with 97 feet. Seal: {SEAL}."
LOST = "There is no task to do."
ENDLESS = "This takes too many requests."
_TASK = re.compile(r"deepest berth, its depth, and the seal word (ORLOP-\d+)")
_DEPTH = re.compile(r"berth (\d+) (?:with|has) (\d+) feet")
_READ = re.compile(r"Log (\d+) of the harbour|read up to log (\d+)", re.IGNORECASE)
_HEADING = re.compile(r"^#{2,3} [A-Z][\w &]+$", re.MULTILINE)
_SUMMARY = re.compile(
    r"summar(?:y|ies|i[sz]\w+)\b.{0,60}\b(?:conversation|history|messages|context|above)|extract the highest quality",
    re.IGNORECASE | re.DOTALL,
)


def read_log(number: int) -> str:
    """Reads one log of the harbour."""
    depth = 97 if number == DEEPEST else 20 + number % 50
    ships = (f"{hour:02}: ship {number * 100 + hour} asked for a pilot and left with the ebb." for hour in range(24))
    return "\n".join([f"Log {number} of the harbour: berth {number} has {depth} feet.", *ships])


class HarbourModel:
    """Plays the model: reads the next log until all are read, sometimes two at once, then answers."""

    def __init__(self, task: HarbourTask = SMALL) -> None:
        self.task = task
        self.summaries = 0
        """Requests for a summary."""
        self.lost = 0
        """Requests without the task."""
        self.requests = 0
        self.calls = 0

    def __call__(self, request: Request) -> Answer:
        self.requests += 1
        text = _all_text(request)
        if self.requests > 3 * self.task.logs:
            return ENDLESS
        if "read_log" not in json.dumps(request.body.get("tools") or []) or _SUMMARY.search(_newest_text(request)):
            self.summaries += 1
            return _summary(text)
        if (task := _TASK.search(text)) is None:
            self.lost += 1
            return LOST
        number, (depth, berth) = _progress(text)
        if number >= self.task.logs:
            return f"Deepest is berth {berth} with {depth} feet. Seal: {task[1]}."
        note = (
            f"I have read up to log {number}. Deepest so far: berth {berth} with {depth} feet."
            if number
            else "I begin."
        )
        wanted = [number + 1, number + 2] if number % 10 == 4 else [number + 1]
        self.calls += len(wanted)
        return Say(note, calls=tuple(Call("read_log", {"number": one}) for one in wanted))


class Harbour(ClientUpstream):
    """A strict provider whose model does the task; use it in a `with` block."""

    def __init__(self, task: HarbourTask = SMALL, window: int | None = None) -> None:
        self.task = task
        self.model = HarbourModel(task)
        super().__init__(self.model, window=window or task.window)


def _summary(text: str) -> str:
    """Returns an honest summary: the task, if the request has it, and the progress; with headings, if asked for."""
    task = _TASK.search(text)
    number, (depth, berth) = _progress(text)
    about = f"The user wants all logs read with read_log, then the {task[0]}." if task else "The task is unknown."
    summary = f"{about} I have read up to log {number}. Deepest so far: berth {berth} with {depth} feet."
    return "\n".join(f"{heading}\n{summary}" for heading in dict.fromkeys(_HEADING.findall(text))) or summary


def _progress(text: str) -> tuple[int, tuple[int, int]]:
    """Returns the number of the last log that was read, and the greatest depth so far with its berth."""
    number = max((int(one or two) for one, two in _READ.findall(text)), default=0)
    return number, max(((int(depth), int(berth)) for berth, depth in _DEPTH.findall(text)), default=(0, 0))


def _messages(request: Request) -> list[Any]:
    given = next(filter(None, (request.body.get(field) for field in ("messages", "input", "contents"))), [])
    return given if isinstance(given, list) else [given]


def _all_text(request: Request) -> str:
    return json.dumps(_messages(request), ensure_ascii=False).replace("\\n", "\n")


def _newest_text(request: Request) -> str:
    """Returns the last message if it is the user's."""
    last = [m for m in _messages(request)[-1:] if not isinstance(m, dict) or m.get("role") == "user"]
    return json.dumps(last, ensure_ascii=False)
