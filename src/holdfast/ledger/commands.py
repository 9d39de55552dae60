"""Shell commands that ran: which are the same, which may run again, and how a page lists them."""

from __future__ import annotations

import re

from .entries import CommandRecord, decay

_COMMAND_LINE = re.compile(r"(.*?)(?:  \((?:(\d+)×)?(?:, )?(failed)?\))?$")
_SHORTER_OUTPUT = re.compile(r"\s+2>&1(?=\s*(?:\||$))|\s*\| (?:tail|tee)\b[^|;&]*$")
SEVERAL_FOLDERS = "…"
"""Stands for the folder of a command that ran in more than one."""


def ran_in_one_folder(first: CommandRecord, second: CommandRecord) -> bool:
    """Whether all runs of both commands were in the same folder, as far as their calls named one."""
    return first.folder == second.folder != SEVERAL_FOLDERS


def core_command(command: str) -> str:
    """Returns a command without what only joins its output or shows the end of it."""
    while command != (shorter := _SHORTER_OUTPUT.sub("", command)):
        command = shorter
    return command.strip()


def rerun_score(command: CommandRecord, now: int) -> float:
    """Ranks a command by how often and how recently it ran, and how short it is."""
    return 2 * min(command.runs, 4) + decay(now - command.time, 10) - len(command.text) / 60


def run_status(command: CommandRecord) -> str:
    """Renders how often a command ran and whether its last run failed; nothing for one run that passed."""
    notes = [f"{command.runs}×"] if command.runs > 1 else []
    notes += ["failed"] if command.failed else []
    return f"  ({', '.join(notes)})" if notes else ""


def parse_command_line(line: str) -> CommandRecord:
    """Returns the command that a line of a page lists with its status."""
    found = _COMMAND_LINE.match(line)
    return CommandRecord(found[1], int(found[2] or 1), bool(found[3])) if found else CommandRecord(line, 1)
