"""What a search found: `path:12:text` and, around it, `path-13-text` are lines of that file."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MATCH = re.compile(r"([\w./@+-]*[\w-]\.\w{1,6})([:-])(\d{1,6})\2(.*)")

_LOOKED_AT = 50
"""Of the files that are called the same: a search that found thousands is read as quickly."""


def match_in(line: str) -> tuple[str, int, str] | None:
    """The file, the line's number and the line itself, where a search wrote all three."""
    found = _MATCH.match(line)
    return (found[1], int(found[3]), found[4]) if found else None


def same_file(path: str, alike: Sequence[str]) -> str:
    """The known path of a file that a search names from where it was run, among the newest that are called the same."""
    ending = "/" + path.removeprefix("./")
    newest = reversed(alike[-_LOOKED_AT:])
    return next((known for known in newest if known == path or known.endswith(ending)), path)
