"""The file format: a header line, then a line for each event; and a scanner that survives torn lines.

The fields of an event's body are stored next to those of its envelope; a body with a field of the envelope's is stored
under "body". All lines of an append but the last have "more", so that an append cut short by a crash is skipped as a
whole. A line that ends in `#torn` is the remainder of a line cut by a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, BinaryIO

import msgspec

from ...context.events import SCHEMA, Event, LaneTip, SessionRecord, content_digest
from ...errors import CorruptLog
from ...messages.json_text import decodable
from ..append import LogEntry

TORN_MARKER = b" #torn\n"
"""Written first by an append that finds the end of the file torn."""
MAX_SEQ = 2**63 - 1
_ENVELOPE_FIELDS = ("v", "id", "seq", "time", "kind", "lane", "epoch")
_TRAILER_FIELDS = ("digest", "original", "tip", "media", "more", "body")
_RESERVED_FIELDS = frozenset(_ENVELOPE_FIELDS + _TRAILER_FIELDS)
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_record_decoder = msgspec.json.Decoder(SessionRecord)


class LogLine(msgspec.Struct, frozen=True):
    """One line of a log file: an event with its tip and media."""

    entry: LogEntry
    tip: LaneTip | None = None
    """The lane's new tip, if this event set one."""
    media: Sequence[str] = ()
    """Digests of the media appended with it."""
    more: bool = False
    """The append continues in the next line."""


def encode_line(line: LogLine) -> bytes:
    entry, event = line.entry, line.entry.event
    fields: dict[str, Any] = {
        "v": event.v,
        "id": event.id,
        "seq": event.seq,
        "time": event.time,
        "kind": event.kind,
    }
    if event.lane is not None:
        fields["lane"] = event.lane
    if event.epoch is not None:
        fields["epoch"] = event.epoch
    body = entry.body or msgspec.json.encode(event.body)
    inner = _fields_decoder.decode(body)
    if _RESERVED_FIELDS.isdisjoint(inner):
        fields.update(inner)
    else:
        fields["body"] = msgspec.Raw(body)
    fields["digest"] = entry.rewritten or entry.digest
    if entry.rewritten is not None:
        fields["original"] = entry.digest
    if line.tip is not None:
        fields["tip"] = line.tip
    if line.media:
        fields["media"] = list(line.media)
    if line.more:
        fields["more"] = True
    return msgspec.json.encode(fields) + b"\n"


@decodable
class _LineFields(msgspec.Struct):
    """The fields of a line other than its body."""

    id: str
    seq: Annotated[int, msgspec.Meta(ge=1, le=MAX_SEQ)]
    kind: str
    time: str = ""
    v: int = SCHEMA
    lane: str | None = None
    epoch: str | None = None
    digest: str | None = None
    original: str | None = None
    tip: LaneTip | None = None
    media: list[str] = []
    more: bool = False


def decode_line(data: bytes) -> LogLine:
    """Decodes an event's line; raises ValueError if it is not one."""
    fields: dict[str, Any] = msgspec.json.decode(data)
    known = msgspec.convert(fields, _LineFields)
    body = {name: value for name, value in fields.items() if name not in _RESERVED_FIELDS}
    inner = fields.get("body")
    if isinstance(inner, dict):
        body.update(inner)
    event = Event(known.id, known.kind, known.time, body, known.lane or None, known.seq, known.epoch, known.v)
    rewritten = known.digest if known.original else None
    digest = known.original or known.digest or content_digest(event.kind, event.lane, body)
    return LogLine(LogEntry(event, b"", digest, rewritten), known.tip, tuple(known.media), known.more)


class _LineKey(msgspec.Struct):
    id: str
    seq: int


_key_decoder = msgspec.json.Decoder(_LineKey)


def is_line_of(data: bytes, seq: int, event_id: str) -> bool:
    """Whether this is the whole line of that event."""
    try:
        known = _key_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return False
    return data.endswith(b"\n") and (known.seq, known.id) == (seq, event_id)


def encode_header(record: SessionRecord) -> bytes:
    fields: dict[str, Any] = {"v": SCHEMA, "kind": "session"}
    fields.update(_fields_decoder.decode(msgspec.json.encode(record)))
    return msgspec.json.encode(fields) + b"\n"


