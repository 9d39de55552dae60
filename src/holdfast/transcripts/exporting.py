"""Sessions out of a store: as lossless records of our own, as a session of pi, or as plain messages."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec
from anyio import to_thread

from ..errors import InvalidInput
from ..events import Kind
from ..messages import COMMON, Json, decode_one, encode_all
from ..service import SessionService
from .notes import Notes
from .pi_log import pi_records

ExportFormat = Literal["holdfast", "pi", "messages"]
FORMATS: tuple[str, ...] = get_args(ExportFormat)


class Exported(msgspec.Struct, frozen=True):
    """The content of a file, and what could not be told in its format."""

    data: bytes
    notes: tuple[str, ...] = ()


async def export_session(
    service: SessionService, session_id: str, format: ExportFormat = "holdfast", *, whole: bool = False
) -> Exported:
    """A session as the content of a file.

    `holdfast` loses nothing and can be imported anywhere; `pi` is a session file of pi with the same context and
    compactions; `messages` is the context as a list in the session's own format, or with `whole` all that was said.
    """
    if format not in FORMATS:
        raise InvalidInput(f"{format!r} is no format to export: use one of {', '.join(FORMATS)}.")
    if whole and format != "messages":
        raise InvalidInput(f"The format {format!r} has all that was said in it anyway: leave out whole.")
    if format == "messages":
        messages = await _messages(service, session_id, whole)
        return Exported(msgspec.json.format(msgspec.json.encode(messages), indent=2) + b"\n")
    records = await service.export(session_id)
    if format == "holdfast":
        return Exported(_lines(records))
    notes = Notes()
    written = await to_thread.run_sync(pi_records, records, service.estimator, notes)
    return Exported(_lines(written), notes.lines())


def _lines(records: list[Json]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


async def _messages(service: SessionService, session_id: str, whole: bool) -> list[Json]:
    context = await service.context(session_id)
    if not whole:
        return context.messages
    said = await service.events(session_id, kind=Kind.MESSAGE, lane="")
    decoded = [decode_one(event.body["message"], event.body.get("format")) for event in said]
    return encode_all(decoded, context.format or COMMON)
