"""Parses a rendered page back into a ledger, for rounds that come without the previous checkpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..context.references import NUMBER, citation
from . import headings
from .commands import parse_command_line
from .entries import FileRecord, Ledger, MentionStats
from .files import base_name, group_by_base_name, parse_file_list, shortest_unique_path
from .lines import LedgerLine, LineKind, find_constraints
from .names import find_exact_names, name_kind
from .plan import parse_plan_lines
from .text import unquote_structure

_ARCHIVED_COUNT = re.compile(re.escape(headings.PAGE_OPENING) + rf"({NUMBER})")
_ROUND_NUMBER = re.compile(rf"{headings.ROUND}({NUMBER})")
_COUNTED_NUMBER = re.compile(rf"{headings.COUNTED}\[({NUMBER})\]\.")
_CITED_LINE = re.compile(rf"\[({NUMBER})\] ?(.*)")
_CITED_HEADING = re.compile(rf"({'|'.join(headings.CITED_SECTIONS)}) (\[{NUMBER}\])$")
_GROUP_HEADING = re.compile(re.escape(headings.GROUP) + rf"(.*?)(?: \[{NUMBER}\])* (\[{NUMBER}\])$")
_ERROR_SOURCE = re.compile(
    rf"(\[{NUMBER}\])(?:{re.escape(headings.RAN_AGAIN)}\[{NUMBER}\](?:{headings.NO_ERRORS})?\))?$"
)
_OMITTED_USERS = re.compile(re.escape(headings.OMITTED) + rf"({NUMBER}) earlier, from \[({NUMBER})\] on\)$")
_OMITTED_CALLS = re.compile(re.escape(headings.OMITTED) + rf"({NUMBER}) earlier\)$")


def is_section_heading(line: str) -> bool:
    """Whether a line of a page opens one of its sections."""
    return line in headings.SECTIONS or _CITED_HEADING.match(line) is not None


def shorten_page(text: str) -> str:
    """Returns a page with its opening, the task and the user's rules: what stays where nothing else has room."""
    kept = [text.partition("\n")[0]]
    for title, body in split_sections(text, is_section_heading):
        if (cited := _CITED_HEADING.match(title)) and cited[1] == headings.TASK:
            kept.append("\n".join([title, *body]).rstrip())
        elif title == headings.USER_MESSAGES:
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
    for heading, whole in split_sections(text, is_section_heading):
        body, first = list(filter(str.strip, whole)), whole[0] if whole else ""
        cited = _CITED_HEADING.match(heading)
        title, place = (cited[1], _parse_citation(cited[2])) if cited else (heading, 0)
        if title == headings.TASK:
            ledger.users.insert(0, LedgerLine(unquote_structure("\n".join(whole)), "user", "", place, 0, 0))
        elif title == headings.USER_MESSAGES:
            ledger.users += cited_lines(whole, "user")
            if left := _OMITTED_USERS.match(first):
                ledger.omitted_users, ledger.omitted_from = parse_number(left[1]), parse_number(left[2])
        elif title in (headings.APPROVED, headings.APPROVED_ITEMS):
            whole_plan, plan = title == headings.APPROVED, unquote_structure("\n".join(whole))
            ledger.approved = LedgerLine(plan, "said", "", place, 0, 0, whole=whole_plan)
        elif title == headings.PLAN:
            ledger.plan, ledger.plan_place, ledger.plan_from_page = list(parse_plan_lines(body)), place, True
        elif title == headings.CALLS:
            ledger.calls = cited_lines(body, "asked")
            if more := _OMITTED_CALLS.match(first):
                ledger.omitted_calls = parse_number(more[1])
        elif title == headings.STEPS:
            ledger.steps = cited_lines(body, "asked")
        elif title == headings.ERRORS:
            ledger.errors = list(_parse_errors(body))
        elif title == headings.FILES:
            listed = (unquote_structure(line) for line in body if not line.startswith(headings.ATTACHED))
            ledger.files, ledger.attached = list(parse_file_list(listed)), list(_parse_attached(body))
        elif title == headings.FOUND:
            found = parse_file_list(map(unquote_structure, body))
            ledger.lines += [LedgerLine(base_name(file.path), "name", file.path, 0, 0, 0) for file in found]
        elif title == headings.COMMANDS:
            ledger.commands = [parse_command_line(unquote_structure(line)) for line in body]
        elif title == headings.CONCLUSIONS:
            ledger.closings = cited_lines(whole, "said")
        elif title == headings.EXCERPTS:
            ledger.lines += _parse_excerpts(body, ledger.files)
    names = dict.fromkeys(name for line in ledger.lines for name in find_exact_names(line.text))
    ledger.names = {name: MentionStats(name_kind(name), 0, mentions=1) for name in names}
    return ledger


def split_sections(text: str, is_heading: Callable[[str], bool]) -> Iterator[tuple[str, list[str]]]:
    """Yields each heading with the lines below it, without the blank ones around them; first those before any."""
    title, body = "", list[str]()
    for line in [*text.split("\n"), None]:
        if line is None or is_heading(line):
            filled = [at for at, one in enumerate(body) if one.strip()]
            yield title, body[filled[0] : filled[-1] + 1] if filled else []
            title, body = line or "", []
        else:
            body.append(line)


def parse_cited(body: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yields entries that each start with a citation."""
    place, lines = 0, list[str]()
    for line in body[1:] if body and body[0].startswith(headings.OMITTED) else body:
        if found := _CITED_LINE.match(line):
            if lines:
                yield place, unquote_structure("\n".join(lines))
            place, lines = parse_number(found[1]), [found[2]]
        else:
            lines.append(line)
    if lines:
        yield place, unquote_structure("\n".join(lines))


def cited_lines(body: Sequence[str], kind: LineKind) -> list[LedgerLine]:
    """Returns entries that each start with a citation as lines of this kind."""
    return [LedgerLine(text, kind, "", place, 0, 0) for place, text in parse_cited(body)]


def _parse_attached(body: list[str]) -> Iterator[LedgerLine]:
    for line in reversed(body):
        what, _, cited = line.removeprefix(headings.ATTACHED).rpartition(" ")
        if line.startswith(headings.ATTACHED):
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
    speakers = {title: kind for kind, title in headings.SPEAKERS.items()}
    source, place, speaker = "", 0, None
    for number, line in enumerate(body):
        if group := _GROUP_HEADING.match(line):
            speaker = speakers.get(group[1])
            source, place = "" if speaker else paths.get(group[1], group[1]), _parse_citation(group[2])
        elif line.startswith(headings.ALSO):
            yield from (
                LedgerLine(name, "name", source, place, number, 0)
                for name in line.removeprefix(headings.ALSO).split(", ")
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
