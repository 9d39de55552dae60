"""From rows to events and records."""

from __future__ import annotations

from typing import Any

import msgspec

from ...errors import CorruptLog, UnknownSession
from ...events import Event, LaneTip, SessionRecord
from ..admission import Entry
from .nul import given, kept
from .statements import blocks

NO_END = 2**63 - 1

_SQL = blocks("reads.sql")
_json = msgspec.json.Decoder()
_record = msgspec.json.Decoder(SessionRecord)


def event_of(row: Any) -> Event:
    """The event in the first columns of a row: id, kind, time, body, lane, seq, epoch, v."""
    try:
        body = _json.decode(row[3])
    except msgspec.DecodeError as error:
        raise CorruptLog(f"Event {row[0]!r} cannot be read ({error}): restore a backup.") from error
    lane = given(row[4]) or None
    return Event(given(row[0]), given(row[1]), given(row[2]), body, lane, row[5], given(row[6]), row[7])


def entry_of(row: Any) -> Entry:
    return Entry(event_of(row), row[3].encode(), row[8], row[9])


def record_of(row: Any) -> SessionRecord:
    lanes = {given(lane): tip_of(tip) for lane, *tip in _json.decode(row["lanes"])} if row["lanes"] else {}
    return msgspec.structs.replace(
        _record.decode(row["record"]),
        version=row["version"],
        lanes=lanes,
        parent=given(row["parent"]),
        parent_seq=row["parent_seq"],
    )


def tip_of(row: Any) -> LaneTip:
    mark, epoch, start, base, base_epoch = row
    return LaneTip(mark, given(epoch), start, base, given(base_epoch))


async def find(connection: Any, tenant: str, session_id: str, ids: list[str]) -> dict[str, Entry]:
    """Those of the events that exist, by id: the session's own before those it inherited."""
    found: dict[str, Entry] = {}
    for row in await connection.fetch(_SQL["by_id"], tenant, kept(session_id), [kept(name) for name in ids]):
        entry = entry_of(row)
        found.setdefault(entry.event.id, entry)
    return found


async def must_exist(connection: Any, tenant: str, session_id: str) -> int:
    """Its key; UnknownSession where there is none."""
    key: int | None = await connection.fetchval(_SQL["exists"], tenant, kept(session_id))
    if key is None:
        raise UnknownSession(session_id)
    return key


def whole(number: int) -> int:
    """A number that may be larger than any that is stored."""
    return max(-NO_END, min(number, NO_END))
