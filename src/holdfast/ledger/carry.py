"""Trims a ledger to the bounded part that the checkpoint carries to the next round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import TypeVar

from msgspec import structs

from ..messages import Message, is_framed
from .entries import MAX_ATTACHMENTS, MAX_SOURCE_CHARS, CommandRecord, FileRecord, Ledger, take_within
from .headings import PAGE_OPENING
from .lines import LedgerLine, find_task
from .names import NameFinder
from .select import MIN_LINE_CHARS
from .text import BRIEF_CHARS, READABLE_CHARS

_MAX_USERS, _MAX_CLOSINGS, _MAX_FILES, _MAX_COMMANDS = 200, 60, 400, 120
Record = TypeVar("Record", FileRecord, CommandRecord)


def trim_ledger(ledger: Ledger, names_of: NameFinder, scores: dict[str, float], room: int) -> Ledger:
    """Returns the ledger with its highest-scored lines, at most `room` characters of them, and their names."""
    showable = (line for line in ledger.lines if len(line.text.strip()) >= MIN_LINE_CHARS or line.kind == "name")

    def density(line: LedgerLine) -> float:
        return sum([scores.get(name, 0.0) for name in names_of(line.text)]) / (len(line.text) + 1)

    ranked = nlargest(1 + room // MIN_LINE_CHARS, showable, key=density)
    kept = take_within(((line.text + line.source[MAX_SOURCE_CHARS:], line) for line in ranked), room)
    kept.sort(key=lambda line: line.offset)
    users, calls = _trim_users(ledger.users, room), _newest_clipped(ledger.calls, BRIEF_CHARS, room)
    places = {line.place for line in users}
    gone = [line for line in ledger.users if line.place not in places]
    names = {name for line in kept for name in names_of(line.text)}
    steps = ((step[: 2 * BRIEF_CHARS], status[:BRIEF_CHARS]) for step, status in ledger.plan)
    return structs.replace(
        ledger,
        archived=0,
        round=0,
        users=users,
        omitted_users=ledger.omitted_users + len(gone),
        omitted_from=ledger.omitted_from or min((line.place for line in gone), default=0),
        closings=_newest_clipped(ledger.closings[-_MAX_CLOSINGS:], 2 * BRIEF_CHARS, room),
        approved=ledger.approved and structs.replace(ledger.approved, text=ledger.approved.text[:room]),
        plan=take_within(((step, (step, status)) for step, status in steps), room),
        calls=calls,
        omitted_calls=ledger.omitted_calls + len(ledger.calls) - len(calls),
        steps=_newest_clipped(ledger.steps, BRIEF_CHARS, room),
        files=_newest_within(((file.path, file) for file in ledger.files), _MAX_FILES, room),
        commands=_newest_within(((command.text, command) for command in ledger.commands), _MAX_COMMANDS, room),
        attached=ledger.attached[-MAX_ATTACHMENTS:],
        lines=kept,
        names={name: seen for name, seen in ledger.names.items() if name in names and seen.kind != "word"},
    )


def _trim_users(users: list[LedgerLine], room: int) -> list[LedgerLine]:
    """Returns the whole task and the newest other user messages, in their order."""
    task = find_task(users)
    others = _newest_clipped([line for line in users if line is not task][-_MAX_USERS:], READABLE_CHARS, room)
    if task is not None:
        since = next(place for place, line in enumerate(reversed(users)) if line is task)
        others.insert(max(0, len(others) - since), task)
    return others


def _newest_clipped(lines: Sequence[LedgerLine], longest: int, room: int) -> list[LedgerLine]:
    """Returns the newest lines, each cut to what a page can show."""
    cut = [structs.replace(line, text=line.text[: longest + BRIEF_CHARS]) for line in lines]
    return take_within(((line.text, line) for line in reversed(cut)), room)[::-1]


def _newest_within(subjects: Iterable[tuple[str, Record]], most: int, room: int) -> list[Record]:
    """Returns the newest records; each is charged for its text."""
    ranked = sorted(subjects, key=lambda subject: -subject[1].time)[:most]
    return take_within(ranked, room)[::-1]


def merge_ledgers(earlier: Ledger, later: Ledger) -> Ledger:
    """Returns what two notes of one context state together; where both state the same, the later one counts."""
    places = {line.place for line in later.users if line.place}
    users = [*(line for line in earlier.users if line.place not in places), *later.users]
    commands = {command.text: command for command in (*earlier.commands, *later.commands)}
    return Ledger(
        archived=max(earlier.archived, later.archived),
        round=max(earlier.round, later.round),
        counted=max(earlier.counted, later.counted),
        users=sorted({line.text: line for line in users}.values(), key=lambda line: line.place),
        omitted_users=max(earlier.omitted_users, later.omitted_users),
        omitted_from=earlier.omitted_from or later.omitted_from,
        closings=_unique_lines(earlier.closings, later.closings),
        approved=later.approved or earlier.approved,
        plan=later.plan or earlier.plan,
        plan_place=later.plan_place or earlier.plan_place,
        plan_from_page=True,
        calls=later.calls or earlier.calls,
        omitted_calls=max(earlier.omitted_calls, later.omitted_calls),
        steps=later.steps or earlier.steps,
        files=list({file.path: file for file in (*earlier.files, *later.files)}.values()),
        commands=list(commands.values()),
        errors=_unique_lines(earlier.errors, later.errors),
        attached=_unique_lines(earlier.attached, later.attached),
        lines=_unique_lines(earlier.lines, later.lines),
        names=earlier.names | later.names,
    )


def _unique_lines(*notes: Iterable[LedgerLine]) -> list[LedgerLine]:
    return list({line.text: line for lines in notes for line in lines}.values())


def is_ledger_page(message: Message) -> bool:
    """Whether this message is a rendered ledger page."""
    return is_framed(message) and message.text.startswith(PAGE_OPENING)
