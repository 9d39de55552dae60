"""Checks a log against the reports of its writers, in a process that wrote nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from holdfast import Outcome, SessionService, open_store
from holdfast.context.events import Event, EventKind
from stress.replay import label_of, replay
from stress.reports import Appended, Compacted, Complaint, Report
from stress.writer import SESSION, complaints

LOSERS = (Outcome.CONFLICT, Outcome.NOTHING_TO_COMPACT)
"""The only outcomes of a compaction in these tests besides a commit."""


class LogCheck(msgspec.Struct):
    """Problems and counts of one log."""

    problems: list[str]
    events: int = 0
    compactions: int = 0
    torn: int = 0
    """Torn lines left by a crash: reported, but not a problem."""


async def check_log(store: str, reports: Sequence[Sequence[Report]], *, killed: bool = False) -> LogCheck:
    """`reports` has one sequence per writer; a killed one may have done one operation more than it reported."""
    async with SessionService(open_store(store), estimator="chars/4") as service:
        events = await service.events(SESSION)
        findings = await service.verify(SESSION)
        context = await service.context(SESSION)
        visible = await service.events(SESSION, archived=False)
        archived = await service.events(SESSION, archived=True)
        record = await service.get(SESSION)
    problems = [finding for finding in findings if "skipped" not in finding]
    problems += complaints(context.messages) if events else []
    problems += replay(events, record)
    if len(visible) + len(archived) != sum(event.kind == EventKind.MESSAGE for event in events):
        problems.append("some message is neither visible nor archived")
    problems += _doubled(events)
    for own in reports:
        problems += _missing(events, own)
        problems += _backwards(own)
    problems += _undecided(events, reports, killed)
    torn = len(findings) - len([finding for finding in findings if "skipped" not in finding])
    return LogCheck(problems, len(events), len(_labels(events)), torn)


def _doubled(events: Sequence[Event]) -> list[str]:
    return [
        f"event {name} is in the log {times} times"
        for name, times in Counter(e.id for e in events).items()
        if times > 1
    ]


def _missing(events: Sequence[Event], reports: Sequence[Report]) -> list[str]:
    """Acknowledged events that are not in the log, or not at the reported seq."""
    seqs = {event.id: event.seq for event in events}
    expected = [
        pair for item in reports if isinstance(item, Appended) for pair in zip(item.ids, item.seqs, strict=True)
    ]
    return [f"event {name} is not at {seq} but {seqs.get(name)}" for name, seq in expected if seqs.get(name) != seq]


def _backwards(reports: Sequence[Report]) -> list[str]:
    """Versions seen by one writer must only increase; also returns its complaints."""
    found: list[str] = []
    newest = 0
    for item in reports:
        if isinstance(item, Complaint):
            found.append(item.text)
        elif isinstance(item, Appended):
            if [newest, *item.seqs] != sorted({newest, *item.seqs}):
                found.append(f"after version {newest} came {item.seqs}")
            newest = max(item.seqs)
        elif isinstance(item, Compacted):
            if item.version < newest or (item.outcome == Outcome.COMPACTED and item.version == newest):
                found.append(f"compaction {item.label} took version {newest} to {item.version}")
            newest = item.version
    return found


def _undecided(events: Sequence[Event], reports: Sequence[Sequence[Report]], killed: bool) -> list[str]:
    """Committed compactions are in the log, others are not; a killed writer may have committed one unreported."""
    labels = _labels(events)
    found: list[str] = [
        f"compaction {label} is in the log more than once" for label in labels if labels.count(label) > 1
    ]
    unreported = set(labels)
    for item in (item for own in reports for item in own if isinstance(item, Compacted)):
        won = item.outcome == Outcome.COMPACTED
        if won != (item.label in unreported) or not (won or item.outcome in LOSERS):
            found.append(f"compaction {item.label} reported {item.outcome}: in the log: {item.label in labels}")
        unreported.discard(item.label)
    if unreported and not (killed and len(unreported) <= len(reports)):
        found.append(f"unreported compactions: {sorted(unreported)}")
    return found


def _labels(events: Sequence[Event]) -> list[str]:
    return [label_of(event) for event in events if event.kind == EventKind.COMPACTION]
