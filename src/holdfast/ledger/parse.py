"""Parses a rendered page back into a ledger, for rounds that come without the previous checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..context.references import NUMBER
from .entries import CommandRecord, FileRecord, Ledger, MentionStats
from .lines import LedgerLine, LineKind
from .names import find_exact_names, name_kind
from .paths import group_by_base_name, shortest_unique_path
from .text import (
    ALSO,
    ATTACHED,
    CALLS,
    COMMANDS,
    CONCLUSIONS,
    DONE,
    ERRORS,
    EXCERPTS,
    FILES,
    GROUP,
    OMITTED,
    PAGE_OPENING,
    PLAN,
    RAN_AGAIN,
    ROOT,
    ROOT_IS,
    TASK,
    USER_MESSAGES,
    unquote_structure,
)

_ARCHIVED_COUNT = re.compile(re.escape(PAGE_OPENING) + rf"({NUMBER})")
_CITED_LINE = re.compile(rf"\[({NUMBER})\] ?(.*)")
_FILE_STATUS = re.compile(r"(.+?)(?: \((written|neither read nor written|deleted|edited (\d+)×)\))?$")
_COMMAND_LINE = re.compile(r"(.*?)(?:  \((?:(\d+)×)?(?:, )?(failed)?\))?$")
_STEP_LINE = re.compile(r"- (.*) \(([\w-]+)\)$")
_CITED_HEADING = re.compile(rf"({TASK}|{PLAN}) (\[{NUMBER}\])$")
_GROUP_HEADING = re.compile(re.escape(GROUP) + rf"(.*?)(?: \[{NUMBER}\])* (\[{NUMBER}\])$")
_ERROR_SOURCE = re.compile(rf"(\[{NUMBER}\])(?:{re.escape(RAN_AGAIN)}\[{NUMBER}\]\))?$")
_OMITTED_USERS = re.compile(re.escape(OMITTED) + rf"({NUMBER}) earlier, from \[({NUMBER})\] on\)$")
_OMITTED_CALLS = re.compile(re.escape(OMITTED) + rf"({NUMBER}) earlier\)$")
_SECTION_HEADINGS = (USER_MESSAGES, PLAN, CALLS, ERRORS, FILES, COMMANDS, CONCLUSIONS, EXCERPTS)


def parse_page(text: str) -> Ledger:
    """Returns the ledger that a page shows, as far as the page contains it."""
    counted = _ARCHIVED_COUNT.match(text)
    ledger = Ledger(archived=_parse_number(counted[1]) if counted else 0)
    for title, body in _split_sections(text):
        cited = _CITED_HEADING.match(title)
        if cited and cited[1] == TASK:
            ledger.users.insert(0, LedgerLine("\n".join(body), "user", "", _parse_citation(cited[2]), 0, 0))
        elif title == USER_MESSAGES:
            ledger.users += [LedgerLine(text, "user", "", place, 0, 0) for place, text in _parse_cited(body)]
            if left := _OMITTED_USERS.match(body[0] if body else ""):
                ledger.omitted_users, ledger.omitted_from = _parse_number(left[1]), _parse_number(left[2])
        elif title == PLAN or cited:
            ledger.plan_place = _parse_citation(cited[2]) if cited else 0
            ledger.plan, ledger.plan_from_page = list(_parse_steps(body)), True
        elif title == CALLS:
            ledger.calls = [LedgerLine(text, "asked", "", place, 0, 0) for place, text in _parse_cited(body)]
            if more := _OMITTED_CALLS.match(body[0] if body else ""):
                ledger.omitted_calls = _parse_number(more[1])
        elif title == ERRORS:
            ledger.errors = list(_parse_errors(body))
        elif title == FILES:
            ledger.files = list(_parse_files(unquote_structure(line) for line in body if not line.startswith(ATTACHED)))
            ledger.attached = list(_parse_attached(body))
        elif title == COMMANDS:
            ledger.commands = [_parse_command(unquote_structure(line)) for line in body]
        elif title == CONCLUSIONS:
            ledger.closings = [LedgerLine(text, "said", "", place, 0, 0) for place, text in _parse_cited(body)]
        elif title == EXCERPTS:
            ledger.lines = list(_parse_excerpts(body, ledger.files))
            names = dict.fromkeys(name for line in ledger.lines for name in find_exact_names(line.text))
            ledger.names = {name: MentionStats(name_kind(name), 0, mentions=1) for name in names}
    return ledger


def _split_sections(text: str) -> Iterator[tuple[str, list[str]]]:
    title, body = "", list[str]()
    for line in text.split("\n"):
        if line in _SECTION_HEADINGS or _CITED_HEADING.match(line):
            yield title, body
            title, body = line, []
        elif line.strip():
            body.append(line)
    yield title, body


def _parse_cited(body: list[str]) -> Iterator[tuple[int, str]]:
    """Yields entries that each start with a citation."""
    place, lines = 0, list[str]()
    for line in body[1:] if body and body[0].startswith(OMITTED) else body:
        if found := _CITED_LINE.match(line):
            if lines:
                yield place, "\n".join(lines)
            place, lines = _parse_number(found[1]), [found[2]]
        else:
            lines.append(line)
    if lines:
        yield place, "\n".join(lines)


def _parse_steps(body: list[str]) -> Iterator[tuple[str, str]]:
    for line in body:
        if step := _STEP_LINE.match(line):
            yield step[1], step[2]
        elif line.startswith(DONE):
            yield from ((step, "completed") for step in line.removeprefix(DONE).split("; "))


def _parse_attached(body: list[str]) -> Iterator[LedgerLine]:
    for line in reversed(body):
        what, _, cited = line.removeprefix(ATTACHED).rpartition(" ")
        if line.startswith(ATTACHED):
            yield LedgerLine(what, "user", "", _parse_citation(cited), 0, 0)


def _parse_errors(body: list[str]) -> Iterator[LedgerLine]:
    place = 0
    for number, line in enumerate(body):
        if run := _ERROR_SOURCE.match(line):
            place = _parse_citation(run[1])
        else:
            yield LedgerLine(unquote_structure(line), "output", "", place, number, 0)


def _parse_files(body: Iterable[str]) -> Iterator[FileRecord]:
    root = ROOT
    for line in body:
        if line.startswith(ROOT_IS):
            root = line.removeprefix(ROOT_IS)
            continue
        if line.startswith(ROOT):
            line = root + line.removeprefix(ROOT)
        folder, slash, names = line.rpartition("/: ")
        for name in names.split(", "):
            if found := _FILE_STATUS.match(name):
                edits = int(found[3] or (found[2] == "written"))
                path = f"{folder}/{found[1]}" if slash else found[1]
                yield FileRecord(
                    path,
                    reads=int(not found[2]),
                    edits=edits,
                    written=found[2] == "written",
                    deleted=found[2] == "deleted",
                )


def _parse_command(line: str) -> CommandRecord:
    found = _COMMAND_LINE.match(line)
    return CommandRecord(found[1], int(found[2] or 1), bool(found[3])) if found else CommandRecord(line, 1)


def _parse_excerpts(body: list[str], files: Iterable[FileRecord]) -> Iterator[LedgerLine]:
    alike = group_by_base_name(file.path for file in files)
    paths = {shortest_unique_path(path, same): path for same in alike.values() for path in same}
    source, place = "", 0
    for number, line in enumerate(body):
        if group := _GROUP_HEADING.match(line):
            source, place = paths.get(group[1], group[1]), _parse_citation(group[2])
        elif line.startswith(ALSO):
            yield from (
                LedgerLine(name, "name", source, place, number, 0) for name in line.removeprefix(ALSO).split(", ")
            )
        else:
            kind: LineKind = "file" if source in paths.values() else "output"
            yield LedgerLine(unquote_structure(line), kind, source, place, number, 0, 0)


def _parse_citation(cited: str) -> int:
    found = _CITED_LINE.match(cited)
    return _parse_number(found[1]) if found else 0


def _parse_number(written: str) -> int:
    return int(written.replace(",", ""))
