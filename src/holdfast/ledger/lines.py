"""From text to lines: the units that a ledger chooses among."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

Voice = Literal["user", "said", "asked", "wrote", "file", "output", "name"]
"""Whose line it is: the user's, the assistant's, part of a call, new text for a file, a file's, a tool's output.

Or it is no line, but a name from one."""

_NUMBERED = re.compile(r"\s*+(\d{1,6})(→|\t|:(?=\t| [ \t]))(.*)")
_WRAPPED = ("<system", "</system", "Chunk ID: ", "Wall time: ", "Process exited", "Original token", "index ")
_WRAPPING = re.compile(
    r"</?system-reminder>|Chunk ID: \w+|Wall time: [\d.]+ seconds|Process exited with code 0|Original token count: \d+"
    r"|index [0-9a-f]{7,40}\.\.[0-9a-f]{7,40}(?: \d+)?"
)
_BREAKS = re.compile(r"[\s,;|。！？，]")
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
    part: int = 0
    """Which part of its message, where several results came at once."""


def is_wrapping(line: str) -> bool:
    """Does a line only wrap what a tool said? It tells nobody anything."""
    return line.startswith(_WRAPPED) and _WRAPPING.fullmatch(line) is not None


def lines_of(text: str) -> list[tuple[int, str, bool]]:
    """Lines with their numbers. Over-long ones come in parts, not whole."""
    split = whole_lines(text)
    if len(text) <= _LONG or max([len(line) for _, line in split], default=0) <= _LONG:
        return [(number, line, True) for number, line in split]
    found = []
    for number, line in split:
        if len(line) <= _LONG:
            found.append((number, line, True))
        else:
            found += [(number, piece, False) for piece in _pieces(line)]
    return found


def whole_lines(text: str) -> list[tuple[int, str]]:
    """Lines that are not blank, with their numbers: those a file viewer gave, else counted."""
    split = text.splitlines() if len(text) <= _BLOCK else list(_split(text))
    numbered = list(enumerate(split, 1))
    if "→" in text or "\t" in text or ":  " in text:  # where none of these is, no line is numbered
        for at, shown in _shown_numbers(split):
            numbered[at] = shown
    return [(number, stripped) for number, line in numbered if (stripped := line.rstrip())]


def _shown_numbers(lines: list[str]) -> Iterator[tuple[int, tuple[int, str]]]:
    """Lines that a viewer or a search numbered, without their numbers. Before a tab, they must go up by one: those
    in the first column of a table seldom do."""
    found = {at: match for at, line in enumerate(lines) if (match := _NUMBERED.match(line))}
    numbers = {at: int(match[1]) for at, match in found.items()}
    for at, number in numbers.items():
        if found[at][2] != "\t" or numbers.get(at - 1) == number - 1 or numbers.get(at + 1) == number + 1:
            yield at, (number, found[at][3])


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
        half = _SCANNED // 2
        yield from _split(text[: _last_break(text, 0, half)])
        text = text[_next_break(text, len(text) - half) :]
    start = 0
    while start < len(text):
        end = _end_of_block(text, start)
        yield from text[start:end].splitlines()
        start = end


def _end_of_block(text: str, start: int) -> int:
    """Behind a line where there is one, else behind a word, however long: half of a name would be another."""
    end = start + _BLOCK
    if end >= len(text):
        return len(text)
    newline = text.rfind("\n", start, end)
    if newline >= start:
        return newline + 1
    last = _last_break(text, start, end)
    return last if last > start else _next_break(text, end)


def _last_break(text: str, start: int, end: int) -> int:
    return next((at for at in range(end, start, -1) if _BREAKS.match(text, at - 1)), start)


def _next_break(text: str, start: int) -> int:
    found = _BREAKS.search(text, start)
    return found.start() if found else len(text)
