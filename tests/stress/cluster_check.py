"""Checks the logs of a cluster against the reports of its applications, in a process that wrote nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import asyncpg

from holdfast import Outcome, SessionService, open_store
from holdfast.context.events import Event, EventKind, SessionRecord
from holdfast.errors import UnknownEvent
from holdfast.sessions.lease import LEASE_SECONDS
from judge import judge
from stress.application import PRESET
from stress.replay import label_of, marks_between, replay
from stress.reports import Appended, Compacted, Complaint, Forked, Pinned, Redaction, Report, Undone

LOSERS = (Outcome.CONFLICT, Outcome.NOTHING_TO_COMPACT, Outcome.NO_PROGRESS, Outcome.CANNOT_FIT)
"""Outcomes of the applications' compactions that leave the log as it was."""
_SECRET = re.compile(rb"skq[0-9a-f]{16}")


async def check_cluster(
    kind: str, store: str, place: Path, reports: Sequence[Report]
) -> tuple[list[str], Counter[str]]:
    """Returns the violations, and counts of what the logs have."""
    problems = [item.text for item in reports if isinstance(item, Complaint)]
    counts: Counter[str] = Counter(type(item).__name__.lower() + " reports" for item in reports)
    gone = {item.secret for item in reports if isinstance(item, Redaction) and item.done}
    begun = {(item.session, item.secret, item.event) for item in reports if isinstance(item, Redaction)}
    async with SessionService(open_store(store), preset=PRESET) as service:
        records = {record.id: record for record in await service.list()}
        problems += [
            f"{item.fork} was acknowledged and does not exist or does not start at {item.version}"
            for item in reports
            if isinstance(item, Forked) and (item.fork not in records or records[item.fork].parent_seq > item.version)
        ]
        problems += await _redacted(service, records, gone)
        for session, secret, event in sorted(begun, key=str):
            await _redact_again(service, session, secret, event)
        problems += await _redacted(service, records, {secret for _, secret, _ in begun})
        for id in records:
            own = [item for item in reports if getattr(item, "session", None) == id]
            problems += [f"{id}: {problem}" for problem in await _session_problems(service, id, own, counts)]
    left = await _secrets_in_rows(store) if kind == "postgres" else _secrets_in_files(place)
    problems += [f"{secret} was redacted and is still stored" for _, secret, _ in begun if secret.encode() in left]
    counts["redactions"] = len(begun)
    counts["sessions"] = len(records)
    return problems, counts


async def _session_problems(
    service: SessionService, id: str, reports: Sequence[Report], counts: Counter[str]
) -> list[str]:
    events, record = await service.events(id), await service.get(id)
    problems = [*_missing(events, reports), *_marks(events, reports), *replay(events, record)]
    if not await service.ready(id, timeout=2 * LEASE_SECONDS):
        problems.append("its lease is still held")
    problems += [found for found in await service.verify(id) if "skipped" not in found]
    context = await service.context(id)
    if context.messages:
        problems += judge(context.messages, "openai-chat", pending_ok=True, extras_ok=True)
    problems += await _inherited(service, record, events)
    counts["events acknowledged"] += sum(len(item.ids) for item in reports if isinstance(item, Appended))
    counts["events in the logs"] += len(events)
    counts.update(f"{event.kind} events" for event in events if event.seq > record.parent_seq)
    return problems


def _missing(events: Sequence[Event], reports: Iterable[Report]) -> Iterator[str]:
    """Acknowledged events that are not stored once, at the reported seq, right after the required version."""
    seqs = {event.id: event.seq for event in events}
    if len(seqs) != len(events):
        yield "an id occurs more than once"
    for item in reports:
        if isinstance(item, Appended):
            for id, seq in zip(item.ids, item.seqs, strict=True):
                if seqs.get(id) != seq:
                    yield f"{id} was acknowledged at {seq} and is stored at {seqs.get(id)}"
            if item.after is not None and item.seqs[0] != item.after + 1:
                yield f"{item.ids} required version {item.after} and is stored at {item.seqs[0]}"


def _marks(events: Sequence[Event], reports: Sequence[Report]) -> Iterator[str]:
    """Acknowledged marks that are not in the log, lost ones that are, and marks that overtook others."""
    seqs = {event.id: event.seq for event in events}
    labels = Counter(label_of(event) for event in events if event.kind == EventKind.COMPACTION)
    undos = Counter(event.body.get("to") for event in events if event.kind == EventKind.UNDO)
    undone = Counter(item.to for item in reports if isinstance(item, Undone))
    yield from (f"{times} undos to {to} are acknowledged, {undos[to]} stored" for to, times in (undone - undos).items())
    for item in reports:
        match item:
            case Compacted():
                expected = item.outcome == Outcome.COMPACTED
                if labels[item.label] != expected or not (expected or item.outcome in LOSERS):
                    yield f"compaction {item.label} was {item.outcome} and is stored {labels[item.label]} times"
            case Pinned(id=id, after=after):
                if id not in seqs:
                    yield f"pin {id} was acknowledged and is not stored"
                elif after is not None and (missed := marks_between(events, after, seqs[id])):
                    yield f"pin {id} required version {after} and did not see {missed}"
            case Undone(to=to, after=after):
                own = [event.seq for event in events if event.kind == EventKind.UNDO and event.body.get("to") == to]
                if own and all(seq <= after or marks_between(events, after, seq) for seq in own):
                    yield f"an undo to {to} required version {after} and did not see a mark"


async def _inherited(service: SessionService, record: SessionRecord, events: Sequence[Event]) -> list[str]:
    """A fork has the events of its parent up to where it begins."""
    if record.parent is None:
        return []
    parent = [event.id for event in await service.events(record.parent)][: record.parent_seq]
    return [] if [event.id for event in events][: record.parent_seq] == parent else ["it differs from its parent"]


async def _redact_again(service: SessionService, session: str, secret: str, event: str | None) -> None:
    if event is None:
        await service.redact_text(session, secret)
        return
    try:
        await service.redact(session, event)
    except UnknownEvent:  # the append was not acknowledged
        return


async def _redacted(service: SessionService, records: Iterable[str], secrets: set[str]) -> list[str]:
    """Sessions whose export, context or search still has a redacted text."""
    problems: list[str] = []
    for id in records:
        shown = str([await service.export(id), (await service.context(id)).request])
        problems += [f"{id}: {secret} was redacted and is shown" for secret in secrets if secret in shown]
    for secret in sorted(secrets)[:40]:
        if await service.store.search(secret):  # type: ignore[attr-defined]
            problems.append(f"{secret} was redacted and is found by a search")
    return problems


def _secrets_in_files(place: Path) -> set[bytes]:
    files = [path for path in place.rglob("*") if path.is_file() and path.suffix not in (".txt", ".err")]
    return {secret for path in files for secret in _SECRET.findall(path.read_bytes())}


async def _secrets_in_rows(store: str) -> set[bytes]:
    found: set[bytes] = set()
    connection: Any = await asyncpg.connect(store)
    try:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'holdfast'")
        for (table,) in tables:
            for (row,) in await connection.fetch(f'SELECT t::text FROM holdfast."{table}" AS t'):
                found.update(_SECRET.findall(row.encode()))
    finally:
        await connection.close()
    return found
