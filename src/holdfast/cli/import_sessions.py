"""`holdfast import`: imports other tools' sessions into a store, including their compactions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import click
import msgspec

from ..context.events import EventKind
from ..errors import InvalidInput, UnknownFormat
from ..io.text import printable
from ..models import scrub
from ..sessions import BlockingSessionService
from ..sessions.session_ids import shorten_ids
from ..settings import load_settings, open_configured_store
from ..transcripts import AlreadyImported, EmptyTranscript, import_exported, import_transcript, read_transcript
from ..transcripts.files import find_session_files
from ..transcripts.importing import read_export_file
from ..transcripts.transcript import TranscriptWarnings, effective_compactions
from . import options
from .console import show_progress
from .output import echo, echo_error, echo_json
from .sources import resolve_example
from .stores import refuse_foreign_database


class ImportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The result of importing one file."""

    file: str
    outcome: Literal["imported", "there", "passed over", "failed"]
    id: str | None = None
    kind: str | None = None
    messages: int = 0
    compactions: int = 0
    notes: tuple[str, ...] = ()
    """Parts of the file that were left out."""
    why: str | None = None


def import_file(sessions: BlockingSessionService, file: Path, id: str | None) -> ImportedFile:
    notes = TranscriptWarnings()
    records = read_export_file(file, notes)
    if records is not None:
        record = sessions.call(lambda service: import_exported(service, records, id))
        kinds = [line.get("kind") for line in records]
        messages, compacted = kinds.count(EventKind.MESSAGE), kinds.count(EventKind.COMPACTION)
        return _import_record(file, record.id, "holdfast", messages, compacted, notes.lines())
    transcript = read_transcript(file)
    record = sessions.call(lambda service: import_transcript(service, transcript, id))
    compacted = len(effective_compactions(transcript))
    return _import_record(file, record.id, transcript.kind, record.version - compacted, compacted, transcript.warnings)


def _import_record(
    file: Path, id: str, kind: str, messages: int, compactions: int, notes: tuple[str, ...]
) -> ImportedFile:
    return ImportedFile(
        file=str(file),
        outcome="imported",
        id=id,
        kind=kind,
        messages=messages,
        compactions=compactions,
        notes=notes,
    )


def print_imported(one: ImportedFile, known: Iterable[str]) -> None:
    """Prints one line per session and indented notes; failures go to stderr. `known` are all ids of the store."""
    name, id = printable(one.file), printable(shorten_ids([*known, one.id])[one.id]) if one.id else ""
    match one.outcome:
        case "failed":
            echo_error(one.why or name)
        case "there":
            echo(f"{id}  already there  {name}")
        case "imported":
            times = f", {one.compactions:,} {'compaction' if one.compactions == 1 else 'compactions'}"
            counts = f"{one.messages:,} messages{times if one.compactions else ''}"
            echo(f"{id}  {one.kind}, {counts}  {name}")
            for note in one.notes:
                echo(f"    {note}")


SOME_FAILED = 1
_NOT_A_SESSION = (UnknownFormat, EmptyTranscript)
"""In a folder such a file is skipped; named explicitly, it is a failure."""


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(readable=False), metavar="PATH...")
@options.store_option
@click.option("--id", metavar="ID", help="New session id; default: the id in the file.")
@options.json_option
def import_command(paths: Sequence[str], store: str | None, id: str | None, as_json: bool) -> int:
    """Import sessions of other tools into the store, to search, fork or continue them.

    PATH is a session of Claude Code, Codex, pi or OpenCode, a file of messages, a file from `holdfast export`, a folder
    of them, such as ~/.claude/projects, or `example`. The tool's compactions are imported as compactions: the context
    is what the tool would send next, and they can be undone. Sessions already in the store are skipped; partial
    imports are completed. The exit code is 0 if all files succeeded and 1 if some failed.
    """
    files = _expand_paths(paths)
    if id is not None and len(files) != 1:
        raise InvalidInput(f"--id needs a single file, not {len(files):,}: leave it out, or name one file.")
    settings = load_settings(flags={"store": store})
    refuse_foreign_database(settings.store)
    done: list[ImportedFile] = []
    with BlockingSessionService(open_configured_store(settings)) as sessions:
        known = {record.id for record in sessions.list()}
        for number, (file, listed) in enumerate(files.items(), 1):
            with show_progress(f"importing {number:,} of {len(files):,}: {file.name}"):
                done.append(_import_one(sessions, file, id, alone=len(files) == 1, listed=listed))
            if not as_json:
                known.update(filter(None, [done[-1].id]))
                print_imported(done[-1], known)
    failed = sum(one.outcome == "failed" for one in done)
    if as_json:
        echo_json({"store": scrub(settings.store), "failed": failed, "files": done})
    else:
        _print_totals(done, scrub(settings.store))
    return SOME_FAILED if failed else 0


def _expand_paths(paths: Sequence[str]) -> dict[Path, bool]:
    """Expands folders; maps each file to whether it was found in a folder."""
    files: dict[Path, bool] = {}
    for path in map(resolve_example, paths):
        if not os.path.isdir(path):
            files.setdefault(Path(path), False)
            continue
        found = find_session_files(path)
        if not found:
            raise InvalidInput(f"No session file in the folder {path}: name another folder.")
        for file in found:
            files.setdefault(file, True)
    return files


def _import_one(
    sessions: BlockingSessionService, file: Path, id: str | None, *, alone: bool, listed: bool
) -> ImportedFile:
    """Imports one file. A failure does not stop the others, but is raised if it is the only file."""
    try:
        return import_file(sessions, file, id)
    except AlreadyImported as known:
        return ImportedFile(file=str(file), outcome="there", id=known.session_id, why=str(known))
    except (InvalidInput, OSError, RecursionError, MemoryError) as problem:
        if alone and not listed:
            raise
        skipped = listed and isinstance(problem, _NOT_A_SESSION)
        return ImportedFile(file=str(file), outcome="passed over" if skipped else "failed", why=str(problem))


def _print_totals(done: Sequence[ImportedFile], store: str) -> None:
    counts = {outcome: sum(one.outcome == outcome for one in done) for outcome in ("imported", "there", "failed")}
    echo(
        f"{counts['imported']:,} imported into {store}, {counts['there']:,} already there, {counts['failed']:,} failed."
    )
    if skipped := sum(one.outcome == "passed over" for one in done):
        echo(f"{skipped:,} {'file' if skipped == 1 else 'files'} skipped: no session in them.")
