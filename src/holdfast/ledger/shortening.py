"""Texts cut to a length: whole where they fit, else between words, and with the cut marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from string import ascii_letters, digits

from ..references import NUMBER
from .headings import ALSO, UNTOLD
from .lines import Line

READABLE = 800
"""Of a message, the first so many characters say what it is about."""
BRIEF = 160
CITED = 8
"""What a number in brackets before a text takes."""
_GAP = " […]"
_BLANK = re.compile(r"\s")
_LONGEST_WORD = 60
_IN_NAMES = ascii_letters + digits + "_.-/@#"
"""Where no blank is near, no name is cut in two either: half of one would be another."""
_STRUCTURE = rf"#+ |\[{NUMBER}\] |{ALSO}|{re.escape(UNTOLD)}"
_HEADED = re.compile(rf"^({_STRUCTURE})", re.MULTILINE)
_QUOTED = re.compile(rf"^> ({_STRUCTURE})")


def clipped(text: str, room: int) -> str:
    """A text; of a longer one its head, and its tail where there is room (L7)."""
    text = text.strip()
    if len(text) <= room:
        return text
    head = min(room, max(READABLE, int(room * 0.7)))
    tail = _from_a_word(text[-(room - head) :]).strip() if room - head > BRIEF // 2 else ""
    return f"{_to_a_word(text[:head])}{_GAP} {tail}".rstrip()


def abridged(text: str, room: int) -> str:
    """The same, to be put on a page; what cannot be cut between words is measured."""
    cut = clipped(text, room)
    return quoted(cut) if cut != _GAP else f"[{len(text):,} characters in one piece]"


def _to_a_word(text: str) -> str:
    """Without the word that was cut at its end; in scripts without blanks, as it is."""
    blank = max(text.rfind(" ", -_LONGEST_WORD), text.rfind("\n", -_LONGEST_WORD))
    return (text[:blank] if blank > 0 else text.rstrip(_IN_NAMES)).rstrip()


def _from_a_word(text: str) -> str:
    """Without the word that was cut at its beginning."""
    found = _BLANK.search(text, 0, _LONGEST_WORD)
    return text[found.end() :] if found else text.lstrip(_IN_NAMES)


def quoted(text: str) -> str:
    """What looks like a part of the page's structure, in what somebody said or a tool gave, is none."""
    return _HEADED.sub(r"> \1", text)


def unquoted(line: str) -> str:
    return _QUOTED.sub(r"\1", line)


def shortened(lines: Sequence[Line], room: int, longest: int) -> list[tuple[int, str]]:
    """All of them, each cut to the same length where they are too many; if that is too short, the newest."""
    lines = lines[-1 - room // CITED :]  # more could not be cited, whatever they say
    length, sizes = longest, [len(line.text) for line in lines]
    while length > BRIEF and sum([min(length, size) + CITED for size in sizes]) > room:
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
