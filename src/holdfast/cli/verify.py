"""`holdfast verify`: replays sessions from their logs and reports inconsistencies."""

from __future__ import annotations

import os

import click
import msgspec

from ..errors import CorruptLog, InvalidInput
from ..sessions import BlockingSessionService
from . import options
from .console import show_progress
from .stores import StoreLocation, find_store, unreadable_logs

PROBLEMS_FOUND = 1


@click.command("verify")
@options.file_argument
@options.session_option
@options.json_option
def verify_command(file: str, session: str | None, as_json: bool) -> int:
    """Check every session of a Holdfast store.

    FILE is a SQLite store, a folder of JSONL sessions, or one session file of it. Each session is replayed from its
    first event to its last. The exit code is 0 if all are consistent and 1 otherwise.
    """
    location = find_store(file)
    if location is None:
        if not os.path.exists(file):
            raise InvalidInput(f"The file {file} does not exist: check the path.")
        raise InvalidInput(f"{file} is not a Holdfast store: `holdfast inspect` checks a file of messages.")
    found = _verify_store(location, session)
    wrong = {name: problems for name, problems in found.items() if problems}
    if as_json:
        facts = {"store": location.path, "ok": not wrong, "sessions": found}
        click.echo(msgspec.json.encode(facts))
    else:
        for name, problems in wrong.items():
            for problem in problems:
                click.echo(f"{name}: {' '.join(problem.split())}")
        checked = f"{len(found):,} session{'s' if len(found) != 1 else ''} of {location.path}"
        click.echo(f"{len(wrong):,} of {checked}: inconsistent." if wrong else f"{checked}: all consistent.")
    return PROBLEMS_FOUND if wrong else 0


def _verify_store(location: StoreLocation, session: str | None) -> dict[str, list[str]]:
    """Problems by session; a file that cannot be listed is reported under its own name."""
    found: dict[str, list[str]] = {}
    try:
        with location.open() as sessions, show_progress("verifying"):
            if session is not None or location.session_id is not None:
                ids = [location.choose_session(sessions, session).id]
            else:
                ids = [record.id for record in sessions.list()]
                for name in unreadable_logs(location.path):
                    found[name] = ["does not start with a session header: restore it from a backup"]
            for id in ids:
                found[id] = _verify_session(sessions, id)
    except CorruptLog as problem:
        found[location.path] = [str(problem)]
    return found


def _verify_session(sessions: BlockingSessionService, id: str) -> list[str]:
    try:
        return sessions.verify(id)
    except CorruptLog as problem:
        return [str(problem)]
