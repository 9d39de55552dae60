"""Rows to events and back: named SQL, columns, and NUL characters that PostgreSQL's text cannot hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, overload

import msgspec

from ...context.events import Event, LaneTip, SessionRecord
from ...errors import CorruptLog, UnknownSession
from ..append import LogEntry


@overload
def escape_nul(text: str) -> str: ...


@overload
def escape_nul(text: str | None) -> str | None: ...


def escape_nul(text: str | None) -> str | None:
    """Encodes NUL for storage, reversibly and preserving the sort order: PostgreSQL's text cannot contain it."""
    if text is None or ("\0" not in text and "\1" not in text):
        return text
    return text.replace("\1", "\1" + "1").replace("\0", "\1" + "0")


@overload
def unescape_nul(text: str) -> str: ...


@overload
def unescape_nul(text: str | None) -> str | None: ...


def unescape_nul(text: str | None) -> str | None:
    """Reverses `escape_nul`."""
    if text is None or "\1" not in text:
        return text
    return text.replace("\1" + "0", "\0").replace("\1" + "1", "\1")


LONG_TIMEOUT = 3600.0
"""Time-out in seconds of statements that may take long: migrations and deletions."""
_STATEMENT_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def load_statements(name: str) -> dict[str, str]:
    """Returns the statements of an .sql file of this package, by name."""
    text = (resources.files(__package__) / name).read_text(encoding="utf-8")
    _, *found = _STATEMENT_NAME.split(text)
    return {title: block.strip() for title, block in zip(found[::2], found[1::2], strict=True)}


MAX_SEQ = 2**63 - 1
_ROW_SQL = load_statements("reads.sql")
_json_decoder = msgspec.json.Decoder()
_record_decoder = msgspec.json.Decoder(SessionRecord)


def event_from_row(row: Any) -> Event:
    """Returns the event in the first columns of a row: id, kind, time, body, lane, seq, epoch, v."""
    try:
        body = _json_decoder.decode(row[3])
    except msgspec.DecodeError as error:
        raise CorruptLog(f"Event {row[0]!r} cannot be read ({error}): restore a backup.") from error
    lane = unescape_nul(row[4]) or None
    return Event(
        unescape_nul(row[0]),
        unescape_nul(row[1]),
        unescape_nul(row[2]),
        body,
        lane,
        row[5],
        unescape_nul(row[6]),
        row[7],
    )


def entry_from_row(row: Any) -> LogEntry:
    return LogEntry(event_from_row(row), row[3].encode(), row[8], row[9])


def record_from_row(row: Any) -> SessionRecord:
    lanes = (
        {unescape_nul(lane): tip_from_row(tip) for lane, *tip in _json_decoder.decode(row["lanes"])}
        if row["lanes"]
        else {}
    )
    return msgspec.structs.replace(
        _record_decoder.decode(row["record"]),
        version=row["version"],
        lanes=lanes,
        parent=unescape_nul(row["parent"]),
        parent_seq=row["parent_seq"],
    )


def tip_from_row(row: Any) -> LaneTip:
    mark, epoch, start, base, base_epoch = row
    return LaneTip(mark, unescape_nul(epoch), start, base, unescape_nul(base_epoch))


async def find_events(connection: Any, tenant: str, session_id: str, ids: list[str]) -> dict[str, LogEntry]:
    """Returns those of the events that exist, by id; the session's own take precedence over inherited ones."""
    found: dict[str, LogEntry] = {}
    for row in await connection.fetch(
        _ROW_SQL["by_id"], tenant, escape_nul(session_id), [escape_nul(name) for name in ids]
    ):
        entry = entry_from_row(row)
        found.setdefault(entry.event.id, entry)
    return found


async def require_session(connection: Any, tenant: str, session_id: str) -> int:
    """Returns the session's key; raises UnknownSession."""
    key: int | None = await connection.fetchval(_ROW_SQL["exists"], tenant, escape_nul(session_id))
    if key is None:
        raise UnknownSession(session_id)
    return key


def clamp_bigint(number: int) -> int:
    """Clamps a number to the range of bigint."""
    return max(-MAX_SEQ, min(number, MAX_SEQ))


def event_columns(entries: Sequence[LogEntry]) -> tuple[list[Any], ...]:
    events = [entry.event for entry in entries]
    return (
        [escape_nul(event.id) for event in events],
        [escape_nul(event.kind) for event in events],
        [escape_nul(event.time) for event in events],
        [event.v for event in events],
        [entry.digest for entry in entries],
        [entry.body.decode() for entry in entries],
    )


def tip_columns(tips: Mapping[str, LaneTip]) -> tuple[list[Any], ...]:
    values = tips.values()
    return (
        [escape_nul(lane) for lane in tips],
        [tip.mark for tip in values],
        [escape_nul(tip.epoch) for tip in values],
        [tip.start for tip in values],
        [tip.base for tip in values],
        [escape_nul(tip.base_epoch) for tip in values],
    )


def media_columns(media: Mapping[str, str]) -> tuple[list[str], list[str]]:
    return [escape_nul(digest) for digest in media], [escape_nul(data) for data in media.values()]
