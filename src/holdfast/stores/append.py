"""Append planning and log checks that every store shares."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from ..context.events import SCHEMA, Event, LaneTip, SessionRecord, lane_key
from ..errors import Conflict, DuplicateEvent, InvalidInput, StaleVersion, UnknownEvent
from .base import Appended, Rewrite, Unchanged

NO_TIP = LaneTip()
REWRITTEN = "rewritten"
"""Instead of the digest of content that is gone: a short secret could be guessed from it."""


class LogEntry(msgspec.Struct, frozen=True):
    """An event with its encoded body and content digest."""

    event: Event
    body: bytes
    """Encoded as JSON; may be empty for an event that was read from a store."""
    digest: str
    """Digest of the content as first appended; REWRITTEN after a rewrite."""
    rewritten: str | None = None
    """Digest of the current content, if it was rewritten."""


class AppendPlan(msgspec.Struct, frozen=True):
    """The entries and lane tips that an accepted append writes, and the result to return."""

    entries: tuple[LogEntry, ...]
    tips: dict[str, LaneTip]
    """New tips, by lane."""
    result: Appended


def encode_events(events: Sequence[Event], tip: LaneTip | None = None) -> tuple[LogEntry, ...]:
    """Encode events before any lock is taken; raises InvalidInput for events that cannot be stored."""
    if tip is not None and (not events or len({lane_key(event.lane) for event in events}) > 1):
        raise InvalidInput("A tip needs events of exactly one lane: append each lane separately.")
    return tuple(_encode_event(event) for event in events)


def _encode_event(event: Event) -> LogEntry:
    if not event.id:
        raise InvalidInput("An event id must not be empty: leave it to new_id().")
    try:
        if b"\0" in f"{event.id}{event.kind}{event.time}{event.lane or ''}".encode():
            raise ValueError("its id, kind, time or lane contains a NUL character")
        if event.lane == "":
            event = msgspec.structs.replace(event, lane=None)
        digest = event.digest  # first: each of the two encodes the whole body
        return LogEntry(event, msgspec.json.encode(event.body), digest)
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"Event {event.id!r} cannot be stored as JSON: {error}.") from error


def require_unicode(session_id: str, data: str) -> str:
    """Returns the text; raises InvalidInput if it cannot be encoded as UTF-8, such as a lone surrogate."""
    try:
        data.encode()
    except UnicodeError as error:
        raise InvalidInput(f"Session {session_id!r} cannot store text that is not valid Unicode: {error}.") from error
    return data


def required_lanes(entries: Sequence[LogEntry], when: Unchanged | None) -> set[str]:
    """Returns the lanes whose tips `plan_append` reads."""
    lanes = {lane_key(entry.event.lane) for entry in entries}
    lanes.add("")
    if when is not None:
        lanes.add(lane_key(when.lane))
    return lanes


def plan_append(
    session_id: str,
    entries: Sequence[LogEntry],
    known: Mapping[str, LogEntry],
    version: int,
    tips: Mapping[str, LaneTip],
    after: int | None,
    when: Unchanged | None,
    tip: LaneTip | None,
) -> Appended | AppendPlan:
    """Returns what an append writes, or its result if nothing is to be written (a retry or a conflict).

    Raises DuplicateEvent for a known id with other content, StaleVersion if `after` is not the current version.
    """
    fresh: dict[str, LogEntry] = {}
    for entry in entries:
        earlier = known.get(entry.event.id) or fresh.get(entry.event.id)
        if earlier is None:
            fresh[entry.event.id] = entry
        elif earlier.digest not in (entry.digest, REWRITTEN):
            raise DuplicateEvent(entry.event.id, session_id)
    if not fresh:
        return Appended(tuple(known[entry.event.id].event for entry in entries), version, fresh=False)
    if after is not None and after != version:
        raise StaleVersion(session_id, after, version)
    if when is not None and not _condition_holds(when, version, tips):
        return Appended((), version, conflict=True, fresh=False)
    stored, new_tips = _assign_seqs(fresh, version, tips)
    last = next(reversed(stored.values())).event
    if tip is not None:
        lane = lane_key(last.lane)
        own = new_tips.get(lane) or tips.get(lane, NO_TIP)
        new_tips[lane] = LaneTip(last.seq, tip.epoch, tip.start, own.base, own.base_epoch)
    events = tuple((stored.get(entry.event.id) or known[entry.event.id]).event for entry in entries)
    return AppendPlan(tuple(stored.values()), new_tips, Appended(events, last.seq))


def _assign_seqs(
    fresh: Mapping[str, LogEntry], version: int, tips: Mapping[str, LaneTip]
) -> tuple[dict[str, LogEntry], dict[str, LaneTip]]:
    """Assigns seq and epoch to each new event; a lane's first event sets its base to the root's version and epoch."""
    stored: dict[str, LogEntry] = {}
    new_tips: dict[str, LaneTip] = {}
    for seq, (event_id, entry) in enumerate(fresh.items(), version + 1):
        event = entry.event
        lane = lane_key(event.lane)
        tip = tips.get(lane) or new_tips.get(lane)
        if tip is None and lane:
            tip = new_tips[lane] = LaneTip(base=seq - 1, base_epoch=tips.get("", NO_TIP).epoch)
        epoch = tip.epoch if tip else None
        event = Event(event.id, event.kind, event.time, event.body, event.lane, seq, epoch, event.v)
        stored[event_id] = LogEntry(event, entry.body, entry.digest)
    return stored, new_tips


def _condition_holds(when: Unchanged, version: int, tips: Mapping[str, LaneTip]) -> bool:
    if when.version is not None and when.version != version:
        return False
    return when.mark is None or when.mark == tips.get(lane_key(when.lane), NO_TIP).mark


def check_names(record: SessionRecord) -> None:
    """Raises InvalidInput for ids and names that cannot be stored, before any lock is taken."""
    require_unicode(record.id, record.id + record.created + (record.owner or "") + (record.parent or ""))
    if not record.id:
        raise InvalidInput("A session id must not be empty: leave it to new_id().")


def check_mark(record: SessionRecord, mark: int | None, parent_tips: Mapping[str, LaneTip]) -> None:
    """Raises Conflict if a fork was made from another state of its parent's root lane."""
    if mark is not None and record.parent is not None and mark != parent_tips.get("", NO_TIP).mark:
        raise Conflict(record.parent)


