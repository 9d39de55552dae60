"""A page read back: where no checkpoint came along, the notes themselves are all that is known of earlier rounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..references import NUMBER
from .entries import Command, File, Ledger, Sighting
from .folders import by_name, told_apart
from .headings import (
    AGAIN,
    ALSO,
    AT_HAND,
    ATTACHED,
    CALLS,
    COMMANDS,
    DONE,
    ERRORS,
    FILES,
    GROUP,
    OPENING,
    PLAN,
    ROOT,
    ROOT_IS,
    SAID,
    TASK,
    UNTOLD,
    USER,
)
from .lines import Line, Voice
from .names import exact_names_in, kind_of
from .shortening import unquoted

_COUNT = re.compile(re.escape(OPENING) + rf"({NUMBER})")
_CITED = re.compile(rf"\[({NUMBER})\] ?(.*)")
_FILE = re.compile(r"(.+?)(?: \((written|neither read nor written|deleted|edited (\d+)×)\))?$")
_RAN = re.compile(r"(.*?)(?:  \((?:(\d+)×)?(?:, )?(failed)?\))?$")
_STEP = re.compile(r"- (.*) \(([\w-]+)\)$")
_HEADED = re.compile(rf"({TASK}|{PLAN}) (\[{NUMBER}\])$")
_GROUP = re.compile(re.escape(GROUP) + rf"(.*?)(?: \[{NUMBER}\])* (\[{NUMBER}\])$")
_RUN = re.compile(rf"(\[{NUMBER}\])(?:{re.escape(AGAIN)}\[{NUMBER}\]\))?$")
_LEFT = re.compile(re.escape(UNTOLD) + rf"({NUMBER}) earlier, from \[({NUMBER})\] on\)$")
_MORE = re.compile(re.escape(UNTOLD) + rf"({NUMBER}) earlier\)$")
_SECTIONS = (USER, PLAN, CALLS, ERRORS, FILES, COMMANDS, SAID, AT_HAND)


def reread(text: str) -> Ledger:
    """The ledger that a page shows, as far as it can be told from the page."""
    counted = _COUNT.match(text)
    ledger = Ledger(archived=_number(counted[1]) if counted else 0)
    for title, body in _sections(text):
        cited = _HEADED.match(title)
        if cited and cited[1] == TASK:
            ledger.users.insert(0, Line("\n".join(body), "user", "", _place(cited[2]), 0, 0))
        elif title == USER:
            ledger.users += [Line(said, "user", "", place, 0, 0) for place, said in _cited(body)]
            if left := _LEFT.match(body[0] if body else ""):
                ledger.untold, ledger.untold_from = _number(left[1]), _number(left[2])
        elif title == PLAN or cited:
            ledger.plan_place = _place(cited[2]) if cited else 0
            ledger.plan, ledger.plan_told = list(_steps(body)), True
        elif title == CALLS:
            ledger.calls = [Line(said, "asked", "", place, 0, 0) for place, said in _cited(body)]
            if more := _MORE.match(body[0] if body else ""):
                ledger.calls_untold = _number(more[1])
        elif title == ERRORS:
            ledger.errors = list(_errors(body))
        elif title == FILES:
            ledger.files = list(_files(unquoted(line) for line in body if not line.startswith(ATTACHED)))
            ledger.attached = list(_attached(body))
        elif title == COMMANDS:
            ledger.commands = [_command(unquoted(line)) for line in body]
        elif title == SAID:
            ledger.closings = [Line(said, "said", "", place, 0, 0) for place, said in _cited(body)]
        elif title == AT_HAND:
            ledger.lines = list(_lines(body, ledger.files))
            names = dict.fromkeys(name for line in ledger.lines for name in exact_names_in(line.text))
            ledger.names = {name: Sighting(kind_of(name), 0, mentions=1) for name in names}
    return ledger


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    title, body = "", list[str]()
    for line in text.split("\n"):
        if line in _SECTIONS or _HEADED.match(line):
            yield title, body
            title, body = line, []
        elif line.strip():
            body.append(line)
    yield title, body


def _cited(body: list[str]) -> Iterator[tuple[int, str]]:
    """Entries that each begin with their number."""
    place, said = 0, list[str]()
    for line in body[1:] if body and body[0].startswith(UNTOLD) else body:
        if found := _CITED.match(line):
            if said:
                yield place, "\n".join(said)
            place, said = _number(found[1]), [found[2]]
        else:
            said.append(line)
    if said:
        yield place, "\n".join(said)


def _steps(body: list[str]) -> Iterator[tuple[str, str]]:
    for line in body:
        if step := _STEP.match(line):
            yield step[1], step[2]
        elif line.startswith(DONE):
            yield from ((step, "completed") for step in line.removeprefix(DONE).split("; "))


def _attached(body: list[str]) -> Iterator[Line]:
    for line in reversed(body):
        what, _, cited = line.removeprefix(ATTACHED).rpartition(" ")
        if line.startswith(ATTACHED):
            yield Line(what, "user", "", _place(cited), 0, 0)


def _errors(body: list[str]) -> Iterator[Line]:
    place = 0
    for number, line in enumerate(body):
        if run := _RUN.match(line):
            place = _place(run[1])
        else:
            yield Line(unquoted(line), "output", "", place, number, 0)


def _files(body: Iterable[str]) -> Iterator[File]:
    root = ROOT
    for line in body:
        if line.startswith(ROOT_IS):
            root = line.removeprefix(ROOT_IS)
            continue
        if line.startswith(ROOT):
            line = root + line.removeprefix(ROOT)
        folder, slash, names = line.rpartition("/: ")
        for name in names.split(", "):
            if found := _FILE.match(name):
                edits = int(found[3] or (found[2] == "written"))
                path = f"{folder}/{found[1]}" if slash else found[1]
                yield File(
                    path,
                    reads=int(not found[2]),
                    edits=edits,
                    written=found[2] == "written",
                    deleted=found[2] == "deleted",
                )


def _command(line: str) -> Command:
    found = _RAN.match(line)
    return Command(found[1], int(found[2] or 1), bool(found[3])) if found else Command(line, 1)


def _lines(body: list[str], files: Iterable[File]) -> Iterator[Line]:
    alike = by_name(file.path for file in files)
    paths = {told_apart(path, same): path for same in alike.values() for path in same}
    source, place = "", 0
    for number, line in enumerate(body):
        if group := _GROUP.match(line):
            source, place = paths.get(group[1], group[1]), _place(group[2])
        elif line.startswith(ALSO):
            yield from (Line(name, "name", source, place, number, 0) for name in line.removeprefix(ALSO).split(", "))
        else:
            voice: Voice = "file" if source in paths.values() else "output"
            yield Line(unquoted(line), voice, source, place, number, 0, 0)


def _place(cited: str) -> int:
    found = _CITED.match(cited)
    return _number(found[1]) if found else 0


def _number(written: str) -> int:
    return int(written.replace(",", ""))
