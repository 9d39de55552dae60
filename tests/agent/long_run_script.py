"""Script for a provider server: the model's replies in a long task, step by step."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path

from providers import Answer, Call, Request, Say

BERTHS = 40
SUMMARY = """\
## Completed Work
| File | Action | Description |
|---|---|---|
| berth_0.txt | Edited | the depths of the berths are being repaired one by one |
## Current State
- Working on: the berths, in their order
## Pending Work
- [ ] the rest of the berths
"""


class LongRunScript:
    """Returns the model's next reply for each request. Injected faults do not count as steps.

    The same request gets the same reply again: on a busy machine a client may give up on one and ask once more.
    """

    def __init__(
        self, steps: int, faults: Callable[[int, Request], Answer | None] = lambda number, request: None
    ) -> None:
        self.steps = steps
        self.done = 0
        self.summaries = 0
        self.asked = 0
        self._faults = faults
        self._replies: dict[str, Say] = {}
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            self.asked += 1
            fault = self._faults(self.asked, request)
            if fault is not None:
                return fault
            if "tools" not in request.body:
                self.summaries += 1
                return SUMMARY
            asked = json.dumps(request.body, sort_keys=True)
            if asked not in self._replies:
                if self.done == self.steps:
                    return "All berths are repaired."
                self.done += 1
                self._replies = {asked: self._step(self.done)}
            return self._replies[asked]

    def _step(self, number: int) -> Say:
        berth = f"berth_{number % BERTHS}.txt"
        if number % 4 == 0:
            times = -(-number // BERTHS)
            old, new = f"repaired {times - 1} times", f"repaired {times} times"
            return Say(
                f"Step {number}: I repair {berth}.", calls=(Call("edit_file", {"path": berth, "old": old, "new": new}),)
            )
        if number % 10 == 3:
            return Say(
                calls=(Call("search_files", {"text": "depth 7", "pattern": berth}), Call("read_file", {"path": berth}))
            )
        return Say(f"Step {number}.", calls=(Call("read_file", {"path": berth}),))


def write_berth_files(folder: Path) -> None:
    for number in range(BERTHS):
        lines = [f"line {line}: depth {line * 7 + number} cm, moored since spring" for line in range(60 + number)]
        (folder / f"berth_{number}.txt").write_text("\n".join(["repaired 0 times", *lines]) + "\n")


def count_repairs(folder: Path) -> dict[int, int]:
    """Returns how often each berth was repaired, as its file says."""
    found = {}
    for number in range(BERTHS):
        text = (folder / f"berth_{number}.txt").read_text()
        found[number] = int(re.match(r"repaired (\d+) times", text)[1])  # type: ignore[index]
    return found
