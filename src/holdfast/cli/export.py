"""`holdfast export`: a session out of the store, for another store, another tool, or a program."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import cast

import click

from ..errors import InvalidInput
from ..service import BlockingSessionService
from ..settings import load_settings
from ..transcripts import ExportFormat, export_session
from ..transcripts.exchanged import read_exported
from ..transcripts.exporting import FORMATS
from ..transcripts.notes import Notes
from . import store_option
from .names import OneOf
from .shape import must_be_writable, write
from .terminal import working


@click.command("export")
@click.argument("session", required=False, metavar="[SESSION]")
@store_option.store
@click.option(
    "--format",
    "form",
    type=OneOf("format", FORMATS),
    default="holdfast",
    metavar="NAME",
    help="holdfast (nothing is lost), pi (a session file of pi), or messages (the context as a list).",
)
@click.option("--whole", is_flag=True, help="With messages: all that was ever said, not only the context.")
@click.option("-o", "--output", "out", metavar="OUT", help="Write to this file; without it, and with -, to stdout.")
@click.option("--force", is_flag=True, help="Let OUT be a file that is there already.")
def command(session: str | None, store: str | None, form: str, whole: bool, out: str | None, force: bool) -> None:
    """Write a SESSION to a file or to stdout; without SESSION, the newest.

    What the format holdfast writes can be imported into any store, with every compaction. A file is written all at
    once or not at all, and one that is there already only with --force.
    """
    if out not in (None, "-"):
        _must_be_free(out, force=force)
    place = store_option.existing(load_settings(flags={"store": store}).store)
    with place.open() as sessions, working("exporting"):
        named = session or place.only
        chosen = place.choose(sessions, session).id if named else _newest(sessions, place.path)
        exported = sessions.call(
            lambda service: export_session(service, chosen, cast("ExportFormat", form), whole=whole)
        )
    for note in exported.notes:
        click.echo(f"holdfast: {note}", err=True)
    if out in (None, "-"):
        sys.stdout.buffer.write(exported.data)
        sys.stdout.flush()
    else:
        write(out, exported.data)
        click.echo(f"{chosen} written to {out}", err=True)


def _must_be_free(out: str, *, force: bool) -> None:
    if os.path.isfile(out) and not force:
        raise InvalidInput(f"{out} is there already: write somewhere else, or say --force.")
    if not _was_exported(out):
        must_be_writable(out, None, force=force)


def _was_exported(out: str) -> bool:
    """What was exported before may be replaced; a store, which begins alike, never."""
    try:
        return os.path.isfile(out) and read_exported(Path(out), Notes()) is not None
    except InvalidInput:
        return False


def _newest(sessions: BlockingSessionService, path: str) -> str:
    found = sessions.list(limit=1)
    if not found:
        raise InvalidInput(f"{path} holds no session yet: there is nothing to export.")
    click.echo(f"holdfast: no session was named: this is the newest, {found[0].id}.", err=True)
    return found[0].id
