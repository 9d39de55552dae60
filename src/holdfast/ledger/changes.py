"""What a call changes in files."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

_PATCHED = re.compile(r"\*\*\* (Update|Add|Delete) File: (.+)")


class Change(msgspec.Struct, frozen=True):
    """One file: the text that is taken out of it, and the text that is put in."""

    path: str
    old: str = ""
    new: str = ""
    whole: bool = False
    """Is the file written whole?"""


def changes_in(patch: str) -> Iterator[Change]:
    """The files of a patch, each with its own lines."""
    path, whole, lines = "", False, list[str]()
    for line in patch.splitlines():
        if begun := _PATCHED.match(line):
            if path:
                yield _change(path, whole, lines)
            path, whole, lines = begun[2].strip(), begun[1] == "Add", []
        else:
            lines.append(line)
    if path:
        yield _change(path, whole, lines)


def _change(path: str, whole: bool, lines: list[str]) -> Change:
    old = "\n".join(line[1:] for line in lines if line[:1] in ("-", " "))
    new = "\n".join(line[1:] for line in lines if line[:1] in ("+", " "))
    return Change(path, old, new, whole)
