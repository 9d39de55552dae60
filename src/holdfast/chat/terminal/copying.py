"""The text under a selection as it was written: without the indents, rules and line wraps that the screen adds.

What is drawn around a text is marked in the styles of its segments, and each wrapped row ends with an empty segment
that holds the blanks of the break. Terminals receive none of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.cells import get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

Span = tuple[int, int]
"""First selected column of a row and the one after the last; -1 for the end of the row."""
WHOLE: Span = (0, -1)
_EDGE, _CODE, _CUT, _BREAK = "edge", "code", "cut", "break"


@lru_cache(1024)
def edge(style: Style, copied: str = "") -> Style:
    """Returns the style of what is drawn before a text, which is copied as this or not at all."""
    return style + Style(meta={_EDGE: copied})


@lru_cache(1024)
def code_edge(style: Style, line: str | None = None) -> Style:
    """Returns the style of the edge of code: nothing before it is copied, and for a whole line, `line` if given."""
    return style + Style(meta={_EDGE: "", _CODE: line or ""})


@lru_cache(1024)
def cut_from(style: Style, text: str) -> Style:
    """Returns the style of a piece that was cut to fit: selected whole, it is copied as this text."""
    return style + Style(meta={_CUT: text})


def mark_breaks(rows: Sequence[Strip], line: Text) -> list[Strip]:
    """Ends each row of a wrapped line with the blanks that stood there."""
    plain, at, marked = line.plain, 0, []
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        at += len(row.text.rstrip())
        start = len(plain) if after is None else max(at, plain.find(after.text.rstrip(), at))
        marked.append(Strip([*row, Segment("", Style(meta={_BREAK: (plain[at:start], after is not None)}))]))
        at = start
    return marked


class _Row(NamedTuple):
    """What is copied of one row."""

    text: str
    reaches_end: bool
    continues: bool = False
    """Whether the next row is of the same line."""
    line: str = ""
    """The whole line, where the row begins one that is drawn otherwise."""
    starts: bool = True
    """Whether the selection has all of the row's beginning."""


def copied_text(rows: Iterable[tuple[Strip, Span]]) -> str:
    """Returns the text of selected rows, in order."""
    lines: list[str] = []
    pieces: list[_Row] = []
    for strip, span in rows:
        pieces.append(_copied_row(strip, span, is_continuation=bool(pieces)))
        if not (pieces[-1].continues and pieces[-1].reaches_end):
            lines.append(_join(pieces))
            pieces = []
    return "\n".join([*lines, *([_join(pieces)] if pieces else [])])


def _join(pieces: Sequence[_Row]) -> str:
    whole = pieces[0].starts and pieces[-1].reaches_end and not pieces[-1].continues
    return pieces[0].line if whole and pieces[0].line else "".join(piece.text for piece in pieces)


def _copied_row(strip: Strip, span: Span, *, is_continuation: bool) -> _Row:
    start, end = span
    end = max(strip.cell_length, start) if end < 0 else end
    reaches_end, column, text, line, content = end >= strip.cell_length, 0, "", "", -1
    for segment in strip:
        meta = segment.style.meta if segment.style is not None else {}
        width = segment.cell_length
        if _BREAK in meta:
            blanks, continues = meta[_BREAK]
            text = text.rstrip() + blanks if reaches_end else text
            return _Row(text, reaches_end, continues, line, start <= max(content, 0))
        if content < 0 and _EDGE in meta:
            if _CODE in meta:
                text, line = "", meta[_CODE]
            elif start <= column and not is_continuation:
                text += meta[_EDGE]
        else:
            content = column if content < 0 else content
            taken = _crop(segment.text, max(start - column, 0), end - column)
            text += meta[_CUT] if _CUT in meta and taken == segment.text else taken
        column += width
    return _Row(text, reaches_end, line=line, starts=start <= max(content, 0))


def _crop(text: str, start: int, end: int) -> str:
    """Returns the characters between two columns; a wide one belongs to the column where it begins."""
    kept, column = [], 0
    for character in text:
        if start <= column < end:
            kept.append(character)
        column += get_character_cell_size(character)
    return "".join(kept)
