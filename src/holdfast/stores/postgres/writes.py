"""Everything that changes a log. The usual append is one statement; whatever is unusual is looked at closely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...errors import InvalidInput, UnknownEvent, UnknownSession
from ...events import Event, LaneTip, SessionRecord, root_key
from ..admission import Entry, Write, admit, check_record, lanes_needed, rewrite_entry
from ..log import Appended, Unchanged
from . import index
from .columns import event_columns, media_columns, tip_columns
from .nul import given, kept
from .reads import session
from .rows import find, must_exist, tip_of, whole
from .statements import LONG, blocks

_SQL = blocks("writes.sql")
_KNOWN, _STANDS_IN_THE_WAY = "23505", "HF001"
"""What the server says of an append that needs a closer look: an id is taken, or something else moved."""


class Append(msgspec.Struct, frozen=True):
    """An append as it was asked for."""

    session_id: str
    entries: tuple[Entry, ...]
    after: int | None
    when: Unchanged | None
    tip: LaneTip | None
    media: Mapping[str, str]


def wide_of(record: SessionRecord) -> str:
    """What is kept of a record beside its row and its tips, encoded before anything is sent."""
    wide = msgspec.structs.replace(record, parent=None, parent_seq=0, version=0, lanes={})
    try:
        return msgspec.json.encode(wide).decode()
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"Session {record.id!r} cannot be stored as JSON: {error}.") from error


async def create(connection: Any, tenant: str, record: SessionRecord, wide: str, unsure: bool) -> None:
    """Where an earlier try broke off, a session that is there just like this one is ours."""
    check_record(record, record.parent_seq if record.parent is not None else None)
    done = await connection.fetchval(
        _SQL["create"],
        tenant,
        kept(record.id),
        record.version,
        kept(record.parent),
        record.parent_seq,
        kept(record.owner),
        kept(record.created),
        wide,
        *tip_columns(record.lanes),
    )
    if done is not None:
        return
    if record.parent is not None:
        version = await connection.fetchval(_SQL["version"], tenant, kept(record.parent))
        if version is None:
            raise UnknownSession(record.parent)
        check_record(record, version)
    if not unsure or await session(connection, tenant, record.id) != record:
        raise InvalidInput(f"Session {record.id!r} exists already: use another id.")


async def append(connection: Any, tenant: str, asked: Append, unsure: bool) -> Appended:
    return await _at_once(connection, tenant, asked) or await _closely(connection, tenant, asked, unsure)


async def _at_once(connection: Any, tenant: str, asked: Append) -> Appended | None:
    """All of it in one statement; None if nothing was written, for whatever reason."""
    when, entries = asked.when or Unchanged(), asked.entries
    version = when.version if asked.after is None else asked.after
    lanes = {root_key(entry.event.lane) for entry in entries}
    if len(lanes) != 1 or not (when.version is None or when.version == version):
        return None
    if when.mark is not None and root_key(when.lane) not in lanes:
        return None
    usual = len(entries) == 1 and lanes == {""} and not asked.tip and not asked.media and when.mark is None
    try:
        if usual:
            done = await _one(connection, tenant, asked.session_id, entries[0], _number(version))
            if done is not None:
                return done
        return await _several(connection, tenant, asked, _number(version), _number(when.mark))
    except Exception as error:
        if getattr(error, "sqlstate", None) in (_KNOWN, _STANDS_IN_THE_WAY):
            return None
        raise


async def _one(connection: Any, tenant: str, session_id: str, entry: Entry, version: int | None) -> Appended | None:
    event, body = entry.event, entry.body.decode()
    id, kind, time = kept(event.id), kept(event.kind), kept(event.time)
    row = await connection.fetchrow(
        _SQL["append_one"], tenant, kept(session_id), version, id, kind, time, event.v, entry.digest, body
    )
    return _appended([event], row[0], row[1]) if row else None


async def _several(
    connection: Any, tenant: str, asked: Append, version: int | None, mark: int | None
) -> Appended | None:
    events, tip = [entry.event for entry in asked.entries], asked.tip
    done: str | None = await connection.fetchval(
        _SQL["append"],
        tenant,
        kept(asked.session_id),
        kept(root_key(events[0].lane)),
        version,
        mark,
        *event_columns(asked.entries),
        tip is not None,
        kept(tip.epoch) if tip else None,
        tip.start if tip else None,
        *(media_columns(asked.media) if asked.media else (None, None)),
    )
    if done is None:
        return None
    last, _, epoch = done.partition(" ")
    return _appended(events, int(last), epoch or None)


def _appended(events: Sequence[Event], last: int, epoch: str | None) -> Appended:
    force = given(epoch)
    stored = (
        Event(event.id, event.kind, event.time, event.body, event.lane, seq, force, event.v)
        for seq, event in enumerate(events, last - len(events) + 1)
    )
    return Appended(tuple(stored), last)


async def _closely(connection: Any, tenant: str, asked: Append, unsure: bool) -> Appended:
    """Step by step, with the session's row held: `admit` decides, as it does for every store.

    Where an earlier try broke off and all is there, that try has written it: it is news to whoever asked.
    """
    session_id, entries, name = asked.session_id, asked.entries, kept(asked.session_id)
    async with connection.transaction():
        row = await connection.fetchrow(_SQL["lock"], tenant, name)
        if row is None:
            raise UnknownSession(session_id)
        lanes = [kept(lane) for lane in lanes_needed(entries, asked.when)]
        tips = {given(lane): tip_of(tip) for lane, *tip in await connection.fetch(_SQL["tips"], tenant, name, lanes)}
        known = await find(connection, tenant, session_id, [entry.event.id for entry in entries])
        decided = admit(session_id, entries, known, row["version"], tips, asked.after, asked.when, asked.tip)
        if isinstance(decided, Appended):
            retried = unsure and not decided.conflict and bool(entries)
            return msgspec.structs.replace(decided, fresh=True) if retried else decided
        await _write(connection, tenant, name, decided, asked.media)
    return decided.answer


async def _write(connection: Any, tenant: str, name: str, write: Write, media: Mapping[str, str]) -> None:
    events = [entry.event for entry in write.entries]
    ids, kinds, times, versions, digests, bodies = event_columns(write.entries)
    await connection.execute(
        _SQL["add"],
        tenant,
        name,
        write.answer.version,
        times[-1],
        [event.seq for event in events],
        ids,
        [kept(root_key(event.lane)) for event in events],
        kinds,
        times,
        [kept(event.epoch) for event in events],
        versions,
        digests,
        bodies,
    )
    if write.tips:
        await connection.execute(_SQL["set_tips"], tenant, name, *tip_columns(write.tips))
    if media:
        await connection.execute(_SQL["add_media"], tenant, name, write.answer.version, *media_columns(media))


async def rewrite(
    connection: Any, tenant: str, session_id: str, entries: Sequence[Entry], forget: Sequence[str]
) -> None:
    """Nobody else fills the search index meanwhile: what it no longer holds must not come back."""
    async with connection.transaction():
        await connection.execute(_SQL["alone"], timeout=LONG)
        await must_exist(connection, tenant, session_id)
        stored = await find(connection, tenant, session_id, [entry.event.id for entry in entries])
        for entry in entries:
            if entry.event.id not in stored:
                raise UnknownEvent(entry.event.id, session_id)
        new = {e.event.id: rewrite_entry(stored[e.event.id], e.body, e.event.body) for e in entries}
        known = await connection.fetch(
            _SQL["rewrite"],
            tenant,
            kept(session_id),
            [kept(name) for name in new],
            [entry.body.decode() for entry in new.values()],
            [entry.rewritten for entry in new.values()],
        )
        await index.put(connection, tenant, known)
        names = [kept(digest) for digest in forget]
        await connection.execute(_SQL["forget_media"], tenant, kept(session_id), names)


async def delete(connection: Any, tenant: str, session_id: str, unsure: bool) -> None:
    gone = await connection.fetchval(_SQL["delete"], tenant, kept(session_id), None, timeout=LONG)
    if not gone and not unsure:
        raise UnknownSession(session_id)


async def expired(connection: Any, tenant: str, before: str) -> list[str]:
    return [given(row[0]) for row in await connection.fetch(_SQL["expired"], tenant, kept(before))]


async def delete_expired(connection: Any, tenant: str, session_id: str, before: str) -> bool:
    """Remove it, unless somebody has appended to it since it was listed."""
    gone: bool = await connection.fetchval(_SQL["delete"], tenant, kept(session_id), kept(before), timeout=LONG)
    return gone


def _number(value: int | None) -> int | None:
    return None if value is None else whole(value)
