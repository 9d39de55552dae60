"""One file imported, and the line that tells of it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click
import msgspec

from ..anatomy import printable
from ..events import Kind
from ..service import BlockingSessionService
from ..transcripts import import_exported, import_transcript, read_transcript
from ..transcripts.exchanged import read_exported
from ..transcripts.notes import Notes
from ..transcripts.shown import in_force


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a file."""

    file: str
    outcome: Literal["imported", "there", "passed over", "failed"]
    id: str | None = None
    kind: str | None = None
    messages: int = 0
    compactions: int = 0
    notes: tuple[str, ...] = ()
    """What was left out."""
    why: str | None = None


def import_file(sessions: BlockingSessionService, file: Path, id: str | None) -> Imported:
    notes = Notes()
    records = read_exported(file, notes)
    if records is not None:
        record = sessions.call(lambda service: import_exported(service, records, id))
        kinds = [line.get("kind") for line in records]
        said, compacted = kinds.count(Kind.MESSAGE), kinds.count(Kind.COMPACTION)
        return _imported(file, record.id, "holdfast", said, compacted, notes.lines())
    read = read_transcript(file)
    record = sessions.call(lambda service: import_transcript(service, read, id))
    compacted = len(in_force(read))
    return _imported(file, record.id, read.kind, record.version - compacted, compacted, read.notes)


def _imported(file: Path, id: str, kind: str, messages: int, compactions: int, notes: tuple[str, ...]) -> Imported:
    return Imported(
        file=str(file),
        outcome="imported",
        id=id,
        kind=kind,
        messages=messages,
        compactions=compactions,
        notes=notes,
    )


def told(one: Imported) -> None:
    """A line for a session, and below it what was left out; failures go where errors go."""
    name = printable(one.file)
    match one.outcome:
        case "failed":
            click.echo(f"holdfast: {' '.join(printable(one.why or name).split())}", err=True)
        case "there":
            click.echo(f"{printable(one.id or '')}  there already  {name}")
        case "imported":
            times = f", {one.compactions:,} {'compaction' if one.compactions == 1 else 'compactions'}"
            said = f"{one.messages:,} messages{times if one.compactions else ''}"
            click.echo(f"{printable(one.id or '')}  {one.kind}, {said}  {name}")
            for note in one.notes:
                click.echo(f"    {printable(note)}")
