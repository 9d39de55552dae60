"""Renders the sections of a ledger's page, and selects the lines for them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import groupby, islice

from ..context.references import citation
from . import headings
from .commands import core_command, ran_in_one_folder, rerun_score, run_status
from .entries import CommandRecord, FileRecord, take_within
from .extract import HistoryExtractor
from .files import (
    abbreviate_root,
    base_name,
    group_by_base_name,
    is_path,
    list_by_folder,
    parse_file_list,
    shortest_unique_path,
)
from .lines import LedgerLine, find_constraints, find_task
from .names import find_exact_names, find_names
from .plan import open_items, plan_lines, without_step_number
from .scoring import LineScores, score_lines, score_names
from .select import Candidate, Selection, rank_candidates
from .text import (
    BRIEF_CHARS,
    CITATION_CHARS,
    READABLE_CHARS,
    clip_evenly,
    clip_for_page,
    lines_after_gap,
    quote_structure,
    take_fitting,
)
from .tool_calls import CUT_PATH, is_finished

_TASK_SHARE, _PLAN_SHARE, _CALLS_SHARE = 0.10, 0.05, 0.04
_ERRORS_SHARE, _COMMANDS_SHARE, _FILES_SHARE = 0.16, 0.04, 0.12
"""Largest share of the room for each section; the excerpts get what is left."""
_FOUND_SHARE, _FOUND_FROM_CHARS = 0.03, 12_000
"""Share of the room beyond so many characters for files that searches found: in less, lines to edit are worth more."""
USERS_SHARE, MAX_USERS_SHARE, CLOSINGS_SHARE, _STEPS_SHARE = 0.20, 0.30, 0.05, 0.12
"""Largest shares of the room for user messages, for user messages if none is left out then, for conclusions, and for
the last steps."""
_PLAN_MAX_SHARE = 0.8
"""Largest share of a page for an approved plan, where its share of the target is more."""
_MAX_LAST_ERRORS, _MAX_EARLIER_RUN_ERRORS = 10, 3
_MAX_TITLE_CHARS = 100
_MAX_COVERING_SPACES = 50
"""A name in a line of more words than this does not count as covered."""
_SAMPLE_CHARS_PER_TOKEN, _MIN_SAMPLE_CHARS = 3, 1_000
"""Sample size: characters per token of the page, and at least."""
HEADING_CHARS = 120
"""Room reserved for the headings of the last two sections."""
_MIN_POOL = 800
"""Smallest number of candidates considered; far more of them would hardly ever be selected."""
CitedText = tuple[int, str]
"""A message's number and text from it."""
PartKey = tuple[int, int]
"""A message's number and the index of one of its parts."""


