"""Read a session file: detect the tool that wrote it, and find session files in a folder."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

from ..errors import EmptyTranscript, InvalidInput, UnknownFormat
from . import claude_code, codex, opencode, pi, plain
from .opencode import is_storage_folder, storage_session_files
from .records import parse_json_values
from .transcript import Record, Transcript, TranscriptWarnings

TranscriptReader = Callable[[list[Record], TranscriptWarnings], Transcript]
MAX_SESSION_BYTES, MAX_BYTES_VARIABLE = 1_000_000_000, "HOLDFAST_MAX_SESSION_BYTES"
"""A small gzip file may unpack to more than the memory has."""
_READERS: tuple[tuple[Callable[[Record], bool], TranscriptReader], ...] = (
    (claude_code.matches, claude_code.read),
    (codex.matches, codex.read),
    (pi.matches, pi.read),
    (opencode.matches, opencode.read),
)


def read_transcript(path: str | os.PathLike[str]) -> Transcript:
    """Reads a session of Claude Code, Codex, pi or OpenCode, or a plain file of messages, gzipped or not."""
    file = Path(path)
    warnings = TranscriptWarnings()
    values = parse_json_values(read_session_bytes(file), str(file), warnings)
    if len(values) == 1 and isinstance(values[0], dict) and opencode.is_session_info(values[0]):
        values = [opencode.assemble_export(file, values[0], warnings)]
    transcript = _read_values(values, str(file), warnings)
    if not transcript.entries:
        raise EmptyTranscript(f"The file {file} holds no messages: name a session that has some.")
    return transcript


def max_session_bytes() -> int:
    """Returns how large a session may be when it is unpacked."""
    given = os.environ.get(MAX_BYTES_VARIABLE, "")
    if not given:
        return MAX_SESSION_BYTES
    if not given.isdecimal() or not int(given):
        raise InvalidInput(f"{MAX_BYTES_VARIABLE} is a number of bytes, not {given!r}.")
    return int(given)


def read_session_bytes(file: Path) -> bytes:
    """Reads a file and decompresses gzip. Raises InvalidInput if it cannot be read."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {file}: check the path.") from None
    except IsADirectoryError:
        raise InvalidInput(f"{file} is a folder: name one session file in it.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"The file {file} cannot be read ({reason}): check its name and permissions.") from error
    if not data.startswith(b"\x1f\x8b"):
        return data
    limit = max_session_bytes()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
            whole = unpacked.read(limit + 1)
        if len(whole) > limit:
            raise InvalidInput(
                f"The file {file} unpacks to more than {limit:,} bytes: set {MAX_BYTES_VARIABLE} if it is a session."
            )
        return whole
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"The file {file} is damaged or cut-off gzip: copy it again from its source.") from error


def _read_values(values: list[Any], name: str, warnings: TranscriptWarnings) -> Transcript:
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise InvalidInput(f"Value {number} of {name} is not a JSON object: each must be a message or a record.")
    if len(values) == 1 and not opencode.matches(values[0]) and plain.is_request_body(values[0]):
        return plain.read_request(values[0], name, warnings)
    fitting, read = max(((sum(map(fits, values)), read) for fits, read in _READERS), key=itemgetter(0))
    if fitting:
        return read(values, warnings)
    if not values or any(map(plain.matches, values)):
        return plain.read_messages(values, name, warnings)
    raise UnknownFormat(
        f"The file {name} is JSON, but neither a session of Claude Code, Codex, pi or OpenCode nor a list of messages: "
        "name another file, or write its messages as a JSON list."
    )


_SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".json.gz")


def find_session_files(folder: str | os.PathLike[str]) -> list[Path]:
    """Session files below a folder, sorted by path; of OpenCode's storage only the session files."""
    found: list[Path] = []
    for parent, below, names in os.walk(folder):
        below.sort()
        here = Path(parent)
        if is_storage_folder(here):
            found += storage_session_files(here)
            below.clear()
            continue
        found += [here / name for name in sorted(names) if name.endswith(_SUFFIXES)]
    return found
