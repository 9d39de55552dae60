"""Names in a summary that nobody ever said: found, reported, and taken out where that is safe (H3)."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from ..ledger import kind_of, names_in


class Checked(msgspec.Struct, frozen=True):
    """A summary without the lines that speak of nothing but what nobody ever said."""

    text: str
    invented: tuple[str, ...] = ()
    removed: int = 0

    @property
    def remarks(self) -> tuple[str, ...]:
        if not self.invented:
            return ()
        gone = f"; {self.removed} lines that told nothing else were removed" if self.removed else ""
        return (f"the summary names what occurs nowhere in the history: {', '.join(self.invented)}{gone}",)


_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)]|\|)\s+(?!\s|\[ ?\])")
_AHEAD = re.compile(
    r"(?i)next|pending|to[- ]?do|plan|open|remain|blocked|step|schritt|offen|ausstehend|à faire|prochain|pendiente"
    r"|siguiente|próxim|下一步|待办|待辦|计划|計劃|未完成"
)
_TITLE = re.compile(r"\s*(?:#+\s|\*\*[^*]+\*\*[:：]?\s*$|[A-Z][A-Z &]+$)")
_LABEL = re.compile(r"\s*(?:\d+[.)]\s*)?\w[^.|]{0,60}[:：]\s*$")
_ORDINARY = re.compile(
    r"(?:\w\.)+\w"  # e.g, d.h, p.m
    r"|[^\W\d_]{1,4}\.\d+"  # Nr.5
    r"|[A-Z]{2,}s"  # APIs
)
_NUMBER = re.compile(r"#?(?=.{4})\d+(?:[.-]\d+)*")
_UNIT = re.compile(r"(\d+)[^\W\d_]{1,5}")
_GROUPED = re.compile(r"(?<=\d)[,.'’_ \u00a0\u202f](?=\d{3})")
_WORDING = re.compile(r"[^\W\d_]+|\d+(?:[.-]\d+)+|(?:19|20)\d\d")
"""What may be another way to put what is there: a name in letters alone (`JavaScript`), a date, a version."""


def checked(summary: str, history: Callable[[], str]) -> Checked:
    """Find names that occur nowhere in the history; a list item that holds no other name goes.

    What lies ahead may have new names: plans are left alone. So is a summary that would have nothing left.
    """
    named = {name for line in summary.splitlines() for name in _exact(line)}
    if not named:
        return Checked(summary)
    told = history().lower()
    invented = {name for name in named if name.lower() not in told}
    if invented:
        plain = _GROUPED.sub("", told)
        invented = {name for name in invented if not _is_said_otherwise(name.lower(), plain)}
    if not invented:
        return Checked(summary)
    kept, removed, ahead = [], 0, False
    for line in summary.splitlines():
        if _TITLE.match(line) or _LABEL.match(line):
            ahead = _AHEAD.search(line) is not None or (ahead and not _TITLE.match(line))
        names = set(_exact(line))
        made_up = names <= invented and not all(map(_WORDING.fullmatch, names))
        if made_up and not ahead and _ITEM.match(line):
            removed += 1
        else:
            kept.append(line)
    if not any(line.strip() and not _TITLE.match(line) for line in kept):
        return Checked(summary, tuple(sorted(invented)))
    return Checked("\n".join(kept), tuple(sorted(invented)), removed)


def _is_said_otherwise(name: str, told: str) -> bool:
    """Does it occur with commas in its number, its unit apart, or without its hyphens?"""
    name = _GROUPED.sub("", name)
    if unit := _UNIT.fullmatch(name):
        name = unit[1]
    pieces = [name] if "." in name else name.split("-")
    return all(piece in told for piece in pieces)


def _exact(line: str) -> list[str]:
    """Names that a reader would take at their word: files, identifiers, long numbers."""
    return [
        name
        for name in names_in(line)
        if ((kind := kind_of(name)) == "number" and _NUMBER.fullmatch(name))
        or (kind in ("file", "code") and not name.isupper() and not _ORDINARY.fullmatch(name))
    ]
