"""Export a session: as lossless Holdfast records, as a session file of pi, or as plain messages."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec
from anyio import to_thread

from ..context.events import EventKind, message_in
from ..errors import InvalidInput
from ..messages import COMMON, Json, encode_all
from ..sessions import SessionService
from .pi_export import build_pi_records
from .transcript import TranscriptWarnings

ExportFormat = Literal["holdfast", "pi", "messages"]
"""Format of an exported file."""
EXPORT_FORMATS: tuple[str, ...] = get_args(ExportFormat)


class ExportedSession(msgspec.Struct, frozen=True):
    """The content of the exported file, and warnings about what its format cannot represent."""

    data: bytes
    warnings: tuple[str, ...] = ()


async def export_session(
    service: SessionService, session_id: str, format: ExportFormat = "holdfast", *, whole: bool = False
) -> ExportedSession:
    """Exports a session as the content of a file.

    `holdfast` is lossless and can be imported again; `pi` is a session file of pi with the same context and
    compactions; `messages` is the context as a list in the session's wire format, or with `whole` every message.
    """
    if format not in EXPORT_FORMATS:
        raise InvalidInput(f"{format!r} is not an export format: use one of {', '.join(EXPORT_FORMATS)}.")
    if whole and format != "messages":
        raise InvalidInput(f"The format {format!r} always contains every message: leave out whole.")
    if format == "messages":
        messages = await _message_list(service, session_id, whole)
        return ExportedSession(msgspec.json.format(msgspec.json.encode(messages), indent=2) + b"\n")
    records = await service.export(session_id)
    if format == "holdfast":
        return ExportedSession(_json_lines(records))
    warnings = TranscriptWarnings()
    pi_records = await to_thread.run_sync(build_pi_records, records, service.estimator, warnings)
    return ExportedSession(_json_lines(pi_records), warnings.lines())


def _json_lines(records: list[Json]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


async def _message_list(service: SessionService, session_id: str, whole: bool) -> list[Json]:
    context = await service.context(session_id)
    if not whole:
        return context.messages
    events = await service.events(session_id, kind=EventKind.MESSAGE, lane="")
    decoded = [message_in(event) for event in events]
    return encode_all(decoded, context.format or COMMON)
