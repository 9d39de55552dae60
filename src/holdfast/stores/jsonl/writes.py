"""Writes: create and append extend files, rewrite replaces them."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ...context.events import LaneTip, SessionRecord
from ...errors import InvalidInput, StoreClosed, UnknownEvent
from ...io import files
from ..append import (
    AppendPlan,
    LogEntry,
    RewritePlan,
    batches,
    check_mark,
    check_record,
    plan_append,
    plan_rewrite,
    required_lanes,
    rewrite_entries,
)
from ..base import Appended, Rewrite, Unchanged
from .folder import SessionFolder, file_name
from .format import (
    MAX_SEQ,
    TORN_MARKER,
    LocatedLine,
    LogLine,
    change_header,
    decode_line,
    encode_header,
    encode_line,
)
from .index import IndexedFile, StaleIndexError

log = logging.getLogger("holdfast.stores.jsonl")


def create_session(folder: SessionFolder, record: SessionRecord, header: bytes, mark: int | None) -> None:
    os.makedirs(folder.path, exist_ok=True)
    with folder.shared_lock(writing=True), folder.session_lock(record.id):
        parent = None if record.parent is None else folder.sync_index(record.parent)
        check_record(record, parent.version if parent else None)
        check_mark(record, mark, folder.index.lane_tips(parent, [""]) if parent else {})
        if os.path.exists(folder.log_file(record.id)) or os.path.exists(folder.hidden_file(record.id)):
            raise InvalidInput(f"Session {record.id!r} exists already: use another id.")
        files.replace_durably(folder.log_file(record.id), [header])


def encode_new_header(record: SessionRecord) -> bytes:
    """Encodes the first line of a session's file, before any lock is taken."""
    try:
        return encode_header(record)
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"Session {record.id!r} cannot be stored as JSON: {error}.") from error


def append_events(
    folder: SessionFolder,
    session_id: str,
    entries: tuple[LogEntry, ...],
    after: int | None,
    when: Unchanged | None,
    tip: LaneTip | None,
    media: Mapping[str, str],
) -> Appended:
    folder.require_session(session_id)
    with folder.shared_lock(writing=True), folder.session_lock(session_id):
        chain = folder.chain(session_id, locked=True)
        indexed = chain[0][0]
        tips = folder.index.lane_tips(indexed, required_lanes(entries, when))
        earlier = folder.find_entries(chain, [entry.event.id for entry in entries])
        plan = plan_append(session_id, entries, earlier, indexed.version, tips, after, when, tip)
        if isinstance(plan, AppendPlan):
            folder.store_media(session_id, {digest: data.encode() for digest, data in media.items()})
            _write_append(folder, indexed, plan, tip is not None, list(media))
            return plan.result
        return plan


def _write_append(
    folder: SessionFolder, indexed: IndexedFile, plan: AppendPlan, with_tip: bool, media: list[str]
) -> None:
    """Writes all lines at once, then updates the index, which may fail without losing the append."""
    last = len(plan.entries) - 1
    lines = [LogLine(entry, more=number < last) for number, entry in enumerate(plan.entries)]
    tip = plan.tips[lines[-1].entry.event.lane or ""] if with_tip else None
    lines[-1] = LogLine(plan.entries[-1], tip, media)
    data = TORN_MARKER if indexed.size > indexed.indexed_size else b""
    located: list[LocatedLine] = []
    for line in lines:
        encoded = encode_line(line)
        located.append(LocatedLine(line, indexed.size + len(data), len(encoded)))
        data += encoded
    stat = files.append_bytes(folder.log_file(indexed.id), data)
    try:
        folder.index.add_lines(indexed, located, plan.tips, indexed.size + len(data), stat)
    except StoreClosed:
        log.debug("%s was closed after the append was written.", folder.path)
    except (sqlite3.Error, StaleIndexError) as error:
        log.warning("The index of %s was not updated and will be rebuilt: %s", folder.path, error)
        folder.index.reset(error, indexed.generation)


def rewrite_sessions(folder: SessionFolder, changes: Sequence[Rewrite]) -> bool | None:
    """Replaces the sessions' files together, dropping torn bytes, which may contain the same text.

    None while deletions still have to copy events to forks.
    """
    for change in changes:
        folder.require_session(change.session_id)
    with folder.exclusive_lock():
        if folder.has_hidden():
            return None
        contents: dict[str, Iterator[bytes]] = {}
        forgotten: list[str] = []
        names = {change.session_id for change in changes}
        parents = [(fork.parent, fork.id, fork.parent_seq) for fork in folder.read_headers() if fork.parent in names]
        for change in changes:
            indexed = folder.sync_index(change.session_id)
            forks = [(fork, seq) for parent, fork, seq in parents if parent == change.session_id]
            forks += [(record.id, MAX_SEQ) for record in folder.relatives(change.session_id)]
            plan = plan_rewrite(change, indexed.version, folder.index.lane_tips(indexed), forks, names)
            if plan is None:
                return False
            for ids in batches(change.ids):
                if missing := set(ids) - {location.id for location in folder.index.locate_ids(indexed, ids)}:
                    raise UnknownEvent(min(missing), change.session_id)
            media = folder.media_folder(change.session_id)
            forgotten += [os.path.join(media, file_name(digest)) for digest in change.forget_media]
            contents[folder.log_file(change.session_id)] = _rewritten_file(folder, indexed, plan)
        folder.replace_together(contents, forgotten)
        for change in changes:
            folder.index.remove_file(change.session_id)
        return True


def _rewritten_file(folder: SessionFolder, indexed: IndexedFile, plan: RewritePlan) -> Iterator[bytes]:
    """Yields the lines of the new file; those that stay are not read."""
    change, changed = plan.change, frozenset(plan.change.ids)
    with open(folder.log_file(indexed.id), "rb") as file:
        header = file.readline()
    if change.record is not None:
        fields = {name: getattr(change.record, name) for name in ("system", "tools", "metadata")}
        header = change_header(header, **fields)
    yield header
    forgotten = [digest.encode() for digest in change.forget_media]
    for event_id, data in folder.read_lines(indexed):
        if event_id not in changed and not any(digest in data for digest in forgotten):
            yield data
            continue
        line = decode_line(data)
        entry = line.entry
        if event_id in changed:
            [entry] = rewrite_entries(change, [event_id], {event_id: entry})
        media = [digest for digest in line.media if digest not in change.forget_media]
        yield encode_line(msgspec.structs.replace(line, entry=entry, media=media))
    yield encode_line(LogLine(plan.note, plan.tips[plan.note.event.lane or ""]))