class SectionRenderer:
    """Renders the sections of a page; holds the scores and candidates, which do not depend on the exact room.

    `room` is the approximate page size in tokens: a smaller page takes lines from a shorter part of the history.
    `approved_chars` is the room for an approved plan, by default a quarter of the page.
    """

    def __init__(self, history: HistoryExtractor, room: int, approved_chars: int | None = None) -> None:
        self.history = history
        self.name_scores = score_names(history)
        self._alike = group_by_base_name(history.files)
        self._source_title, self._error_source = cache(self._make_title), cache(self._make_error_source)
        self.important_lines = cache(_important_lines)
        self._room = room
        self._approved_chars = room if approved_chars is None else approved_chars  # a token has about four characters
        self._filled = [0]
        """Characters of the first candidates together, as far as they were needed."""

    @cached_property
    def line_scores(self) -> LineScores:
        return score_lines(self.history, self.name_scores, self._room)

    @cached_property
    def _candidates(self) -> list[Candidate]:
        commands = self.history.commands.values()
        ran = [LedgerLine(ran.text, "asked", headings.COMMANDS, ran.place, 0, ran.time) for ran in commands]
        lines = [*self.history.lines.values(), *ran]
        scores = self.line_scores
        return rank_candidates(
            lines, self.history.name_cache.__getitem__, self.name_scores, scores.edited, scores.reused
        )

    def price(self, room: int) -> float:
        """Returns the score of one more character where `room` characters are filled with the best candidates."""
        filled, candidates = self._filled, self._candidates
        while filled[-1] < room and len(filled) <= len(candidates):
            filled.append(filled[-1] + len(candidates[len(filled) - 1].line.text) + 1)
        place = max(0, bisect_left(filled, room) - 1)
        return candidates[place].density if place < len(candidates) else 0.0

    def fixed_size(self, room: int) -> int:
        """Returns the characters of all sections but the excerpts on a page of `room` characters."""
        users = clip_evenly(self.history.users[1:], int(room * USERS_SHARE), READABLE_CHARS)
        conclusions = clip_evenly(self.history.closings, int(room * CLOSINGS_SHARE), 2 * BRIEF_CHARS)
        sections = [
            *self.task(room, ()),
            *self.approved(room, ""),
            *self.plan(room),
            *self.calls(room, ()),
            *self.errors(self.recent_errors(room, "")),
            *self.files(room, ()),
            *self.found(room, ""),
            *self.steps(room, ()),
            *self.likely_commands(room, ""),
        ]
        return sum(len(text) + CITATION_CHARS for text in [*sections, *(text for _, text in users + conclusions)])

    def sample(self, tokens: int) -> str:
        """Returns text like that of a page of `tokens` tokens, to estimate characters per token."""
        texts = (one.line.text for one in self._candidates)
        return "\n".join(
            take_within(((text, text) for text in texts), max(_MIN_SAMPLE_CHARS, _SAMPLE_CHARS_PER_TOKEN * tokens))
        )

    def render_excerpts(self, room: int, known: str, staying: Collection[int]) -> str:
        """Renders errors, files, commands and excerpts to follow a model's summary, within `room` characters."""
        errors, commands = self.recent_errors(room, known), self.likely_commands(room, known)
        fixed, in_files = [*self.approved(room, known), *self.errors(errors)], only_file_lines(errors)
        fixed += self.files(room, staying, known)
        texts = [*commands, *(line.text for line in in_files)]
        left = room - HEADING_CHARS - sum(len(section) + 2 for section in fixed)
        left -= sum(len(text) + CITATION_CHARS for text in texts)
        selection = self.select(left, "\n".join([known, *fixed, *texts]), staying, (), in_files)
        selected = [*in_files, *selection.within(left)]
        commands += [line.text for line in selected if line.source == headings.COMMANDS]
        excerpts = self.excerpts([line for line in selected if line.source != headings.COMMANDS])
        return "\n\n".join([*fixed, *self.commands(commands), *excerpts])

    def select(
        self,
        room: int,
        known: str,
        staying: Collection[int],
        shortened: Collection[PartKey],
        listed: Iterable[LedgerLine],
    ) -> Selection:
        """Selects lines by what they add to the `known` text; the headings of `listed` lines are already paid for."""
        here = set(map(str.strip, known.splitlines()))
        covered = {name for line in here if line.count(" ") < _MAX_COVERING_SPACES for name in find_names(line)}

        def is_eligible(candidate: Candidate) -> bool:
            line = candidate.line
            if line.kind == "name":
                return line.place not in staying
            return (line.place not in staying or part_key(line) in shortened) and line.text.strip() not in here

        def heading(line: LedgerLine) -> tuple[str, int]:
            if (part := part_key(line)) in shortened:
                return f"{part}", 0
            if line.source == headings.COMMANDS:
                return headings.COMMANDS, 0
            if line.kind in ("said", "user"):
                return f"{line.kind} {line.place}", CITATION_CHARS
            return (title := self._title(line)), len(title) + len(headings.GROUP) + CITATION_CHARS

        pool = islice(filter(is_eligible, self._candidates), _MIN_POOL + max(0, room) // 16)
        opened = {heading(line)[0] for line in listed}
        return Selection(
            pool,
            self.history.name_cache.__getitem__,
            self.name_scores,
            covered=covered,
            heading=heading,
            opened=opened,
            known=known,
        )

    # -- sections -----------------------------------------------------------------------------------

    def task(self, room: int, staying: Collection[int]) -> list[str]:
        task = find_task(self.history.users)
        if task is None or task.place in staying:
            return []
        text = clip_for_page(task.text, min(room // 2, max(READABLE_CHARS, int(room * _TASK_SHARE))))
        return [f"{headings.TASK} {citation(task.place)}\n{text}"]

    def approved(self, room: int, visible: str) -> list[str]:
        """The plan that the user approved, verbatim if it fits; else its items that are not known to be done."""
        plan = self.history.approved_plan
        if plan is None or plan.text in visible or quote_structure(plan.text) in visible:
            return []
        most, text = min(self._approved_chars, int(room * _PLAN_MAX_SHARE)), plan.text
        if fits := len(text) <= most:
            title = headings.APPROVED if plan.whole else headings.APPROVED_ITEMS
        else:
            finished = [without_step_number(step) for step, status in self.history.plan.steps if is_finished(status)]
            hidden = (item for item in open_items(text, finished) if item not in visible)
            title, text = headings.APPROVED_ITEMS, "\n".join(take_fitting(hidden, most))
        return [f"{title} {citation(plan.place)}\n{quote_structure(text)}"] if fits or text else []

    def plan(self, room: int) -> list[str]:
        steps = self.history.plan.steps
        if not steps:
            return []
        place = self.history.plan.place
        lines = take_fitting(plan_lines(steps), int(room * _PLAN_SHARE))
        return ["\n".join([f"{headings.PLAN} {citation(place)}" if place else headings.PLAN, *lines])]

    def calls(self, room: int, staying: Collection[int]) -> list[str]:
        """Calls since the last user message, so that none is repeated."""
        done = archived_lines(self.history.calls, staying)
        kept = take_fitting(
            (f"{citation(line.place)} {line.text}" for line in reversed(done)), int(room * _CALLS_SHARE)
        )
        left = self.history.omitted_calls + len(done) - len(kept)
        more = [f"{headings.OMITTED}{left:,} earlier)"] if left else []
        return ["\n".join([headings.CALLS, *more, *reversed(kept)])] if done else []

    def steps(self, room: int, staying: Collection[int]) -> list[str]:
        """What was said and called right before the messages that stay."""
        done = reversed(archived_lines(self.history.steps, staying))
        seen: set[str] = set()
        brief = ((line.place, self._brief_step(line.text, seen)) for line in done)
        shown = (f"{citation(place)} {quote_structure(text)}" for place, text in brief if text)
        kept = take_within(((text, text) for text in shown), int(room * _STEPS_SHARE))
        return ["\n".join([headings.STEPS, *reversed(kept)])] if kept else []

    def _brief_step(self, text: str, seen: set[str]) -> str:
        """Leaves out what a newer step shows and shortens the paths of files that it names; nothing if all is shown."""
        lines = text.split("\n")
        new = [line for line in lines if line not in seen or not _may_be_left_out(line)]
        brief = [
            self._short_path(line.removeprefix(CUT_PATH)) if line in seen and is_path(line) else line for line in new
        ]
        seen.update(lines)
        only_tools_left = len(new) < len(lines) and all(map(str.isidentifier, new))
        return "" if only_tools_left else "\n".join(brief)

    def recent_errors(self, room: int, visible: str) -> list[LedgerLine]:
        """Returns the newest error lines that are not visible, and some older ones printed by commands."""
        hidden = [line for text, line in self.history.errors.items() if text not in visible]
        last = hidden[-_MAX_LAST_ERRORS:]
        ran = [line for line in hidden[:-_MAX_LAST_ERRORS] if line.kind != "file"]
        kept = take_within(
            ((line.text, line) for line in reversed([*ran[-_MAX_EARLIER_RUN_ERRORS:], *last])),
            int(room * _ERRORS_SHARE),
        )
        return kept[::-1]

    def errors(self, lines: Iterable[LedgerLine]) -> list[str]:
        """Error lines printed by commands and tools, and whether the command ran again since, and how."""
        ran = [line for line in lines if line.kind != "file"]
        groups = groupby(ran, key=lambda line: (line.source, line.place))
        blocks = [
            f"{self._error_source(*run)}\n" + "\n".join(quote_structure(line.text) for line in group)
            for run, group in groups
        ]
        return ["\n".join([headings.ERRORS, *blocks])] if blocks else []

    def _make_error_source(self, source: str, place: int) -> str:
        ran, latest = self.history.commands.get(source), self._latest_runs.get(core_command(source))
        if ran is None or latest is None or latest.place <= place or not ran_in_one_folder(ran, latest):
            return citation(place)
        outcome = headings.NO_ERRORS if self.history.ran_without_errors(latest) else ""
        return f"{citation(place)}{headings.RAN_AGAIN}{citation(latest.place)}{outcome})"

    @cached_property
    def _latest_runs(self) -> dict[str, CommandRecord]:
        return {core_command(command.text): command for command in self.history.commands.values()}

    def files(self, room: int, staying: Collection[int], known: str = "") -> list[str]:
        """All files by folder without those that a `known` text lists in the same way, and attachments."""
        room = int(room * _FILES_SHARE)
        listed = {file.path for file in parse_file_list(line for line in known.splitlines() if "/: " in line)}
        lines = list_by_folder(file for path, file in self.history.files.items() if path not in listed)
        if sum(map(len, lines)) + len(lines) > room:
            lines = abbreviate_root(lines, room // 3)
        attached = archived_lines(self.history.attached, staying)
        lines += [f"{headings.ATTACHED}{line.text} {citation(line.place)}" for line in reversed(attached)]
        return ["\n".join([headings.FILES, *map(quote_structure, take_fitting(lines, room))])] if lines else []

    def found(self, room: int, visible: str) -> list[str]:
        """Files that only searches named, the likeliest to be needed: a line of them need not be worth its heading."""
        room = int(_FOUND_SHARE * max(0, room - _FOUND_FROM_CHARS))
        hidden = (path for path in self._found_paths if path not in visible) if room else ()
        paths = take_within(((base_name(path), path) for path in hidden), room)
        lines = list_by_folder(FileRecord(path, reads=1) for path in paths)
        return ["\n".join([headings.FOUND, *map(quote_structure, take_fitting(lines, room))])] if lines else []

    @cached_property
    def _found_paths(self) -> list[str]:
        """Paths of search results that no call named, by the scores of the names in their last component."""
        history, scores = self.history, self.name_scores
        lines = history.lines.values()
        paths = {line.source for line in lines if line.kind in ("file", "name") and line.source not in history.files}
        worth = {path: sum(scores.get(name, 0.0) for name in find_exact_names(base_name(path))) for path in paths}
        return sorted(filter(is_path, paths), key=lambda path: (-worth[path], path))

    def likely_commands(self, room: int, visible: str, steps: str = "") -> list[str]:
        """Returns the commands that are most likely to be run again, without those of which `steps` show all."""
        ranked = sorted(self.history.commands.values(), key=lambda command: -rerun_score(command, self.history.time))
        hidden = (
            command.text
            for command in ranked
            if command.text not in visible and (run_status(command) or command.text not in steps)
        )
        return take_fitting((text for text in hidden if len(text) <= 2 * BRIEF_CHARS), int(room * _COMMANDS_SHARE))

    def commands(self, texts: Iterable[str]) -> list[str]:
        ran = sorted((self.history.commands[text] for text in texts), key=lambda command: command.time)
        return (
            [
                "\n".join(
                    [headings.COMMANDS, *(quote_structure(f"{command.text}{run_status(command)}") for command in ran)]
                )
            ]
            if ran
            else []
        )

    def messages(self, title: str, texts: Iterable[CitedText], before: Sequence[str] = ()) -> list[str]:
        """Texts in message order, each message after its citation."""
        groups = groupby(sorted(texts, key=lambda cited: cited[0]), key=lambda cited: cited[0])
        lines = [f"{citation(place)} " + "\n".join(text for _, text in group) for place, group in groups]
        return ["\n".join([title, *before, *lines])] if before or lines else []

    def omitted_users(self, users: Sequence[LedgerLine], texts: Iterable[CitedText]) -> list[str]:
        """Number of user messages without room on the page, and the citation of the first."""
        shown = {place for place, _ in texts}
        left = [line.place for line in users if line.place not in shown]
        count, first = self.history.omitted_users + len(left), self.history.omitted_from or min(left, default=0)
        return [f"{headings.OMITTED}{count:,} earlier, from {citation(first)} on)"] if count else []

    def excerpts(self, selected: Sequence[LedgerLine]) -> list[str]:
        """Lines grouped under their file or command, the newest group last."""
        groups: dict[str, list[LedgerLine]] = {}
        for line in sort_by_position(selected):
            groups.setdefault(self._title(line), []).append(line)
        blocks = [self._group(lines) for lines in sorted(groups.values(), key=lambda lines: lines[-1].place)]
        return [headings.EXCERPTS, *blocks] if blocks else []

    def _group(self, lines: Sequence[LedgerLine]) -> str:
        """Lines of one source under its title and the citations of their messages."""
        cited = " ".join(dict.fromkeys(citation(line.place) for line in lines))
        return "\n".join([f"{headings.GROUP}{self._title(lines[0])} {cited}", *_render_lines(lines)])

    def _title(self, line: LedgerLine) -> str:
        """Title of a group of lines: a file's name, a command, a search, or who wrote the message."""
        spoken = not line.source and line.kind in headings.SPEAKERS
        return headings.SPEAKERS[line.kind] if spoken else self._source_title(line.source)

    def _short_path(self, path: str) -> str:
        return shortest_unique_path(path, self._alike.get(base_name(path), (path,))) or path

    def _make_title(self, source: str) -> str:
        if source in self.history.files:
            return self._short_path(source)
        title = " ".join(source.split()) or "tool output"
        return (
            title
            if len(title) <= _MAX_TITLE_CHARS
            else (title[:_MAX_TITLE_CHARS].rpartition(" ")[0] or "tool output") + " …"
        )


def _important_lines(text: str) -> list[str]:
    """Returns what must not be clipped from a user message: its rules, and what an earlier page had of it."""
    return list(dict.fromkeys([*find_constraints(text), *lines_after_gap(text)]))


def part_key(line: LedgerLine) -> PartKey:
    return line.place, line.part


def sort_by_position(lines: Iterable[LedgerLine]) -> list[LedgerLine]:
    return sorted(lines, key=lambda line: (line.place, line.part, line.number))


def only_file_lines(lines: Iterable[LedgerLine]) -> list[LedgerLine]:
    return [line for line in lines if line.kind == "file"]


def archived_lines(lines: Iterable[LedgerLine], staying: Collection[int]) -> list[LedgerLine]:
    return [line for line in lines if line.place not in staying]


def _may_be_left_out(line: str) -> bool:
    """Whether a line of a step says nothing new the second time: not the name of a tool or of a file."""
    return (
        (" " in line and line != headings.REJECTED)
        or line.isdecimal()
        or (is_path(line) and "." not in base_name(line))
    )


def _render_lines(lines: Sequence[LedgerLine]) -> Iterator[str]:
    """Yields the lines verbatim, then the names listed without a line."""
    names = [line.text for line in lines if line.kind == "name"]
    yield from (quote_structure(line.text) for line in lines if line.kind != "name")
    if names:
        yield headings.ALSO + ", ".join(names)
