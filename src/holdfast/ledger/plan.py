"""The plan: the agent's to-do list, tracked through its calls, and the plan that the user approved.

An approved plan is proposed by a tool's call, by a file that is written for it, or by a reply with a numbered list; it
is approved by the call's result or by the user's next words, and stands whole until it is done or replaced.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from ..messages import ToolCall, ToolResult
from .lines import LedgerLine
from .shell_files import FileChange
from .tool_calls import ToolAction, is_dropped, is_finished

_NUMBER = re.compile(r"[0-9]{1,6}")
_NUMBERED_STEP = re.compile(rf"#({_NUMBER.pattern}) ")
_STEP_LINE = re.compile(r"- (.*) \(([\w-]+)\)$")
_DONE, _DROPPED = "Done: ", "Dropped: "
Step = tuple[str, str]
"""A step with its status."""
_TOOL = re.compile(r"(?i)exit_?plan|plan_?(?:mode_?)?(?:exit|respond)|(?:submit|propose|present)_?plan")
"""Names of tools that propose a plan; others do by a text of several lines in the argument `plan`."""
_FILE = re.compile(r"(?i)(?:^|[/_.-])plans?(?:[/_.-][^/]*|/.*)?\.(?:md|txt)$")
_APPROVED = re.compile(r"(?i)\bapproved\b")
_NOT_APPROVED = re.compile(
    r"(?i)(?:\b(?:not|never|before|until|once|if)|n't) (?:\w+ ){0,3}approved\b|\b(?:rejected|declined)\b"
)
_ANSWER_CHARS, _MAX_GO_CHARS = 400, 80
_APPROVED_TEXT = re.compile(r"\n## Approved Plan[^\n]*:\s*\n")
"""In a result, precedes the plan as the user left it."""
_PROPOSED = re.compile(r"<proposed_plan>\s*(.*?)\s*</proposed_plan>", re.DOTALL)
_IMPLEMENT = re.compile(r"(?i)\s*(?:please )?implement (?:the following|this|the approved) plan:\s*\n")
"""Begins a request that hands an approved plan to a new conversation."""
_GO = re.compile(
    r"(?i)(?:(?:(?P<yes>ok(?:ay)?|yes|yep|yeah|sure|great|perfect|good|fine|looks good(?: to me)?|lgtm|sounds good"
    r"|approved?|agreed|go(?: ahead| for it)?|proceed|do (?:it|that|this|so|all of it)|start|ship it|make it so"
    r"|implement (?:it|this|that|the plan)|let'?s (?:go|do it)"
    r"|ja|genau|los(?: geht'?s)?|leg los|mach (?:das|es)(?: so)?|passt|gut|einverstanden"
    r"|oui|vas-y|allez-y|d'accord|parfait|c'est bon|sí|si|vale|adelante|hazlo|de acuerdo|perfecto|да|давай|хорошо)"
    r"|with (?:it|that|this)|and|then|now|please|bitte)\b"
    r"|(?P<wide>好的?|可以|开始吧?|同意|批准|没问题|就这样|はい|お願いします|了解|좋아요?|네|진행해))[\s,.!;:。，！、—-]*+"
)
_NUMBERED = re.compile(r"(?m)^[ \t>*#]*\d{1,2}[.)][ \t*]")
_ITEM = re.compile(r"\s*(?:[-*+] (?!\[[xX]\])|\d+[.)] |#{1,6} )")
_MARKS = re.compile(r"^[\s>*+#-]*(?:\[ \] |\d+[.)] )?[\s*]*")
_MIN_STEPS = 3
_MAX_PLAN_CHARS = 60_000


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
        found = ((_NUMBERED_STEP.match(step), at) for at, (step, _) in enumerate(self.steps))
        self._positions = {int(number[1]): at for number, at in found if number}
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


class ApprovalTracker:
    """Follows what was proposed to what the user approved. An approval replaces the plan that stood before."""

    def __init__(self, approved: LedgerLine | None = None) -> None:
        self.approved = approved
        self._waiting: dict[str, LedgerLine] = {}
        """Proposals by calls without a result yet."""
        self._file = "", LedgerLine("", "wrote", "", 0, 0, 0)
        """The plan file written last, by its path."""
        self._proposal: LedgerLine | None = None
        """What the user's next words can approve."""

    def read_call(self, call: ToolCall, place: int) -> None:
        """Notes a plan that this call proposes; without a text of its own it is that of the file written last.

        A reply before a call was no proposal: the agent did not wait for an answer.
        """
        if self._proposal is not self._file[1]:
            self._proposal = None
        given = call.arguments_dict.get("plan")
        if isinstance(given, str) and "\n" in given.strip():
            self._waiting[call.id] = _plan_line(given, place)
        elif _TOOL.search(call.name):
            self._waiting[call.id] = self._file[1]

    def read_change(self, change: FileChange, place: int) -> None:
        """Notes a plan file that was written, and what is later changed in it."""
        path, plan = self._file
        if change.kind == "whole" and _FILE.search(change.path):
            self._file = change.path, _plan_line(change.new, place)
        elif change.path == path and change.kind == "part" and change.old in plan.text:
            self._file = path, _plan_line(plan.text.replace(change.old, change.new, 1), place)
        else:
            return
        self._proposal = self._file[1]

    def read_result(self, result: ToolResult, place: int) -> None:
        """Approves the plan of a call if its result says so."""
        plan = self._waiting.pop(result.call_id, None)
        if plan is None or result.is_error:
            return
        opening = result.text[:_ANSWER_CHARS]
        if _APPROVED.search(opening) and not _NOT_APPROVED.search(opening):
            left = _APPROVED_TEXT.split(result.text, maxsplit=1)[1:]
            self._approve(_plan_line(left[0], place) if left else plan)

    def read_reply(self, text: str, place: int) -> None:
        """Notes the plan that a reply proposes; a file that was written for it says more than a list in the reply."""
        if marked := _PROPOSED.search(text):
            self._proposal = _plan_line(marked[1], place)
        elif self._proposal is not self._file[1]:
            self._proposal = _plan_line(text, place) if len(_NUMBERED.findall(text)) >= _MIN_STEPS else None

    def read_user_text(self, text: str, place: int) -> None:
        """Approves what was just proposed if this is an approval and nothing else."""
        proposal, self._proposal = self._proposal, None
        if given := _IMPLEMENT.match(text):
            self._approve(_plan_line(text[given.end() :], place))
        elif proposal is not None and _is_go(text):
            self._approve(proposal)

    def _approve(self, plan: LedgerLine) -> None:
        self.approved = plan if plan.text else self.approved


def _plan_line(text: str, place: int) -> LedgerLine:
    return LedgerLine(text.strip()[:_MAX_PLAN_CHARS], "said", "", place, 0, 0)


def _is_go(text: str) -> bool:
    """Whether a text approves and says nothing else."""
    text = text.strip(" \t\n\"'`*")
    at, approves = 0, False
    while 0 < len(text) <= _MAX_GO_CHARS and (found := _GO.match(text, at)):
        at, approves = found.end(), approves or found.lastgroup is not None
        if at == len(text):
            return approves
    return False


def open_items(text: str, finished: Collection[str]) -> list[str]:
    """Returns the headings and list items of a plan, without those that are checked or finished."""
    ended = {_bare(step) for step in finished}
    return [line.rstrip() for line in text.splitlines() if _ITEM.match(line) and _bare(line) not in ended]


def _bare(item: str) -> str:
    """Returns an item without its marks, to compare it with a step of a to-do list."""
    return _MARKS.sub("", item).strip(" *.").lower()