def decode_header(data: bytes, path: str) -> SessionRecord:
    """Decodes a file's first line; raises CorruptLog."""
    try:
        return _record_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise CorruptLog(f"{path} does not begin with a session header ({error}): restore a backup of it.") from error


def change_header(data: bytes, **changed: Any) -> bytes:
    """Returns the header with other values, without those that are None; keeps fields unknown to this version."""
    fields = {name: value for name, value in _fields_decoder.decode(data).items() if name not in changed}
    return msgspec.json.encode(fields | {name: value for name, value in changed.items() if value is not None}) + b"\n"


@decodable
class _Origins(msgspec.Struct):
    origins: list[str] = []


def header_origins(data: bytes) -> set[str]:
    """Returns the deleted sessions of which a log has copies of events, each by a name of its own."""
    return set(msgspec.json.decode(data, type=_Origins).origins)


_LINE_START = b'{"v":'
"""Start of every line; used to find a line that follows a torn fragment."""


class LocatedLine(msgspec.Struct, frozen=True):
    """A line with its byte range."""

    line: LogLine
    offset: int
    length: int

    @property
    def seq(self) -> int:
        return self.line.entry.event.seq


class TornBytes(msgspec.Struct, frozen=True):
    """Bytes that are not a complete append, or repeat one, and are skipped."""

    offset: int
    why: str
    at_end: bool = False
    """At the end of the file, where another process may still be writing."""


class CompleteAppend(msgspec.Struct, frozen=True):
    """The lines of one complete append."""

    lines: tuple[LocatedLine, ...]
    end: int
    """Offset of the first byte after it."""


def scan_log(file: BinaryIO, offset: int) -> Iterator[CompleteAppend | TornBytes]:
    """Yields the complete appends from `offset` on, and the torn bytes between them."""
    file.seek(offset)
    pending: list[LocatedLine] = []
    for raw in file:
        start, offset = offset, offset + len(raw)
        if not raw.endswith(b"\n"):
            yield TornBytes(pending[0].offset if pending else start, "its last line is torn", at_end=True)
            return
        if not raw.strip():
            continue
        located = None if raw.endswith(TORN_MARKER) else _parse_line(raw, start)
        if located is None or located.offset > start:
            yield TornBytes(pending[0].offset if pending else start, _torn_reason(raw))
            pending = []
        if located is None:
            continue
        if pending and located.seq != pending[-1].seq + 1:
            yield TornBytes(pending[0].offset, "an append is incomplete")
            pending = []
        pending.append(located)
        if not located.line.more:
            yield CompleteAppend(tuple(pending), offset)
            pending = []
    if pending:
        yield TornBytes(pending[0].offset, "its last append is incomplete", at_end=True)


def skip_repeats(
    found: Iterable[CompleteAppend | TornBytes], last: int, earlier: Callable[[int], LogLine | None], path: str
) -> Iterator[CompleteAppend | TornBytes]:
    """Leaves out lines that repeat an earlier event, as a file that was copied or synchronised badly has them.

    `last` is the highest seq before these, `earlier` returns the line of a seq. Another event of the same seq raises
    CorruptLog: nobody can tell which of them was acknowledged.
    """
    for piece in found:
        if isinstance(piece, TornBytes):
            yield piece
            continue
        fresh: list[LocatedLine] = []
        for located in piece.lines:
            known = earlier(located.seq) if located.seq <= last else None
            if known is None:
                last = max(last, located.seq)
                fresh.append(located)
            elif msgspec.structs.replace(known, more=False) == msgspec.structs.replace(located.line, more=False):
                yield TornBytes(located.offset, f"a line repeats event {located.line.entry.event.id!r}")
            else:
                raise CorruptLog(
                    f"{path} has two different events with seq {located.seq}, {known.entry.event.id!r} and, at byte "
                    f"{located.offset}, {located.line.entry.event.id!r}: restore a backup of it, or remove one of them."
                )
        yield CompleteAppend(tuple(fresh), piece.end)


def _torn_reason(raw: bytes) -> str:
    return "a line is torn" if raw.endswith(TORN_MARKER) else "a line cannot be read"


def _parse_line(raw: bytes, start: int) -> LocatedLine | None:
    """Returns the event on a line, possibly after a torn fragment; None if there is none."""
    at = 0
    while at >= 0:
        try:
            return LocatedLine(decode_line(raw[at:]), start + at, len(raw) - at)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            at = raw.find(_LINE_START, at + 1)
    return None
