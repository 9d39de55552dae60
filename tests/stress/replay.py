"""Replays a log event by event: every mark must have been made from the state that was in force when it was written.

A store that forgets a condition of its compare-and-set, or commits a batch in parts, leaves a log that no sequence of
correct writes can produce; the checks here find it without knowing how the writers were interleaved.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from holdfast.context import Plan, Request, Skip
from holdfast.context.events import Event, EventKind, SessionRecord

MARKS = frozenset((EventKind.COMPACTION, EventKind.UNDO, EventKind.PIN, EventKind.REDACTION))
_LABEL = re.compile(r"(?P<label>\S+) (?P<mode>skip|rebase) saw (?P<seen>\d+)")
_BATCH = re.compile(r"(?P<name>.+)\.(?P<place>\d+)/(?P<size>\d+)")


def seen_label(label: str, mode: str, request: Request) -> str:
    """Returns the name of a plan that says which events of the root lane it was made from."""
    return f"{label} {mode} saw {request.view.version}"


def label_of(event: Event) -> str:
    """Returns the label of a compaction, without what it saw."""
    found = _LABEL.match(event.body["strategy"])
    return found["label"] if found else str(event.body["strategy"])


class Labelled:
    """A strategy whose plans carry a label in the log."""

    def __init__(self, strategy: object, label: str, mode: str) -> None:
        self._strategy = strategy
        self._label, self._mode = label, mode

    def __call__(self, request: Request) -> Plan | Skip:
        plan = self._strategy(request)  # type: ignore[operator]
        if isinstance(plan, Skip):
            return plan
        return msgspec.structs.replace(plan, strategies=(seen_label(self._label, self._mode, request),))


def batch_ids(name: str, size: int) -> list[str]:
    """Ids of messages that are appended together."""
    return [f"{name}.{place}/{size}" for place in range(size)]


def replay(events: Sequence[Event], record: SessionRecord) -> list[str]:
    """Returns what no sequence of correct writes can have produced; the events are those of all lanes, in order."""
    found: list[str] = []
    if [event.seq for event in events] != list(range(1, len(events) + 1)) or record.version != len(events):
        found.append("the versions do not increase by one")
    found += _incomplete_batches(events, record.parent_seq)
    root = [event for event in events if event.lane is None]
    by_id = {event.id: event for event in events}
    epoch: str | None = None
    mark = 0
    for event in root:
        if event.epoch != epoch:
            found.append(f"{event.id} has epoch {event.epoch} where {epoch} is in force")
        if event.kind == EventKind.COMPACTION:
            found += _compaction_problems(event, epoch, root)
            epoch = event.id
        elif event.kind == EventKind.UNDO:
            previous = by_id[epoch].body.get("previous") if epoch in by_id else None
            if epoch is None or event.body.get("to") != previous:
                found.append(f"undo {event.id} goes to {event.body.get('to')}; {epoch} in force replaced {previous}")
            epoch = event.body.get("to")
        if event.kind in MARKS and event.seq > record.parent_seq:
            mark = event.seq
    tip = record.lanes.get("")
    if (tip.epoch if tip else None) != epoch:
        found.append(f"the tip names checkpoint {tip and tip.epoch} where {epoch} is in force")
    if mark and (tip is None or tip.mark != mark):
        found.append(f"the tip has mark {tip and tip.mark}, the last mark is at {mark}")
    return found


def marks_between(events: Sequence[Event], after: int, until: int) -> list[int]:
    """Seqs of marks in the root lane after one seq and before another."""
    return [event.seq for event in events if event.kind in MARKS and event.lane is None and after < event.seq < until]


def _compaction_problems(event: Event, epoch: str | None, root: Sequence[Event]) -> list[str]:
    found: list[str] = []
    if event.body.get("previous") != epoch:
        found.append(f"compaction {event.id} replaced {event.body.get('previous')} where {epoch} was in force")
    if label := _LABEL.match(event.body["strategy"]):
        seen = int(label["seen"])
        missed = marks_between(root, seen, event.seq)
        if label["mode"] == "skip":
            missed = [other.seq for other in root if seen < other.seq < event.seq]
        if missed:
            found.append(f"compaction {event.body['strategy']!r} at {event.seq} did not see {missed}")
    return found


def _incomplete_batches(events: Sequence[Event], forked_at: int) -> list[str]:
    """Batches of which events are missing, or between whose events others were written; a fork may have cut one."""
    batches: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for event in events:
        if found := _BATCH.fullmatch(event.id):
            batches.setdefault((found["name"], int(found["size"])), []).append((int(found["place"]), event.seq))
    return [
        f"batch {name} of {size} is stored as {stored}"
        for (name, size), stored in batches.items()
        if stored[-1][1] != forked_at
        and [(place, seq - stored[0][1]) for place, seq in stored] != [(place, place) for place in range(size)]
    ]
