"""`holdfast verify`: re-derive whole sessions from their logs and say what does not agree."""

from __future__ import annotations

import os

import click
import msgspec

from ..errors import CorruptLog, InvalidInput
from ..service import BlockingSessionService
from . import options
from .stores import Place, find_store, unreadable_logs
from .terminal import working

PROBLEMS_FOUND = 1


@click.command("verify")
@options.file
@options.session
@options.as_json
def command(file: str, session: str | None, as_json: bool) -> int:
    """Check every session of a Holdfast store.

    FILE is a SQLite store, a folder of JSONL sessions, or one session file of it. Each is derived anew from
    its first event to its last. The exit code is 0 if all is well and 1 if something is wrong.
    """
    place = find_store(file)
    if place is None:
        if not os.path.exists(file):
            raise InvalidInput(f"There is no file {file}: check the path.")
        raise InvalidInput(f"{file} is no Holdfast store: `holdfast inspect` checks a file of messages.")
    found = _findings(place, session)
    wrong = {name: problems for name, problems in found.items() if problems}
    if as_json:
        facts = {"store": place.path, "ok": not wrong, "sessions": found}
        click.echo(msgspec.json.encode(facts))
    else:
        for name, problems in wrong.items():
            for problem in problems:
                click.echo(f"{name}: {' '.join(problem.split())}")
        checked = f"{len(found):,} session{'s' if len(found) != 1 else ''} of {place.path}"
        click.echo(f"{len(wrong):,} of {checked}: something is wrong." if wrong else f"{checked}: all is well.")
    return PROBLEMS_FOUND if wrong else 0


def _findings(place: Place, session: str | None) -> dict[str, list[str]]:
    """What is wrong, by session; a file that cannot even be listed stands under its own name."""
    found: dict[str, list[str]] = {}
    try:
        with place.open() as sessions, working("verifying"):
            if session is not None or place.only is not None:
                ids = [place.choose(sessions, session).id]
            else:
                ids = [record.id for record in sessions.list()]
                for name in unreadable_logs(place.path):
                    found[name] = ["does not begin with a session: restore a backup of it"]
            for id in ids:
                found[id] = _verified(sessions, id)
    except CorruptLog as problem:
        found[place.path] = [str(problem)]
    return found


def _verified(sessions: BlockingSessionService, id: str) -> list[str]:
    try:
        return sessions.verify(id)
    except CorruptLog as problem:
        return [str(problem)]
