"""From text to lines: the units that a ledger chooses among."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

Voice = Literal["user", "said", "asked", "wrote", "file", "output", "name"]
"""Whose line it is: the user's, the assistant's, part of a call, new text for a file, a file's, a tool's output.

Or it is no line, but a name from one."""

_NUMBERED = re.compile(r"\s*(\d{1,6})(?:→|\t|:(?=\s))(.*)")
_TOKEN = re.compile(r"[^\s,;|。！？，]+[\s,;|。！？，]*")
_LONG, _PIECE = 320, 160
_BLOCK = 65_536
_SCANNED = 400_000
"""Of one text, at most so many characters are looked at, half from each end: bounded work on a huge result."""


class Line(msgspec.Struct, array_like=True, gc=False):
    """One line that may be kept, with where it came from."""

    text: str
    voice: Voice
    source: str
    """What it would stand under: a path, a command; nothing for what was said."""
    place: int
    """The message it stands in: its number in the session, or in the history."""
    number: int
    """The line's number in its file, or in its text."""
    time: int
    """On the conversation's clock: about one tick a tool call."""
    depth: int = 0
    """How many characters had been read when it came."""
    among: int = 1
    """How many lines came together with it."""
    whole: bool = True
    """Not a part of an over-long line."""
    times: int = 1
    """How often it was met since it was last changed."""


def lines_of(text: str) -> Iterator[tuple[int, str, bool]]:
    """Lines with their numbers: those a file viewer gave, else counted. Over-long ones come in parts, not whole."""
    number = 0
    for line in _split(text):
        number += 1
        line = line.rstrip()
        if not line:
            continue
        at = number
        if shown := _NUMBERED.match(line):
            at, line = int(shown[1]), shown[2]
            if not line:
                continue
        if len(line) <= _LONG:
            yield at, line, True
        else:
            for piece in _pieces(line):
                yield at, piece, False


def _pieces(line: str) -> Iterator[str]:
    """An over-long line in parts, never cut inside a name; what has no end to cut at says nothing."""
    piece = ""
    for token in _TOKEN.findall(line):
        if len(piece) + len(token) > _PIECE:
            if piece.strip():
                yield piece.strip()
            piece = ""
        if len(token) <= _PIECE:
            piece += token
    if piece.strip():
        yield piece.strip()


def _split(text: str) -> Iterator[str]:
    """Lines, block by block: splitting a huge text at once would hold up everything else in the process."""
    if len(text) > _SCANNED:
        yield from _split(text[: _SCANNED // 2])
        text = text[-_SCANNED // 2 :]
    start = 0
    while start < len(text):
        end = start + _BLOCK
        if end < len(text):
            newline = text.rfind("\n", start, end)
            end = newline + 1 if newline >= start else end
        yield from text[start:end].splitlines()
        start = end
