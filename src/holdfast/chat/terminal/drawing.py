"""Renders text to wrapped lines of a given width; formats numbers."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from .copying import edge, mark_breaks

MIN_WIDTH = 4
"""Narrower screens are drawn at this width and cut off."""
_CONSOLE = Console(file=io.StringIO(), force_terminal=True, color_system="standard", legacy_windows=False)


def wrap_plain(text: str, width: int, style: Style) -> list[Strip]:
    """Wraps a sanitized text line by line."""
    return [strip for line in text.split("\n") for strip in wrap_text(Text(line, style), width)]


def wrap_text(text: Text, width: int) -> list[Strip]:
    """Wraps one line of text between words, and longer words anywhere; drops the blanks at the end of a row."""
    width = max(width, MIN_WIDTH)
    if cell_len(text.plain) <= width:
        return [_to_strip(text)]
    rows = text.wrap(_CONSOLE, width, justify="default", overflow="fold")
    for row in rows:
        row.rstrip()
    return mark_breaks([_to_strip(row) for row in rows], text)


def truncate_text(text: Text, width: int, more: str) -> Strip:
    """Cuts a text to one line, ending in `more`."""
    if text.cell_len > width > 0:
        room = max(0, width - cell_len(more))
        text = text.copy()
        text.truncate(room)
        text.append(more)
    return _to_strip(text)


def with_marker(marker: str, style: Style, strips: Iterable[Strip], copied: str = "") -> list[Strip]:
    """Puts a marker before the first line, copied as this, and indents the others by its width."""
    first = Segment(marker, edge(style, copied))
    blank = Segment(" " * cell_len(marker), edge(Style.null(), " " * len(copied)))
    return [Strip([blank if index else first, *strip], None) for index, strip in enumerate(strips)]


def indent_lines(strips: Iterable[Strip], by: str = "  ", style: Style | None = None, copied: str = "") -> list[Strip]:
    left = Segment(by, edge(style or Style.null(), copied))
    return [Strip([left, *strip]) for strip in strips]


def _to_strip(text: Text) -> Strip:
    if not text.spans:
        return Strip([Segment(text.plain, _CONSOLE.get_style(text.style))] if text.plain else [])
    return Strip([segment for segment in text.render(_CONSOLE, end="") if segment.text])


def format_count(count: int) -> str:
    """Formats a count as 12.3k, 200k or 1.2M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= size * 0.9995:
            value = count / size
            return f"{value:.1f}".removesuffix(".0") + letter if value < 100 else f"{value:.0f}{letter}"
    return str(count)


def format_percent(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0:.0f} %"
