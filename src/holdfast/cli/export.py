"""`holdfast export`: exports a session to a file or stdout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import click

from ..errors import InvalidInput
from ..sessions import BlockingSessionService
from ..sessions.session_ids import shorten_ids
from ..settings import load_settings
from ..transcripts import ExportFormat, export_session
from ..transcripts.exporting import EXPORT_FORMATS
from ..transcripts.importing import read_export_file
from ..transcripts.transcript import TranscriptWarnings
from . import options
from .console import show_progress
from .options import NameChoice
from .output import echo, echo_error, write_stdout
from .sources import check_writable, refuse_existing, write_output
from .stores import require_store


@click.command("export")
@click.argument("session", required=False, metavar="[SESSION]")
@options.store_option
@click.option(
    "--format",
    "form",
    type=NameChoice("format", EXPORT_FORMATS),
    default="holdfast",
    metavar="NAME",
    help="holdfast (lossless), pi (a session file of pi), or messages (the context as a list).",
)
@click.option("--whole", is_flag=True, help="With --format messages: the whole history, not only the context.")
@click.option("-o", "--output", "out", metavar="OUT", help="Write to OUT; default, and -: stdout.")
@click.option("--force", is_flag=True, help="Overwrite OUT if it exists.")
def export_command(
    session: str | None, store: str | None, form: str, whole: bool, out: str | None, force: bool
) -> None:
    """Write a session to a file or to stdout; default: the newest.

    The holdfast format can be imported into any store, with every compaction. OUT is written atomically; an existing
    file is only replaced with --force.
    """
    if out not in (None, "-"):
        _check_target(out, force=force)
    location = require_store(load_settings(flags={"store": store}).store)
    with location.open() as sessions, show_progress("exporting"):
        named = session or location.session_id
        chosen = location.choose_session(sessions, session).id if named else _newest_session(sessions, location.path)
        exported = sessions.call(
            lambda service: export_session(service, chosen, cast("ExportFormat", form), whole=whole)
        )
    for note in exported.warnings:
        echo_error(note)
    if out in (None, "-"):
        write_stdout(exported.data)
    else:
        write_output(out, exported.data)
        echo(f"{chosen} written to {out}", err=True)


def _check_target(out: str, *, force: bool) -> None:
    refuse_existing(out, force=force)
    if not _was_exported(out):
        check_writable(out, None, force=force)


def _was_exported(out: str) -> bool:
    """True for an earlier export, which may be replaced; a store starts alike and may not."""
    try:
        return os.path.isfile(out) and read_export_file(Path(out), TranscriptWarnings()) is not None
    except InvalidInput:
        return False


def _newest_session(sessions: BlockingSessionService, path: str) -> str:
    found = sessions.list()
    if not found:
        raise InvalidInput(f"{path} holds no session yet: import one or chat first.")
    short = shorten_ids(record.id for record in found)[found[0].id]
    echo(f"holdfast: no session was named: exporting the newest, {short}.", err=True)
    return found[0].id
