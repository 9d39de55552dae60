"""`holdfast verify`: replays sessions from their logs and reports inconsistencies."""

from __future__ import annotations

from collections.abc import Sized

import click

from ..errors import CorruptLog, InvalidInput
from ..sessions import BlockingSessionService
from ..sessions.session_ids import shorten_ids
from ..stores import MemoryStore
from ..transcripts.importing import import_transcript
from . import options
from .console import show_progress
from .output import echo, echo_json
from .sources import is_example, open_source, require_file
from .stores import StoreLocation, find_store, unreadable_logs

PROBLEMS_FOUND = 1


@click.command("verify")
@options.file_argument
@options.session_option
@options.json_option
def verify_command(file: str, session: str | None, as_json: bool) -> int:
    """Check every session of a Holdfast store.

    FILE is a SQLite store, a folder of JSONL sessions, one session file of it, or `example`. Each session is replayed
    from its first event to its last. The exit code is 0 if all are consistent and 1 otherwise.
    """
    location = find_store(file)
    if location is None and is_example(file):
        return _report(file, _verify_example(file), as_json=as_json)
    if location is None:
        require_file(file)
        raise InvalidInput(f"{file} is not a Holdfast store: `holdfast inspect` checks a file of messages.")
    return _report(location.path, verify_store(location, session), as_json=as_json)


def _report(path: str, found: dict[str, list[str]], *, as_json: bool) -> int:
    wrong = {name: problems for name, problems in found.items() if problems}
    if as_json:
        facts = {"store": path, "ok": not wrong, "sessions": found}
        echo_json(facts)
    else:
        short = shorten_ids(found)
        for name, problems in wrong.items():
            for problem in problems:
                echo(f"{short[name]}: {' '.join(problem.split())}")
        checked = f"{counted(found)} of {path}"
        echo(f"{len(wrong):,} of {checked}: inconsistent." if wrong else f"{checked}: all consistent.")
    return PROBLEMS_FOUND if wrong else 0


def counted(found: Sized) -> str:
    return f"{len(found):,} session{'s' if len(found) != 1 else ''}"


def _verify_example(name: str) -> dict[str, list[str]]:
    """Problems of a bundled session, imported into memory."""
    transcript = open_source(name).transcript
    assert transcript is not None
    with BlockingSessionService(MemoryStore()) as sessions, show_progress("verifying"):
        record = sessions.call(lambda service: import_transcript(service, transcript))
        return {record.id: _verify_session(sessions, record.id)}


def verify_store(location: StoreLocation, session: str | None = None) -> dict[str, list[str]]:
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
