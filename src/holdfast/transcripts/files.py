"""Open a session file, tell whose it is, and read it."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

from holdfast.errors import InvalidInput, UnknownFormat

from . import claude_code, codex, opencode, opencode_storage, pi, plain
from .notes import Notes
from .records import json_values
from .transcript import Record, Transcript

Reader = Callable[[list[Record], Notes], Transcript]

_TOOLS: tuple[tuple[Callable[[Record], bool], Reader], ...] = (
    (claude_code.fits, claude_code.read),
    (codex.fits, codex.read),
    (pi.fits, pi.read),
    (opencode.fits, opencode.read),
)


class NothingSaid(InvalidInput):
    """A session without messages."""


def read_transcript(path: str | os.PathLike[str]) -> Transcript:
    """Read a session of Claude Code, Codex, pi or OpenCode, or a plain file of messages; gzip is seen through."""
    file = Path(path)
    notes = Notes()
    values = json_values(bytes_of(file), str(file), notes)
    if len(values) == 1 and isinstance(values[0], dict) and opencode_storage.is_session(values[0]):
        values = [opencode_storage.gathered(file, values[0], notes)]
    transcript = _transcript(values, str(file), notes)
    if not transcript.entries:
        raise NothingSaid(f"The file {file} holds no messages: name a session in which something was said.")
    return transcript


def bytes_of(file: Path) -> bytes:
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
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"The file {file} is damaged or cut-off gzip: copy it again from its source.") from error


def _transcript(values: list[Any], name: str, notes: Notes) -> Transcript:
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise InvalidInput(f"Value {number} of {name} is not a JSON object: each must be a message or a record.")
    if len(values) == 1 and not opencode.fits(values[0]) and plain.is_request(values[0]):
        return plain.read_request(values[0], name, notes)
    fitting, read = max(((sum(map(fits, values)), read) for fits, read in _TOOLS), key=itemgetter(0))
    if fitting:
        return read(values, notes)
    if not values or any(map(plain.fits, values)):
        return plain.read_messages(values, name, notes)
    raise UnknownFormat(
        f"The file {name} is JSON, but no session of Claude Code, Codex, pi or OpenCode and no list of messages: "
        "name another file, or write its messages as a JSON list."
    )
