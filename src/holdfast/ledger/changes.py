"""What a call changes in files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

_SEARCHED = re.compile(r"[<-]{7} SEARCH|(=======)|[>+]{7} REPLACE")
_PATCHED = re.compile(r"\*\*\* (Update|Add|Delete) File: (.+)")

ChangeKind = Literal["part", "whole", "deleted", "unseen"]
"""A file is changed in part, written whole, taken away, or changed by a script whose work nobody sees."""
_KINDS: dict[str, ChangeKind] = {"Update": "part", "Add": "whole", "Delete": "deleted"}


class Change(msgspec.Struct, frozen=True):
    """One file: the text that is taken out of it, and the text that is put in."""

    path: str
    old: str = ""
    new: str = ""
    kind: ChangeKind = "part"


def changes_in(patch: str) -> Iterator[Change]:
    """The files of a patch, each with its own lines."""
    path, kind, lines = "", "", list[str]()
    for line in patch.splitlines():
        if begun := _PATCHED.match(line):
            if path:
                yield _change(path, _KINDS[kind], lines)
            path, kind, lines = begun[2].strip(), begun[1], []
        else:
            lines.append(line)
    if path:
        yield _change(path, _KINDS[kind], lines)


def _change(path: str, kind: ChangeKind, lines: list[str]) -> Change:
    old = "\n".join(line[1:] for line in lines if line[:1] in ("-", " "))
    new = "\n".join(line[1:] for line in lines if line[:1] in ("+", " "))
    return Change(path, old, new, kind)


def replaced(path: str, diff: str) -> Change:
    """What a diff of one file takes out and puts in: marked pieces to search and replace, or lines with signs."""
    lines = diff.splitlines()
    marks = [_SEARCHED.match(line) for line in lines]
    if not any(marks):
        return _change(path, "part", [line for line in lines if line[:3] not in ("---", "+++")])
    sides: dict[bool, list[str]] = {False: [], True: []}
    behind = False
    for line, mark in zip(lines, marks, strict=True):
        if mark:
            behind = mark[1] is not None
        else:
            sides[behind].append(line)
    return Change(path, "\n".join(sides[False]), "\n".join(sides[True]))
