"""What of a ledger goes along to the next round: what is worth most, within bounds."""

from __future__ import annotations

from collections.abc import Sequence

from ..messages import Message, is_framed
from .entries import Ledger
from .headings import OPENING
from .lines import Line
from .names import names_in

_USERS, _CLOSINGS, _FILES, _COMMANDS = 200, 60, 400, 120


def carried(ledger: Ledger, worth: dict[str, float], room: int) -> Ledger:
    """The ledger with the lines that are worth most, at most so many characters of them, and their names."""
    ranked = sorted(ledger.lines, key=lambda line: -_density(line, worth))
    kept: list[Line] = []
    for line in ranked:
        if (room := room - len(line.text) - 1) < 0:
            break
        kept.append(line)
    kept.sort(key=lambda line: line.depth)
    names = {name for line in kept for name, kind in names_in(line.text) if kind != "word"}
    return Ledger(
        archived=ledger.archived,
        time=ledger.time,
        depth=ledger.depth,
        users=_ends(ledger.users, _USERS),
        closings=ledger.closings[-_CLOSINGS:],
        plan=ledger.plan,
        files=sorted(ledger.files, key=lambda file: file.time)[-_FILES:],
        commands=sorted(ledger.commands, key=lambda command: command.time)[-_COMMANDS:],
        errors=ledger.errors,
        lines=kept,
        names={name: seen for name, seen in ledger.names.items() if name in names},
    )


def _density(line: Line, worth: dict[str, float]) -> float:
    return sum([worth.get(name, 0.0) for name, _ in names_in(line.text)]) / (len(line.text) + 1)


def _ends(users: Sequence[Line], most: int) -> list[Line]:
    """The first and the newest."""
    return [*users[:1], *users[1:][-most:]]


def is_page(message: Message) -> bool:
    """Is this message a ledger that was written out?"""
    return is_framed(message) and message.text.startswith(OPENING)
