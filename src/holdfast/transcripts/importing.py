"""Import another tool's session, or an exported one, into a store, with its compactions as checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from anyio import to_thread

from ..context.events import Event, EventKind, LaneTip, SessionRecord, lane_key
from ..errors import AlreadyImported, InvalidInput, UnknownSession
from ..messages import extract_media
from ..sessions import SessionService
from ..sessions.transfer import read_export
from ..stores import Slice
from .files import read_session_bytes
from .log import ImportLog, ImportStep, log_from_transcript
from .records import parse_json_values
from .transcript import Transcript, TranscriptWarnings

_CHECKPOINT_KINDS = (EventKind.COMPACTION, EventKind.UNDO, EventKind.PIN, EventKind.REDACTION)


def read_export_file(file: Path, warnings: TranscriptWarnings) -> list[dict[str, Any]] | None:
    """Reads the records of a session exported by Holdfast; returns None for any other file."""
    data = read_session_bytes(file)
    try:
        first = msgspec.json.decode(data.partition(b"\n")[0])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not isinstance(first, dict) or first.get("kind") != "session" or "created" not in first:
        return None
    if "v" in first:
        raise InvalidInput(
            f"{file} is part of a Holdfast store: export the session with holdfast export {first.get('id')} "
            f"--store jsonl:{file.parent}, and import that file."
        )
    return parse_json_values(data, str(file), warnings)


def log_from_export(records: Sequence[Mapping[str, Any]], id: str | None = None) -> ImportLog:
    """Builds the log of an exported session; each checkpoint and undo moves the tip of its lane."""
    record, events = read_export(records)
    steps: list[ImportStep] = []
    tips: dict[str, LaneTip] = {}
    seqs: dict[str, int] = {}
    starts: dict[str | None, int] = {None: 0}
    for seq, event in enumerate(events, 1):
        seqs[event.id] = seq
        lane, tip = lane_key(event.lane), None
        if event.kind in _CHECKPOINT_KINDS:
            now = tips.get(lane, LaneTip())
            if event.kind == EventKind.COMPACTION:
                boundary = event.body.get("boundary")
                starts[event.id] = seqs.get(boundary, 0) if boundary else now.start
                now = LaneTip(seq, event.id, starts[event.id])
            elif event.kind == EventKind.UNDO:
                to = event.body.get("to")
                now = LaneTip(seq, to, starts.get(to, 0))
            tip = tips[lane] = now
        body, media = extract_media(event.body)
        steps.append(ImportStep(msgspec.structs.replace(event, body=body, seq=seq, epoch=None), media, tip))
    name = record.id if id is None else id
    return ImportLog(msgspec.structs.replace(record, id=name, parent=None, parent_seq=0, version=0, lanes={}), steps)


APPEND_BATCH = 500
"""Maximum events of one append."""


async def import_transcript(service: SessionService, transcript: Transcript, id: str | None = None) -> SessionRecord:
    """Imports a session of another tool; its id is the tool's, or the one given.

    Its context is what the tool would send next, and its compactions can be undone, forked from and searched.
    Importing again resumes an interrupted import, and adds messages that the tool has appended since.
    """
    log = await to_thread.run_sync(log_from_transcript, transcript, service.estimator, id)
    return await _write_log(service, log)


async def import_exported(
    service: SessionService, records: Sequence[Mapping[str, Any]], id: str | None = None
) -> SessionRecord:
    """Imports the records of `SessionService.export` without loss, lanes and undone compactions included."""
    return await _write_log(service, log_from_export(records, id))


async def _write_log(service: SessionService, ready: ImportLog) -> SessionRecord:
    session_id = ready.record.id
    try:
        await service.get(session_id)
    except UnknownSession:
        await service.store.create(ready.record)
        known = 0
    else:
        known = await _stored_count(service, ready)
    for batch in _batches(ready.steps[known:]):
        media = {digest: data for step in batch for digest, data in step.media.items()}
        await service.store.append(session_id, [step.event for step in batch], tip=batch[-1].tip, media=media)
    return await service.get(session_id)


async def _stored_count(service: SessionService, ready: ImportLog) -> int:
    """How many events are stored already. Raises InvalidInput if the stored session is a different one."""
    session_id = ready.record.id
    stored = await service.store.read(session_id, Slice(any_lane=True))
    if len(stored) > len(ready.steps) or not all(map(_is_same_event, stored, (step.event for step in ready.steps))):
        raise InvalidInput(
            f"Session {session_id!r} already exists, and is a different one or was continued here: "
            "to import this one too, use another --id."
        )
    if len(stored) == len(ready.steps):
        raise AlreadyImported(session_id)
    return len(stored)


def _is_same_event(stored: Event, ready: Event) -> bool:
    return (stored.id, stored.kind, _comparable_content(stored)) == (ready.id, ready.kind, _comparable_content(ready))


def _comparable_content(event: Event) -> list[Any]:
    """The part of an event that does not depend on the token estimator."""
    if event.kind == EventKind.COMPACTION:
        return [event.body.get("boundary"), event.body.get("summary")]
    return [event.body.get("message") if event.kind == EventKind.MESSAGE else event.body]


def _batches(steps: Sequence[ImportStep]) -> Iterator[list[ImportStep]]:
    """Batches of messages of one lane; each event that moves the tip is a batch of its own."""
    batch: list[ImportStep] = []
    for step in steps:
        marks = step.tip is not None or (batch and batch[-1].tip is not None)
        if batch and (marks or batch[-1].event.lane != step.event.lane or len(batch) == APPEND_BATCH):
            yield batch
            batch = []
        batch.append(step)
    if batch:
        yield batch
