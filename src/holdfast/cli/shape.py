"""The shape of what came in, so that the compacted messages go out the same way."""

from __future__ import annotations

import gzip
import os
from typing import Any

import msgspec

from ..errors import InvalidInput
from ..files import replace_file
from ..messages import Json
from ..transcripts.notes import Notes
from ..transcripts.plain import is_request
from ..transcripts.records import json_values
from .stores import is_store

GZIP = b"\x1f\x8b"
_LISTS = ("messages", "input", "contents")
_KEYS = {"openai-responses": ("input", "instructions"), "gemini": ("contents", "systemInstruction")}


class Shape(msgspec.Struct, frozen=True):
    """A list, one message a line, or a request body that holds its messages under `key`."""

    body: Json | None = None
    key: str = "messages"
    lines: bool = False

    def encode(self, messages: list[Json]) -> bytes:
        if self.lines:
            return b"".join(msgspec.json.encode(message) + b"\n" for message in messages)
        value = messages if self.body is None else self.body | {self.key: messages}
        return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def shape_of(path: str) -> Shape:
    """The shape of a plain file of messages."""
    with open(path, "rb") as file:
        data = file.read()
    values = json_values(gzip.decompress(data) if data.startswith(GZIP) else data, path, Notes())
    if len(values) > 1:
        return Shape(lines=True)
    if is_request(values[0]):
        return Shape(values[0], next(key for key in _LISTS if isinstance(values[0].get(key), list | str)))
    return Shape()


def request_shape(format: str | None, system: Any, tools: Any, model: str | None) -> Shape:
    """For a session of any kind: a request body with what is known beside the messages, else a list."""
    messages, prompt = _KEYS.get(format or "", ("messages", "system"))
    beside = {key: value for key, value in (("model", model), (prompt, system), ("tools", tools)) if value}
    return Shape(beside, messages) if beside else Shape()


def must_be_writable(out: str, source: str | None, *, force: bool) -> None:
    """Asked before any work is done: nobody waits for a compaction that has nowhere to go."""
    folder = os.path.dirname(os.path.realpath(out))
    if not os.path.isdir(folder):
        raise InvalidInput(f"There is no folder {folder}: create it first, or write somewhere else.")
    if os.path.isdir(out):
        raise InvalidInput(f"{out} is a folder: name a file to write.")
    if is_store(out):
        raise InvalidInput(f"{out} is a Holdfast store, and a log is never overwritten: write somewhere else.")
    if not force and source is not None and os.path.exists(out) and os.path.samefile(out, source):
        raise InvalidInput(f"{out} is the input itself: write somewhere else, or say --force.")
    if not os.access(out if os.path.exists(out) else folder, os.W_OK):
        raise InvalidInput(f"{out} cannot be written: check its permissions, or write somewhere else.")


def write(out: str, data: bytes) -> None:
    """All or nothing: a new file takes the place of the old one at once."""
    out = os.path.realpath(out)
    data = gzip.compress(data) if out.endswith(".gz") else data
    if os.path.exists(out) and not os.path.isfile(out):  # /dev/null and pipes are written to, never replaced
        with open(out, "wb") as file:
            file.write(data)
        return
    replace_file(out, data, new_mode=0o666 & ~_umask())


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current
