"""The agent's plan or to-do list: tracked through its calls, rendered for a page, and parsed from one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .tool_calls import ToolAction, is_dropped, is_finished

_NUMBER = re.compile(r"[0-9]{1,6}")
_NUMBERED_STEP = re.compile(rf"#({_NUMBER.pattern}) ")
_STEP_LINE = re.compile(r"- (.*) \(([\w-]+)\)$")
_DONE, _DROPPED = "Done: ", "Dropped: "
Step = tuple[str, str]
"""A step with its status."""


class PlanTracker:
    """The current plan: steps with their status.

    Steps that were added one by one have their number before them: the agent changes their status by it.
    """

    def __init__(
        self, steps: Iterable[Step] = (), place: int = 0, counted: int = 0, *, from_page: bool = False
    ) -> None:
        self.steps = list(steps)
        self.place = place
        """Number of the message that last changed the plan."""
        self._counted = counted if self.steps else 0
        """Up to this message, a page that shows the plan counts every change."""
        self.from_page = from_page
        """Whether the steps were parsed from a page: then the positions of steps without a number are unknown."""
        self._positions = {number: at for at, (step, _) in enumerate(self.steps) if (number := _step_number(step))}
        """Index of each numbered step."""
        self._last_number = max(self._positions, default=0)

    def update(self, action: ToolAction, place: int) -> bool:
        """Applies a new plan, an added step or a changed status; returns False if the call concerns no known step."""
        if place <= self._counted:
            return action.kind in ("plan", "step", "progress")
        if action.kind == "plan":
            self.steps, self.from_page = list(action.plan), False
            self._positions, self._last_number = {}, 0
        elif action.kind == "step":
            for step, status in action.plan:
                self._last_number += 1
                self._positions[self._last_number] = len(self.steps)
                self.steps.append((f"#{self._last_number} {step}", status))
        elif action.kind != "progress" or not self._set_status(*action.plan[0]):
            return False
        self.place = place
        return True

    def _set_status(self, number: str, status: str) -> bool:
        if not _NUMBER.fullmatch(number):
            return False
        at = self._positions.get(int(number), -1 if self.from_page else int(number) - 1)
        if not 0 <= at < len(self.steps):
            return False
        self.steps[at] = (self.steps[at][0], status)
        return True


def _step_number(step: str) -> int:
    """Returns the number before a step, 0 if it has none."""
    found = _NUMBERED_STEP.match(step)
    return int(found[1]) if found else 0


def without_step_number(step: str) -> str:
    """Returns a step without the number before it."""
    return _NUMBERED_STEP.sub("", step, count=1)


def plan_lines(steps: Iterable[Step]) -> list[str]:
    """Renders the open steps, a line each, and those that were done or given up."""
    steps = list(steps)
    lines = [f"- {step} ({status})" for step, status in steps if not is_finished(status)]
    lines = lines or ["- nothing: every step of the plan is done"]
    for title, dropped in ((_DONE, False), (_DROPPED, True)):
        if ended := [step for step, status in steps if is_finished(status) and is_dropped(status) == dropped]:
            lines.append(f"{title}{'; '.join(ended)}")
    return lines


def parse_plan_lines(lines: Iterable[str]) -> Iterator[Step]:
    """Yields the steps that `plan_lines` rendered."""
    for line in lines:
        if step := _STEP_LINE.match(line):
            yield step[1], step[2]
        for title, status in ((_DONE, "completed"), (_DROPPED, "cancelled")):
            if line.startswith(title):
                yield from ((one, status) for one in line.removeprefix(title).split("; "))
