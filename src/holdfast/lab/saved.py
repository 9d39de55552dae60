"""Reports that earlier runs of the lab wrote into a folder: JSON, or the page, which has the same data inside."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from ..errors import InvalidInput
from ..messages.json_text import decodable
from ..transcripts.files import read_session_bytes
from .page import PAGE_MARKER
from .report import LabReport
from .tuning import TuningAdvice

MAX_REPORTS = 200
"""Newest reports of a folder that are listed."""
_MAX_BYTES = 64 * 2**20
_ENDINGS = (".html", ".json")
_OPENING = re.compile(rb'\s*\{\s*"(\w+)"\s*:')
_KINDS: dict[bytes, Literal["retention", "tuning"]] = {
    LabReport.__struct_fields__[0].encode(): "retention",
    TuningAdvice.__struct_fields__[0].encode(): "tuning",
}
_DATA, _DATA_END = b'<script type="application/json" id="data">', b"</script>"


class SavedReport(msgspec.Struct, frozen=True):
    """A file that looks like a report by its first bytes."""

    name: str
    kind: Literal["retention", "tuning"]
    written: str
    """When it was last changed, ISO 8601."""
    size: int
    """Bytes."""


@decodable
class _PageData(msgspec.Struct, frozen=True):
    report: LabReport


def list_reports(folder: Path) -> list[SavedReport]:
    """Returns the reports of a folder, newest first; files of other content are left out."""
    try:
        files = [file for file in folder.iterdir() if file.suffix in _ENDINGS and file.is_file()]
        dated = sorted(((file.stat().st_mtime, file) for file in files), reverse=True)
    except OSError as problem:
        raise InvalidInput(f"The folder {folder} cannot be read ({problem.strerror}): name another.") from None
    found = []
    for changed, file in dated:
        if (kind := _kind_of(file)) is not None:
            written = datetime.fromtimestamp(changed, UTC).isoformat(timespec="seconds")
            found.append(SavedReport(file.name, kind, written, file.stat().st_size))
            if len(found) == MAX_REPORTS:
                break
    return found


def _kind_of(file: Path) -> Literal["retention", "tuning"] | None:
    try:
        with file.open("rb") as opened:
            head = opened.read(200)
    except OSError:
        return None
    if head.startswith(PAGE_MARKER.encode()):
        return "retention"
    opening = _OPENING.match(head)
    return None if opening is None else _KINDS.get(opening[1])


def read_report(folder: Path, name: str) -> LabReport | TuningAdvice:
    """Reads one of the listed reports; raises InvalidInput if the lab did not write it, or it is too large."""
    found = next((one for one in list_reports(folder) if one.name == name), None)
    if found is None:
        raise InvalidInput(f"There is no report {name!r} in {folder}.")
    if found.size > _MAX_BYTES:
        raise InvalidInput(f"{name} has more than {_MAX_BYTES // 2**20} MB: measure fewer sessions at once.")
    data = read_session_bytes(folder / name)
    try:
        if data.startswith(PAGE_MARKER.encode()):
            start = data.index(_DATA) + len(_DATA)
            return msgspec.json.decode(data[start : data.index(_DATA_END, start)], type=_PageData).report
        if found.kind == "tuning":
            return msgspec.json.decode(data, type=TuningAdvice)
        return msgspec.json.decode(data, type=LabReport)
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(f"{name} is not a report of this version of the lab ({problem}): run it again.") from None
