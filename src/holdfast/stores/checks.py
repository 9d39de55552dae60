"""What can be wrong with a stored log: the checks that every store's `problems` makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..events import SCHEMA, SessionRecord
from .admission import Entry


def find_problems(record: SessionRecord, own: Iterable[Entry], places: Mapping[str, int]) -> list[str]:
    """Check the session's own entries, in stored order, and its tips.

    `places` gives the seq of every event that the session sees, inherited ones included.
    """
    found: list[str] = []
    seen: set[str] = set()
    last = record.parent_seq
    for entry in own:
        event = entry.event
        if event.seq != last + 1:
            found.append(f"Event {event.id!r} has seq {event.seq} where {last + 1} is due.")
        last = event.seq
        if event.id in seen or places.get(event.id, event.seq) != event.seq:
            found.append(f"Event id {event.id!r} occurs more than once.")
        seen.add(event.id)
        if event.v <= SCHEMA and event.digest != (entry.rewritten or entry.digest):
            found.append(f"Event {event.id!r} (seq {event.seq}) does not match its digest: it was changed.")
    if last != record.version:
        found.append(f"The session says version {record.version}, but its last event is {last}.")
    return found + _tip_problems(record, places)


def _tip_problems(record: SessionRecord, places: Mapping[str, int]) -> list[str]:
    found: list[str] = []
    for lane, tip in record.lanes.items():
        name = f"lane {lane!r}" if lane else "the root"
        if max(tip.mark, tip.start, tip.base) > record.version:
            found.append(f"The tip of {name} points past the last event.")
        found.extend(
            f"The tip of {name} names checkpoint {epoch!r}, which is not in the log."
            for epoch in (tip.epoch, tip.base_epoch)
            if epoch is not None and epoch not in places
        )
    return found
