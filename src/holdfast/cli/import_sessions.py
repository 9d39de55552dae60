"""`holdfast import`: sessions of other tools into a store, with what they compacted as compactions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from ..errors import InvalidInput, UnknownFormat
from ..models import scrub
from ..service import BlockingSessionService
from ..settings import load_settings, open_settled_store
from ..transcripts import AlreadyThere, NothingSaid
from ..transcripts.folders import session_files_in
from . import options, store_option
from .imported import Imported, import_file, told
from .terminal import working

SOME_FAILED = 1
_NO_SESSION = (UnknownFormat, NothingSaid)
"""In a folder such a file is passed over; one that was named is a failure."""


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(readable=False), metavar="PATH...")
@store_option.store
@click.option("--id", metavar="ID", help="The session's new id; else the one it has.")
@options.as_json
def command(paths: Sequence[str], store: str | None, id: str | None, as_json: bool) -> int:
    """Write sessions of other tools into the store, where they can be searched, forked and gone on with.

    PATH is a session of Claude Code, Codex, pi or OpenCode, a file of messages, what `holdfast export` wrote, or a
    folder with any of them, such as ~/.claude/projects. Compactions that the tool did are compactions here too: the
    context is what it would send next, and they can be undone. What is there already is not written again; what
    broke off is completed. The exit code is 0 if all went well and 1 if some did not.
    """
    files = _files(paths)
    if id is not None and len(files) != 1:
        raise InvalidInput(f"--id names one session, and these are {len(files):,} files: leave it out, or name one.")
    settings = load_settings(flags={"store": store})
    store_option.must_not_be_a_strangers(settings.store)
    done: list[Imported] = []
    with BlockingSessionService(open_settled_store(settings)) as sessions:
        for number, (file, listed) in enumerate(files.items(), 1):
            with working(f"importing {number:,} of {len(files):,}: {file.name}"):
                done.append(_one(sessions, file, id, alone=len(files) == 1, listed=listed))
            if not as_json:
                told(done[-1])
    failed = sum(one.outcome == "failed" for one in done)
    if as_json:
        click.echo(msgspec.json.encode({"store": scrub(settings.store), "failed": failed, "files": done}))
    else:
        _sum_up(done, scrub(settings.store))
    return SOME_FAILED if failed else 0


def _files(paths: Sequence[str]) -> dict[Path, bool]:
    """The files that these paths stand for, and whether each was found in a folder."""
    files: dict[Path, bool] = {}
    for path in paths:
        if not os.path.isdir(path):
            files.setdefault(Path(path), False)
            continue
        found = session_files_in(path)
        if not found:
            raise InvalidInput(f"There is no session file in the folder {path}: name another.")
        for file in found:
            files.setdefault(file, True)
    return files


def _one(sessions: BlockingSessionService, file: Path, id: str | None, *, alone: bool, listed: bool) -> Imported:
    """One bad file does not stop the others; where it is the only one, its error is the command's."""
    try:
        return import_file(sessions, file, id)
    except AlreadyThere as known:
        return Imported(file=str(file), outcome="there", id=known.session_id, why=str(known))
    except (InvalidInput, OSError, RecursionError) as problem:
        if alone and not listed:
            raise
        passed = listed and isinstance(problem, _NO_SESSION)
        return Imported(file=str(file), outcome="passed over" if passed else "failed", why=str(problem))


def _sum_up(done: Sequence[Imported], store: str) -> None:
    counts = {outcome: sum(one.outcome == outcome for one in done) for outcome in ("imported", "there", "failed")}
    click.echo(
        f"{counts['imported']:,} imported into {store}, {counts['there']:,} there already, {counts['failed']:,} failed."
    )
    if passed := sum(one.outcome == "passed over" for one in done):
        click.echo(f"{passed:,} {'file' if passed == 1 else 'files'} passed over: no session is in them.")
