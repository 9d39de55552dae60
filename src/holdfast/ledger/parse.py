"""Parses a rendered page back into a ledger, for rounds that come without the previous checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..context.references import NUMBER, citation
from .commands import parse_command_line
from .entries import FileRecord, Ledger, MentionStats
from .files import base_name, group_by_base_name, parse_file_list, shortest_unique_path
from .lines import LedgerLine, LineKind, find_constraints
from .names import find_exact_names, name_kind
from .plan import parse_plan_lines
from .text import (
    ALSO,
    APPROVED,
    APPROVED_ITEMS,
    ATTACHED,
    CALLS,
    COMMANDS,
    CONCLUSIONS,
    COUNTED,
    ERRORS,
    EXCERPTS,
    FILES,
    FOUND,
    GROUP,
    NO_ERRORS,
    OMITTED,
    PAGE_OPENING,
    PLAN,
    RAN_AGAIN,
    ROUND,
    SPEAKERS,
    STEPS,
    TASK,
    USER_MESSAGES,
    unquote_structure,
)

_ARCHIVED_COUNT = re.compile(re.escape(PAGE_OPENING) + rf"({NUMBER})")
_ROUND_NUMBER = re.compile(rf"{ROUND}({NUMBER})")
_COUNTED_NUMBER = re.compile(rf"{COUNTED}\[({NUMBER})\]\.")
_CITED_LINE = re.compile(rf"\[({NUMBER})\] ?(.*)")
_CITED_HEADING = re.compile(rf"({TASK}|{PLAN}|{APPROVED}|{APPROVED_ITEMS}) (\[{NUMBER}\])$")
_GROUP_HEADING = re.compile(re.escape(GROUP) + rf"(.*?)(?: \[{NUMBER}\])* (\[{NUMBER}\])$")
_ERROR_SOURCE = re.compile(rf"(\[{NUMBER}\])(?:{re.escape(RAN_AGAIN)}\[{NUMBER}\](?:{NO_ERRORS})?\))?$")
_OMITTED_USERS = re.compile(re.escape(OMITTED) + rf"({NUMBER}) earlier, from \[({NUMBER})\] on\)$")
_OMITTED_CALLS = re.compile(re.escape(OMITTED) + rf"({NUMBER}) earlier\)$")
_SECTION_HEADINGS = (USER_MESSAGES, PLAN, CALLS, ERRORS, FILES, FOUND, COMMANDS, CONCLUSIONS, EXCERPTS, STEPS)


def is_section_heading(line: str) -> bool:
    """Whether a line of a page opens one of its sections."""
    return line in _SECTION_HEADINGS or _CITED_HEADING.match(line) is not None


def shorten_page(text: str) -> str:
    """Returns a page with its opening, the task and the user's rules: what stays where nothing else has room."""
    kept = [text.partition("\n")[0]]
    for title, body in _split_sections(text):
        if (cited := _CITED_HEADING.match(title)) and cited[1] == TASK:
            kept.append("\n".join([title, *body]).rstrip())
        elif title == USER_MESSAGES:
            rules = [(place, rule) for place, words in parse_cited(body) for rule in find_constraints(words)]
            kept += ["\n".join([title, *(f"{citation(place)} {rule}" for place, rule in rules)])] if rules else []
    return "\n\n".join(kept)


