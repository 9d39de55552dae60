"""Clips texts for the page, and quotes lines of them that look like its structure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from string import ascii_letters, digits

from ..context.references import NUMBER
from .headings import ALSO, OMITTED
from .lines import LedgerLine

READABLE_CHARS = 800
"""Characters that are enough to tell what a message is about."""
BRIEF_CHARS = 160
CITATION_CHARS = 8
"""Characters of a citation before a text."""
_GAP = " […]"
_BLANK = re.compile(r"\s")
_MAX_WORD_CHARS = 60
_NAME_CHARACTERS = ascii_letters + digits + "_.-/@#"
"""Where no blank is near, text is cut at the end of a name, so that no name is cut in two."""
_STRUCTURE = rf"(?:> )*(?:#+ |\[{NUMBER}\] |{ALSO}|{re.escape(OMITTED)})"
_STRUCTURE_START = re.compile(rf"^({_STRUCTURE})", re.MULTILINE)
_QUOTED_STRUCTURE = re.compile(rf"^> ({_STRUCTURE})", re.MULTILINE)


def clip(text: str, room: int) -> str:
    """Cuts a text to `room` characters: its head, and its tail if there is room; the gap is marked."""
    text = text.strip()
    if len(text) <= room:
        return text
    head, tail = head_and_tail(text, room)
    return f"{head}{_GAP} {tail}".rstrip()


def head_and_tail(text: str, room: int) -> tuple[str, str]:
    """Returns the beginning and the end of a text that is longer than `room` characters, cut between words."""
    head = min(room, max(READABLE_CHARS, int(room * 0.7)))
    tail = _trim_first_word(text[-(room - head) :]).strip() if room - head > BRIEF_CHARS // 2 else ""
    return _trim_last_word(text[:head]), tail


def clip_to_line(text: str, room: int = BRIEF_CHARS // 2) -> str:
    """Returns the beginning of a text, on one line."""
    return clip(" ".join(text[: 4 * room].split()), room)


def clip_for_page(text: str, room: int) -> str:
    """Clips and quotes a text for the page; text without any break is replaced by its length."""
    cut = clip(text, room)
    return quote_structure(cut) if cut != _GAP else f"[{len(text):,} characters in one piece]"


def _trim_last_word(text: str) -> str:
    """Drops the word that was cut at the end; scripts without blanks stay as they are."""
    blank = max(text.rfind(" ", -_MAX_WORD_CHARS), text.rfind("\n", -_MAX_WORD_CHARS))
    return (text[:blank] if blank > 0 else text.rstrip(_NAME_CHARACTERS)).rstrip()


def _trim_first_word(text: str) -> str:
    """Drops the word that was cut at the start."""
    found = _BLANK.search(text, 0, _MAX_WORD_CHARS)
    return text[found.end() :] if found else text.lstrip(_NAME_CHARACTERS)


def quote_structure(text: str) -> str:
    """Prefixes lines of foreign text that look like the page's own structure with `> `."""
    return _STRUCTURE_START.sub(r"> \1", text)


def unquote_structure(text: str) -> str:
    """Removes what `quote_structure` added."""
    return _QUOTED_STRUCTURE.sub(r"\1", text)


def clip_evenly(
    lines: Sequence[LedgerLine],
    room: int,
    longest: int,
    find_rules: Callable[[str], list[str]] = lambda text: [],
    most_room: int = 0,
) -> list[tuple[int, str]]:
    """Clips all lines to one length that fits `room`; below the minimum length, keeps only the newest.

    If with `most_room` all fit as they are, or at least none is left out, they take as much of it as they need.
    Otherwise lines with rules may take half of the room first, and the rules take half of a clipped line.
    """
    most = 1 + max(room, most_room) // CITATION_CHARS  # more citations than this cannot fit
    length, sizes = longest, [len(line.text) for line in lines[-most:]]
    needed = sum([min(length, size) + CITATION_CHARS for size in sizes])
    if len(lines) > most or needed > most_room:
        while length > BRIEF_CHARS and needed > room:
            length -= 20
            needed = sum([min(length, size) + CITATION_CHARS for size in sizes])
    if len(lines) <= most and needed <= most_room:
        room = max(room, needed)
    preferred = _newest_with_rules(lines, find_rules) if len(lines) > most or needed > room else []
    kept: dict[int, str] = {}
    for newest_first, limit in ((preferred, room // 2), (range(len(lines) - 1, -1, -1), room)):
        left = limit - sum(len(text) + CITATION_CHARS for text in kept.values())
        for at in newest_first[:most]:
            if at in kept:
                continue
            text = _clip_around(lines[at].text, find_rules, length)
            if (left := left - len(text) - CITATION_CHARS) < 0:
                break
            kept[at] = text
    return [(lines[at].place, kept[at]) for at in sorted(kept)]


def _newest_with_rules(lines: Sequence[LedgerLine], find_rules: Callable[[str], list[str]]) -> list[int]:
    """Returns the positions of the lines with rules, newest first; rules that a newer line repeats do not count."""
    found, known = list[int](), set[str]()
    for at in range(len(lines) - 1, -1, -1):
        if not known.issuperset(rules := find_rules(lines[at].text)):
            known.update(rules)
            found.append(at)
    return found


def lines_after_gap(text: str) -> list[str]:
    """Returns the lines that an earlier page selected from a clipped message: they follow its gap."""
    _, gap, rest = text.rpartition(_GAP)
    return [line.strip() for line in rest.split("\n")[1:] if line.strip()] if gap else []


def _clip_around(text: str, find_rules: Callable[[str], list[str]], room: int) -> str:
    """Clips a text for the page, and adds the rules that the gap would hide, as far as they fit half of the room."""
    shown = clip_for_page(text, room)
    if len(text.strip()) <= room or not (hidden := [rule for rule in find_rules(text) if rule not in shown]):
        return shown
    rules = take_fitting(hidden, room // 2)
    if not rules:
        return shown
    return "\n".join([clip_for_page(text, room - sum(map(len, rules)) - len(rules)), *map(quote_structure, rules)])


def take_fitting(lines: Iterable[str], room: int) -> list[str]:
    """Returns the lines that fit, skipping those that do not."""
    kept = []
    for line in lines:
        if len(line) + 1 <= room:
            room -= len(line) + 1
            kept.append(line)
    return kept
