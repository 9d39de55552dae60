"""A session of ours that was exported, ready to be written into another store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..errors import InvalidInput
from ..events import Event, Kind, LaneTip, SessionRecord, root_key
from ..messages import lift_media
from .files import bytes_of
from .logged import Logged, Step
from .notes import Notes
from .records import json_values

_MARKS = (Kind.COMPACTION, Kind.UNDO, Kind.PIN, Kind.REDACTION)


def read_exported(file: Path, notes: Notes) -> list[dict[str, Any]] | None:
    """The records of an exported session; None if the file is something else."""
    data = bytes_of(file)
    try:
        first = msgspec.json.decode(data.partition(b"\n")[0])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not isinstance(first, dict) or first.get("kind") != "session" or "created" not in first:
        return None
    if "v" in first:
        raise InvalidInput(
            f"{file} is part of a Holdfast store: write the session out with holdfast export {first.get('id')} "
            f"--store jsonl:{file.parent}, and import that."
        )
    return json_values(data, str(file), notes)


def exchanged(records: Sequence[Mapping[str, Any]], id: str | None = None) -> Logged:
    """Each checkpoint and undo takes effect where it stood."""
    try:
        record = msgspec.convert({key: value for key, value in records[0].items() if key != "kind"}, SessionRecord)
        events = [msgspec.convert(line, Event) for line in records[1:]]
    except msgspec.ValidationError as problem:
        raise InvalidInput(
            f"This is no exported session of Holdfast ({problem}): export it again, with holdfast export."
        ) from problem
    steps: list[Step] = []
    tips: dict[str, LaneTip] = {}
    seqs: dict[str, int] = {}
    starts: dict[str | None, int] = {None: 0}
    for seq, event in enumerate(events, 1):
        seqs[event.id] = seq
        lane, tip = root_key(event.lane), None
        if event.kind in _MARKS:
            now = tips.get(lane, LaneTip())
            if event.kind == Kind.COMPACTION:
                boundary = event.body.get("boundary")
                starts[event.id] = seqs.get(boundary, 0) if boundary else now.start
                now = LaneTip(seq, event.id, starts[event.id])
            elif event.kind == Kind.UNDO:
                to = event.body.get("to")
                now = LaneTip(seq, to, starts.get(to, 0))
            tip = tips[lane] = now
        body, media = lift_media(event.body)
        steps.append(Step(msgspec.structs.replace(event, body=body, seq=seq, epoch=None), media, tip))
    name = record.id if id is None else id
    return Logged(msgspec.structs.replace(record, id=name, parent=None, parent_seq=0, version=0, lanes={}), steps)
