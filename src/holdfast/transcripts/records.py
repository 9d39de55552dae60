"""Parse a session file as JSON or JSONL, with errors that name the line."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ..errors import InvalidInput
from ..messages import replace_lone_surrogates
from .transcript import TranscriptWarnings


def parse_json_values(data: bytes, name: str, warnings: TranscriptWarnings) -> list[Any]:
    """Parses JSONL into one value a line, or JSON into a single value.

    A truncated last line of JSONL is skipped, since a tool may be killed while appending; any other one is an error.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    start = data.lstrip()[:1]
    if not start:
        raise InvalidInput(f"The file {name} is empty: name a session file or a JSON list of messages.")
    if start not in b"{[":
        raise InvalidInput(
            f"The file {name} is {_describe_content(data)}: name a session file or a JSON list of messages."
        )
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip(b" \t\r\n\0")]
    if not _is_jsonl(lines):
        return [_decode_document(data, name, warnings)]
    values = []
    for number, line in lines:
        try:
            values.append(_decode_json(line, warnings))
        except _DECODE_ERRORS as error:
            if number == lines[-1][0] and len(lines) > 1:
                warnings.count("torn last line", "left out")
                break
            raise InvalidInput(
                f"Line {number} of {name} is not complete JSON: restore it from a backup, or delete it."
            ) from error
    return values


_DECODE_ERRORS = (ValueError, RecursionError, msgspec.MsgspecError)


def _decode_json(data: bytes, warnings: TranscriptWarnings) -> Any:
    try:
        return msgspec.json.decode(data)
    except (ValueError, msgspec.MsgspecError):
        # JavaScript tools cut strings inside a surrogate pair; msgspec refuses the lone surrogate.
        text = data.decode()
        if "\\ud" not in text.lower():
            raise
        value = json.loads(text)
    warnings.count("record", "with half a character in it (replaced by U+FFFD)")
    return replace_lone_surrogates(value)


def _decodes_to_object(line: bytes) -> bool:
    try:
        return isinstance(_decode_json(line, TranscriptWarnings()), dict)
    except _DECODE_ERRORS:
        return False


def _is_jsonl(lines: list[tuple[int, bytes]]) -> bool:
    """True for several lines, one of the first three an object of its own; pretty-printed JSON has none."""
    if len(lines) < 2 or lines[0][1].lstrip().startswith(b"["):
        return False
    return any(_decodes_to_object(line) for _, line in lines[:3])


def _decode_document(data: bytes, name: str, warnings: TranscriptWarnings) -> Any:
    try:
        return _decode_json(data, warnings)
    except _DECODE_ERRORS as error:
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


def _describe_content(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "a binary file"
    return "a binary file" if "\0" in text else "not JSON"