def parse_page(text: str) -> Ledger:
    """Returns the ledger that a page shows, as far as the page contains it."""
    ledger, opening = Ledger(), text.partition("\n")[0]
    if archived := _ARCHIVED_COUNT.match(opening):
        round, counted = _ROUND_NUMBER.search(opening), _COUNTED_NUMBER.search(opening)
        ledger.archived = parse_number(archived[1])
        ledger.round = parse_number(round[1]) if round else 1
        ledger.counted = parse_number(counted[1]) if counted else 0
    for title, whole in _split_sections(text):
        body = list(filter(str.strip, whole))
        cited = _CITED_HEADING.match(title)
        if cited and cited[1] == TASK:
            ledger.users.insert(
                0, LedgerLine(unquote_structure("\n".join(whole)), "user", "", _parse_citation(cited[2]), 0, 0)
            )
        elif title == USER_MESSAGES:
            ledger.users += [LedgerLine(text, "user", "", place, 0, 0) for place, text in parse_cited(whole)]
            if left := _OMITTED_USERS.match(body[0] if body else ""):
                ledger.omitted_users, ledger.omitted_from = parse_number(left[1]), parse_number(left[2])
        elif cited and cited[1] != PLAN:
            text, place = unquote_structure("\n".join(whole)), _parse_citation(cited[2])
            ledger.approved = LedgerLine(text, "said", "", place, 0, 0, whole=cited[1] == APPROVED)
        elif title == PLAN or cited:
            ledger.plan_place = _parse_citation(cited[2]) if cited else 0
            ledger.plan, ledger.plan_from_page = list(parse_plan_lines(body)), True
        elif title == CALLS:
            ledger.calls = [LedgerLine(text, "asked", "", place, 0, 0) for place, text in parse_cited(body)]
            if more := _OMITTED_CALLS.match(body[0] if body else ""):
                ledger.omitted_calls = parse_number(more[1])
        elif title == STEPS:
            ledger.steps = [LedgerLine(text, "asked", "", place, 0, 0) for place, text in parse_cited(body)]
        elif title == ERRORS:
            ledger.errors = list(_parse_errors(body))
        elif title == FILES:
            ledger.files = list(
                parse_file_list(unquote_structure(line) for line in body if not line.startswith(ATTACHED))
            )
            ledger.attached = list(_parse_attached(body))
        elif title == FOUND:
            found = parse_file_list(map(unquote_structure, body))
            ledger.lines += [LedgerLine(base_name(file.path), "name", file.path, 0, 0, 0) for file in found]
        elif title == COMMANDS:
            ledger.commands = [parse_command_line(unquote_structure(line)) for line in body]
        elif title == CONCLUSIONS:
            ledger.closings = [LedgerLine(text, "said", "", place, 0, 0) for place, text in parse_cited(whole)]
        elif title == EXCERPTS:
            ledger.lines += _parse_excerpts(body, ledger.files)
    names = dict.fromkeys(name for line in ledger.lines for name in find_exact_names(line.text))
    ledger.names = {name: MentionStats(name_kind(name), 0, mentions=1) for name in names}
    return ledger


def _split_sections(text: str) -> Iterator[tuple[str, list[str]]]:
    title, body = "", list[str]()
    for line in text.split("\n"):
        if is_section_heading(line):
            yield title, _strip_blank(body)
            title, body = line, []
        else:
            body.append(line)
    yield title, _strip_blank(body)


def _strip_blank(lines: list[str]) -> list[str]:
    """Returns the lines without the blank ones around them."""
    filled = [at for at, line in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def parse_cited(body: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yields entries that each start with a citation."""
    place, lines = 0, list[str]()
    for line in body[1:] if body and body[0].startswith(OMITTED) else body:
        if found := _CITED_LINE.match(line):
            if lines:
                yield place, unquote_structure("\n".join(lines))
            place, lines = parse_number(found[1]), [found[2]]
        else:
            lines.append(line)
    if lines:
        yield place, unquote_structure("\n".join(lines))


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


def _parse_excerpts(body: list[str], files: Iterable[FileRecord]) -> Iterator[LedgerLine]:
    alike = group_by_base_name(file.path for file in files)
    paths = {shortest_unique_path(path, same): path for same in alike.values() for path in same}
    speakers = {title: kind for kind, title in SPEAKERS.items()}
    source, place, speaker = "", 0, None
    for number, line in enumerate(body):
        if group := _GROUP_HEADING.match(line):
            speaker = speakers.get(group[1])
            source, place = "" if speaker else paths.get(group[1], group[1]), _parse_citation(group[2])
        elif line.startswith(ALSO):
            yield from (
                LedgerLine(name, "name", source, place, number, 0) for name in line.removeprefix(ALSO).split(", ")
            )
        else:
            kind: LineKind = speaker or ("file" if source in paths.values() else "output")
            yield LedgerLine(unquote_structure(line), kind, source, place, number, 0, 0)


def _parse_citation(cited: str) -> int:
    found = _CITED_LINE.match(cited)
    return parse_number(found[1]) if found else 0


def parse_number(written: str) -> int:
    """Returns a number that may have thousands separators."""
    return int(written.replace(",", ""))
