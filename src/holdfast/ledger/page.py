"""A ledger written out: a page that a person or a model reads in a minute before going on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby, islice

from .bounds import within
from .choose import Candidate, Choice, candidates
from .deeds import is_finished
from .entries import Command
from .folders import base_name, by_folder, by_name, from_root, told_apart
from .headings import AGAIN, ALSO, AT_HAND, ATTACHED, CALLS, COMMANDS, DONE, ERRORS, FILES, GROUP, PLAN, TASK, UNTOLD
from .learned import near
from .line_worth import line_worth
from .lines import Line
from .name_worth import name_worth
from .names import names_in
from .notebook import Notebook
from .shortening import BRIEF, CITED, READABLE, abridged, fitting, quoted
from .speakers import task_in

_TASK, _PLAN, _CALLS, _ERRORS, _COMMANDS, _FILES = 0.10, 0.05, 0.04, 0.16, 0.04, 0.12
"""What part of the room each section may take; what one leaves, the lines have."""
_LAST_ERRORS, _LAST_RUN = 10, 3
_HEADING = 100
_CROWDED = 50
"""A line of more words than this tells nobody what a name in it is for."""
_SAMPLED, _LEAST_SAMPLE = 3, 1_000
"""Characters for each token of a page, and for the shortest."""
TITLES = 120
"""Room for the titles of the last two sections."""
_LEAST_POOL = 800
"""Lines to choose among, however short the room; of the many more that there are, few would ever be chosen."""
Said = tuple[int, str]
"""A message's number, and words from it."""
Part = tuple[int, int]
"""A message's number, and which of its parts."""


