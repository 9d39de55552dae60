"""The file format: a line for the session, then a line for each event, readable by a person and by `jq`.

The fields of an event's body stand beside its envelope; a body with a field that the envelope also has
stands under "body" instead. The lines of one append all say "more" but the last, so that an append which
a crash cut short is passed over as a whole. A line that ends in `#torn` is what a crash left of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...errors import CorruptLog
from ...events import SCHEMA, Event, LaneTip, SessionRecord, digest_of
from ..admission import Entry

TORN = b" #torn\n"
"""What the next append writes first where it finds the end of the file torn."""

_ENVELOPE = ("v", "id", "seq", "time", "kind", "lane", "epoch")
_TRAILER = ("digest", "original", "tip", "media", "more", "body")
_RESERVED = frozenset(_ENVELOPE + _TRAILER)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_record = msgspec.json.Decoder(SessionRecord)


class Line(msgspec.Struct, frozen=True):
    """An event as it stands in a file."""

    entry: Entry
    tip: LaneTip | None = None
    """The lane's tip, where this event set it."""
    media: Sequence[str] = ()
    """Digests of the media that came with the append."""
    more: bool = False
    """The append goes on in the next line."""


def encode_line(line: Line) -> bytes:
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
    inner = _fields.decode(body)
    if _RESERVED.isdisjoint(inner):
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


class _Known(msgspec.Struct):
    """The fields of a line that are not its body."""

    id: str
    seq: int
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


def decode_line(data: bytes) -> Line:
    """Read an event's line; ValueError if it is not one."""
    fields: dict[str, Any] = msgspec.json.decode(data)
    known = msgspec.convert(fields, _Known)
    body = {name: value for name, value in fields.items() if name not in _RESERVED}
    inner = fields.get("body")
    if isinstance(inner, dict):
        body.update(inner)
    event = Event(known.id, known.kind, known.time, body, known.lane or None, known.seq, known.epoch, known.v)
    rewritten = known.digest if known.original else None
    digest = known.original or known.digest or digest_of([event.kind, event.lane, body])
    return Line(Entry(event, b"", digest, rewritten), known.tip, tuple(known.media), known.more)


def encode_header(record: SessionRecord) -> bytes:
    fields: dict[str, Any] = {"v": SCHEMA, "kind": "session"}
    fields.update(_fields.decode(msgspec.json.encode(record)))
    return msgspec.json.encode(fields) + b"\n"


def decode_header(data: bytes, path: str) -> SessionRecord:
    """Read a file's first line."""
    try:
        return _record.decode(data)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise CorruptLog(f"{path} does not begin with a session ({error}): restore a backup of it.") from error


def move_header(data: bytes, parent: str | None, parent_seq: int) -> bytes:
    """The header with another parent; fields that this version does not know stay."""
    fields = dict(_fields.decode(data))
    fields.pop("parent", None)
    fields.pop("parent_seq", None)
    if parent is not None:
        fields["parent"] = msgspec.Raw(msgspec.json.encode(parent))
        fields["parent_seq"] = msgspec.Raw(msgspec.json.encode(parent_seq))
    return msgspec.json.encode(fields) + b"\n"
