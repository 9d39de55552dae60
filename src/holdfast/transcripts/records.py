"""The bytes of a session file as JSON values, with errors that name the line."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ..errors import InvalidInput
from ..messages import whole_characters
from .notes import Notes


def json_values(data: bytes, name: str, notes: Notes) -> list[Any]:
    """One value a line for JSONL, else the whole file as one value.

    The last line of a JSONL may be torn, because tools die while they append; any other one is an error.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    start = data.lstrip()[:1]
    if not start:
        raise InvalidInput(f"The file {name} is empty: name a session file or a JSON list of messages.")
    if start not in b"{[":
        raise InvalidInput(f"The file {name} is {_looks(data)}: name a session file or a JSON list of messages.")
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip(b" \t\r\n\0")]
    if not _is_jsonl(lines):
        return [_document(data, name, notes)]
    values = []
    for number, line in lines:
        try:
            values.append(_decode(line, notes))
        except _BROKEN as error:
            if number == lines[-1][0] and len(lines) > 1:
                notes.count("torn last line", "left out")
                break
            raise InvalidInput(
                f"Line {number} of {name} is not complete JSON: restore it from a backup, or delete it."
            ) from error
    return values


_BROKEN = (ValueError, RecursionError, msgspec.MsgspecError)


def _decode(data: bytes, notes: Notes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (ValueError, msgspec.MsgspecError):
        # JavaScript tools cut strings inside an emoji, which leaves half a character that msgspec refuses.
        text = data.decode()
        if "\\ud" not in text.lower():
            raise
        value = json.loads(text)
    notes.count("record", "with half a character in it (replaced by U+FFFD)")
    return whole_characters(value)


def _decodes_to_object(line: bytes) -> bool:
    try:
        return isinstance(_decode(line, Notes()), dict)
    except _BROKEN:
        return False


def _is_jsonl(lines: list[tuple[int, bytes]]) -> bool:
    """Several lines of which an early one is an object of its own; a pretty-printed document has none."""
    if len(lines) < 2 or lines[0][1].lstrip().startswith(b"["):
        return False
    return any(_decodes_to_object(line) for _, line in lines[:3])


def _document(data: bytes, name: str, notes: Notes) -> Any:
    try:
        return _decode(data, notes)
    except _BROKEN as error:
        line = _broken_line(data)
        raise InvalidInput(
            f"The file {name} is not complete JSON, it breaks at line {line}: save it again in full."
        ) from error


def _broken_line(data: bytes) -> int:
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        return error.lineno
    except UnicodeDecodeError as error:
        return data.count(b"\n", 0, error.start) + 1
    except RecursionError:
        pass
    return 1


def _looks(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "a binary file"
    return "a binary file" if "\0" in text else "not JSON"