class Writer:
    """All about one history that does not depend on how much room a page has exactly.

    `room` is about how many tokens: the fewer, the nearer are the lines that may be on it to be edited.
    """

    def __init__(self, notebook: Notebook, cite: Callable[[int], str], room: int) -> None:
        self.notebook = notebook
        self.worth = name_worth(notebook)
        self._cite = cite
        self._alike = by_name(notebook.files)
        self._titles: dict[str, str] = {}
        ran = [Line(ran.text, "asked", COMMANDS, ran.place, 0, ran.time) for ran in notebook.commands.values()]
        lines = [*notebook.lines.values(), *ran]
        self._candidates = candidates(lines, notebook.named, self.worth, line_worth(notebook, self.worth, room))

    def sample(self, tokens: int) -> str:
        """About the lines that a page of so many tokens may hold, to be measured."""
        texts = (one.line.text for one in self._candidates)
        return "\n".join(within(((text, text) for text in texts), max(_LEAST_SAMPLE, _SAMPLED * tokens)))

    def rest(self, room: int, known: str, staying: Collection[int]) -> str:
        """What a summary in other words leaves out: errors, files, commands and lines, within so many characters."""
        wrong = self.last_errors(room, known)
        fixed, in_files = [*self.errors(wrong), *self.files(room, staying)], of_files(wrong)
        again = self.run_again(room, known)
        left = room - sum(len(section) + 2 for section in fixed) - sum(len(text) + CITED for text in again) - TITLES
        left -= sum(len(line.text) + CITED for line in in_files)
        known = "\n".join([known, *fixed, *again, *(line.text for line in in_files)])
        chosen = [*in_files, *self.choice(left, known, staying, (), in_files).within(left)]
        again += [line.text for line in chosen if line.source == COMMANDS]
        fixed += [*self.commands(again), *self.at_hand([line for line in chosen if line.source != COMMANDS])]
        return "\n\n".join(fixed)

    def choice(
        self, room: int, known: str, staying: Collection[int], cut_short: Collection[Part], beside: Iterable[Line]
    ) -> Choice:
        """The lines for so much room, by what they add to what is known anyway, and `beside` others."""
        here = set(map(str.strip, known.splitlines()))
        covered = {name for line in here if line.count(" ") < _CROWDED for name in names_in(line)}

        def is_open(one: Candidate) -> bool:
            line = one.line
            if line.voice == "name":
                return line.place not in staying
            return (line.place not in staying or part_of(line) in cut_short) and line.text.strip() not in here

        def heading(line: Line) -> tuple[str, int]:
            if (part := part_of(line)) in cut_short:
                return f"{part}", 0
            if line.source == COMMANDS:
                return COMMANDS, 0
            if line.voice in ("said", "user"):
                return f"{line.voice} {line.place}", CITED
            return (title := self._title(line)), len(title) + len(GROUP) + CITED

        pool = islice(filter(is_open, self._candidates), _LEAST_POOL + max(0, room) // 16)
        opened = {heading(line)[0] for line in beside}
        return Choice(pool, self.notebook.named, self.worth, covered=covered, heading=heading, opened=opened)

    # -- sections -----------------------------------------------------------------------------------

    def task(self, room: int, staying: Collection[int]) -> list[str]:
        task = task_in(self.notebook.users)
        if task is None or task.place in staying:
            return []
        return [
            f"{TASK} {self._cite(task.place)}\n{abridged(task.text, min(room // 2, max(READABLE, int(room * _TASK))))}"
        ]

    def plan(self, room: int) -> list[str]:
        steps = self.notebook.steps.all
        if not steps:
            return []
        lines = [f"- {what} ({status})" for what, status in steps if not is_finished(status)]
        lines = lines or ["- nothing: every step of the plan is done"]
        if done := [what for what, status in steps if is_finished(status)]:
            lines.append(f"{DONE}{'; '.join(done)}")
        place = self.notebook.steps.place
        return ["\n".join([f"{PLAN} {self._cite(place)}" if place else PLAN, *fitting(lines, int(room * _PLAN))])]

    def calls(self, room: int, staying: Collection[int]) -> list[str]:
        """What was done already about the user's last wish: it must not be done twice."""
        done = archived(self.notebook.calls, staying)
        kept = fitting((f"{self._cite(line.place)} {line.text}" for line in reversed(done)), int(room * _CALLS))
        left = self.notebook.calls_untold + len(done) - len(kept)
        more = [f"{UNTOLD}{left:,} earlier)"] if left else []
        return ["\n".join([CALLS, *more, *reversed(kept)])] if done else []

    def last_errors(self, room: int, visible: str) -> list[Line]:
        """The last lines that tell of errors; of those that something printed when it ran, some more."""
        hidden = [line for said, line in self.notebook.errors.items() if said not in visible]
        last = hidden[-_LAST_ERRORS:]
        ran = [line for line in hidden[:-_LAST_ERRORS] if line.voice != "file"]
        kept = within(((line.text, line) for line in reversed([*ran[-_LAST_RUN:], *last])), int(room * _ERRORS))
        return kept[::-1]

    def errors(self, lines: Iterable[Line]) -> list[str]:
        """Those that something printed when it ran, and whether it ran again since."""
        ran = [line for line in lines if line.voice != "file"]
        groups = groupby(ran, key=lambda line: (line.source, line.place))
        told = [f"{self._run(*run)}\n" + "\n".join(quoted(line.text) for line in group) for run, group in groups]
        return ["\n".join([ERRORS, *told])] if told else []

    def _run(self, source: str, place: int) -> str:
        command = self.notebook.commands.get(source)
        again = f"{AGAIN}{self._cite(command.place)})" if command and command.place > place else ""
        return f"{self._cite(place)}{again}"

    def files(self, room: int, staying: Collection[int]) -> list[str]:
        """Every file, and what was attached (P12)."""
        room = int(room * _FILES)
        lines = by_folder(self.notebook.files.values())
        if sum(map(len, lines)) + len(lines) > room:
            lines = from_root(lines, room // 3)
        attached = archived(self.notebook.attached, staying)
        lines += [f"{ATTACHED}{line.text} {self._cite(line.place)}" for line in reversed(attached)]
        return ["\n".join([FILES, *map(quoted, fitting(lines, room))])] if lines else []

    def run_again(self, room: int, visible: str) -> list[str]:
        """The commands that are most likely to be run again."""
        ranked = sorted(self.notebook.commands.values(), key=lambda command: -_rerun(command, self.notebook.time))
        hidden = (command.text for command in ranked if command.text not in visible)
        return fitting((text for text in hidden if len(text) <= 2 * BRIEF), int(room * _COMMANDS))

    def commands(self, texts: Iterable[str]) -> list[str]:
        ran = sorted((self.notebook.commands[text] for text in texts), key=lambda command: command.time)
        return ["\n".join([COMMANDS, *(quoted(f"{command.text}{_runs(command)}") for command in ran)])] if ran else []

    def told(self, title: str, said: Iterable[Said], before: Sequence[str] = ()) -> list[str]:
        """What was said, in its order, each message under its number."""
        messages = groupby(sorted(said, key=lambda one: one[0]), key=lambda one: one[0])
        lines = [f"{self._cite(place)} " + "\n".join(text for _, text in told) for place, told in messages]
        return ["\n".join([title, *before, *lines])] if before or lines else []

    def untold(self, said: Sequence[Line], told: Iterable[Said]) -> list[str]:
        """How many of the user's messages there was no room for, and where they are."""
        shown = {place for place, _ in told}
        left = [line.place for line in said if line.place not in shown]
        count, first = self.notebook.untold + len(left), self.notebook.untold_from or min(left, default=0)
        return [f"{UNTOLD}{count:,} earlier, from {self._cite(first)} on)"] if count else []

    def at_hand(self, chosen: Sequence[Line]) -> list[str]:
        """Lines under the file or the command they came from, the newest last."""
        groups: dict[str, list[Line]] = {}
        for line in in_order(chosen):
            groups.setdefault(self._title(line), []).append(line)
        told = [self._group(lines) for lines in sorted(groups.values(), key=lambda lines: lines[-1].place)]
        return [AT_HAND, *told] if told else []

    def _group(self, lines: Sequence[Line]) -> str:
        """Lines of one source, under its title and the messages they stand in."""
        cited = " ".join(dict.fromkeys(self._cite(line.place) for line in lines))
        return "\n".join([f"{GROUP}{self._title(lines[0])} {cited}", *_listed(lines)])

    def _title(self, line: Line) -> str:
        """What a group of lines is headed: a file's name, a command, a search."""
        found = self._titles.get(line.source)
        if found is None:
            found = self._titles[line.source] = self._titled(line.source)
        return found

    def _titled(self, source: str) -> str:
        if source in self.notebook.files:
            return told_apart(source, self._alike[base_name(source)])
        title = " ".join(source.split()) or "tool output"
        return title if len(title) <= _HEADING else (title[:_HEADING].rpartition(" ")[0] or "tool output") + " …"


def part_of(line: Line) -> Part:
    return line.place, line.part


def in_order(lines: Iterable[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: (line.place, line.part, line.number))


def of_files(lines: Iterable[Line]) -> list[Line]:
    return [line for line in lines if line.voice == "file"]


def archived(lines: Iterable[Line], staying: Collection[int]) -> list[Line]:
    return [line for line in lines if line.place not in staying]


def _listed(lines: Sequence[Line]) -> Iterator[str]:
    """Lines as they stand, then the names that are told without one."""
    names = [line.text for line in lines if line.voice == "name"]
    yield from (quoted(line.text) for line in lines if line.voice != "name")
    if names:
        yield ALSO + ", ".join(names)


def _rerun(command: Command, now: int) -> float:
    """How likely a command is run again: often run, lately run, short."""
    return 2 * min(command.runs, 4) + near(now - command.time, 10) - len(command.text) / 60


def _runs(command: Command) -> str:
    said = [f"{command.runs}×"] if command.runs > 1 else []
    said += ["failed"] if command.failed else []
    return f"  ({', '.join(said)})" if said else ""
