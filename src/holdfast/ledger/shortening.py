"""Texts cut to a length: whole where they fit, else between words, and with the cut marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .lines import Line

READABLE = 800
"""Of a message, the first so many characters say what it is about."""
BRIEF = 160
CITED = 8
"""What a number in brackets before a text takes."""
_GAP = " […]"
_HEADED = re.compile(r"^(#+ )", re.MULTILINE)


def clipped(text: str, room: int) -> str:
    """A text; of a longer one its head, and its tail where there is room (L7)."""
    text = text.strip()
    if len(text) <= room:
        return text
    head = min(room, max(READABLE, int(room * 0.7)))
    tail = text[-(room - head) :].partition(" ")[2].strip() if room - head > BRIEF // 2 else ""
    return f"{_whole_words(text[:head])}{_GAP} {tail}".rstrip()


def abridged(text: str, room: int) -> str:
    """The same, to be put on a page."""
    return quoted(clipped(text, room))


def _whole_words(text: str) -> str:
    return (text.rpartition(" ")[0] or text.rpartition("\n")[0] or text).rstrip()


def quoted(text: str) -> str:
    """Headings in what somebody said are no headings of the page."""
    return _HEADED.sub(r"> \1", text)


def shortened(lines: Sequence[Line], room: int, longest: int) -> list[tuple[int, str]]:
    """All of them, each cut to the same length where they are too many; if that is too short, the newest."""
    lines = lines[-1 - room // CITED :]  # more could not be cited, whatever they say
    length = longest
    while length > BRIEF and sum(min(length, len(line.text)) + CITED for line in lines) > room:
        length -= 20
    kept: list[tuple[int, str]] = []
    for line in reversed(lines):
        text = abridged(line.text, length)
        if len(text) + CITED > room:
            break
        room -= len(text) + CITED
        kept.append((line.place, text))
    return kept[::-1]


def fitting(lines: Iterable[str], room: int) -> list[str]:
    """The lines that fit, one after the other."""
    kept = []
    for line in lines:
        if len(line) + 1 <= room:
            room -= len(line) + 1
            kept.append(line)
    return kept
