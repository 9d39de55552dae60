"""What of a ledger goes along to the next round: what is worth most, within bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from typing import TypeVar

from msgspec import structs

from ..messages import Message, is_framed
from .bounds import ATTACHED, SOURCE, within
from .choose import SHORTEST
from .entries import Command, File, Ledger
from .headings import OPENING
from .lines import Line
from .names import Named, kind_of
from .shortening import BRIEF, READABLE
from .speakers import task_in

_USERS, _CLOSINGS, _FILES, _COMMANDS = 200, 60, 400, 120
Subject = TypeVar("Subject", File, Command)


def carried(ledger: Ledger, named: Named, worth: dict[str, float], room: int) -> Ledger:
    """The ledger with the lines that are worth most, at most so many characters of them, and their names."""
    showable = (line for line in ledger.lines if len(line.text) >= SHORTEST or line.voice == "name")
    ranked = nlargest(1 + room // SHORTEST, showable, key=lambda line: _density(line, named, worth))
    kept = within(((line.text + line.source[SOURCE:], line) for line in ranked), room)
    kept.sort(key=lambda line: line.depth)
    users, calls = _asked(ledger.users, room), _spoken(ledger.calls, BRIEF, room)
    places = {line.place for line in users}
    gone = [line for line in ledger.users if line.place not in places]
    names = {name for line in kept for name in named(line.text) if kind_of(name) != "word"}
    return Ledger(
        time=ledger.time,
        depth=ledger.depth,
        users=users,
        untold=ledger.untold + len(gone),
        untold_from=ledger.untold_from or min((line.place for line in gone), default=0),
        closings=_spoken(ledger.closings[-_CLOSINGS:], 2 * BRIEF, room),
        plan_place=ledger.plan_place,
        plan_told=ledger.plan_told,
        plan=within(((step, (step, status)) for step, status in _brief(ledger.plan)), room),
        calls=calls,
        calls_untold=ledger.calls_untold + len(ledger.calls) - len(calls),
        files=_latest(((file.path, file) for file in ledger.files), _FILES, room),
        commands=_latest(((command.text, command) for command in ledger.commands), _COMMANDS, room),
        errors=ledger.errors,
        attached=ledger.attached[-ATTACHED:],
        lines=kept,
        names={name: seen for name, seen in ledger.names.items() if name in names},
    )


def _density(line: Line, named: Named, worth: dict[str, float]) -> float:
    return sum([worth.get(name, 0.0) for name in named(line.text)]) / (len(line.text) + 1)


def _asked(users: list[Line], room: int) -> list[Line]:
    """The task whole, and the newest of what else the user said, in their order."""
    task = task_in(users)
    others = _spoken([line for line in users if line is not task][-_USERS:], READABLE, room)
    if task is not None:
        since = next(place for place, line in enumerate(reversed(users)) if line is task)
        others.insert(max(0, len(others) - since), task)
    return others


def _spoken(lines: Sequence[Line], longest: int, room: int) -> list[Line]:
    """The newest, each with as much of it as a page may ever show."""
    cut = [structs.replace(line, text=line.text[: longest + BRIEF]) for line in lines]
    return within(((line.text, line) for line in reversed(cut)), room)[::-1]


def _brief(plan: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return ((step[: 2 * BRIEF], status[:BRIEF]) for step, status in plan)


def _latest(subjects: Iterable[tuple[str, Subject]], most: int, room: int) -> list[Subject]:
    """The newest, each charged for its text."""
    ranked = sorted(subjects, key=lambda subject: -subject[1].time)[:most]
    return within(ranked, room)[::-1]


def is_page(message: Message) -> bool:
    """Is this message a ledger that was written out?"""
    return is_framed(message) and message.text.startswith(OPENING)
