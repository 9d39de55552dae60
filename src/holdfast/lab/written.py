"""Files that the lab wrote before: they may be written again, and nothing else that is there."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..errors import InvalidInput
from ..transcripts.files import bytes_of
from .page import MARK
from .report import Report
from .tuning import Advice

_OBJECTS = (Report.__struct_fields__, Advice.__struct_fields__)


def must_be_ours(file: Path) -> None:
    """Nothing is lost with an empty file, and what is written to a pipe or a device replaces nothing."""
    if file.is_file() and file.stat().st_size and not is_ours(file):
        raise InvalidInput(f"{file} is there already and was not written by the lab: name another file.")


def is_ours(file: Path) -> bool:
    """Is it a page of the lab, or one of its objects with just these keys? Compressed or not."""
    try:
        data = bytes_of(file)
        return (
            data.startswith(MARK.encode()) or tuple(msgspec.json.decode(data, type=dict[str, msgspec.Raw])) in _OBJECTS
        )
    except (InvalidInput, ValueError, RecursionError):
        return False