def check_record(record: SessionRecord, parent_version: int | None) -> None:
    """Raises InvalidInput unless version and parent_seq fit the parent; `parent_version` is None without a parent."""
    if record.version != record.parent_seq:
        raise InvalidInput("A new session's version must be its parent_seq, or 0 where it has no parent.")
    last = parent_version or 0
    if not 0 <= record.parent_seq <= last:
        raise InvalidInput(f"A session cannot be forked at {record.parent_seq}: its parent ends at {last}.")


def with_new_fields(record: SessionRecord, new: SessionRecord) -> SessionRecord:
    """Returns the stored record with the fields that a redaction may change."""
    return msgspec.structs.replace(record, system=new.system, tools=new.tools, metadata=new.metadata)


class RewritePlan(msgspec.Struct, frozen=True):
    """The note and tips that an accepted rewrite writes in one session."""

    change: Rewrite
    note: LogEntry
    tips: dict[str, LaneTip]


def plan_rewrite(
    change: Rewrite,
    version: int,
    tips: Mapping[str, LaneTip],
    forks: Iterable[tuple[str, int]],
    others: Collection[str],
) -> RewritePlan | None:
    """Returns what a rewrite adds to one session; None if the session has moved, or has a fork not among `others`.

    `forks` are its forks with the seq up to which they share its events, and its relatives, which have copies.
    """
    if version != change.version or any(seq >= change.since and fork not in others for fork, seq in forks):
        return None
    [note] = encode_events([change.note])
    placed, first = _assign_seqs({note.event.id: note}, version, tips)
    written = placed[note.event.id]
    moved = {"": NO_TIP, **first, **tips}
    moved = {lane: msgspec.structs.replace(tip, mark=written.event.seq) for lane, tip in moved.items()}
    return RewritePlan(change, written, moved)


def rewrite_entries(change: Rewrite, ids: Iterable[str], stored: Mapping[str, LogEntry]) -> list[LogEntry]:
    """Returns the session's own entries of these ids with their new bodies; id, kind and lane are kept."""
    new = []
    for event_id in ids:
        if event_id not in stored:
            raise UnknownEvent(event_id, change.session_id)
        old = stored[event_id].event
        entry = _encode_event(msgspec.structs.replace(old, body=change.change(old)))
        new.append(LogEntry(entry.event, entry.body, REWRITTEN, entry.digest))
    return new


REWRITE_BATCH = 200
"""Events that a rewrite reads, changes and writes at once."""


def batches(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), REWRITE_BATCH):
        yield list(ids[start : start + REWRITE_BATCH])


def find_problems(record: SessionRecord, own: Iterable[LogEntry], seqs: Mapping[str, int]) -> list[str]:
    """Checks seqs, ids and digests of the session's own entries, in stored order, and its lane tips.

    `seqs` maps the id of every visible event, inherited ones included, to its seq.
    """
    found: list[str] = []
    seen: set[str] = set()
    last = record.parent_seq
    for entry in own:
        event = entry.event
        if event.seq != last + 1:
            found.append(f"Event {event.id!r} has seq {event.seq} where {last + 1} is expected.")
        last = event.seq
        if event.id in seen or seqs.get(event.id, event.seq) != event.seq:
            found.append(f"Event id {event.id!r} occurs more than once.")
        seen.add(event.id)
        if event.v <= SCHEMA and event.digest != (entry.rewritten or entry.digest):
            found.append(f"Event {event.id!r} (seq {event.seq}) does not match its digest: its content was changed.")
    if last != record.version:
        found.append(f"The session has version {record.version}, but its last event has seq {last}.")
    return found + _tip_problems(record, seqs)


def _tip_problems(record: SessionRecord, seqs: Mapping[str, int]) -> list[str]:
    found: list[str] = []
    for lane, tip in record.lanes.items():
        name = f"lane {lane!r}" if lane else "the root"
        if max(tip.mark, tip.start, tip.base) > record.version:
            found.append(f"The tip of {name} points past the last event.")
        found.extend(
            f"The tip of {name} names checkpoint {epoch!r}, which is not in the log."
            for epoch in (tip.epoch, tip.base_epoch)
            if epoch is not None and epoch not in seqs
        )
    return found
