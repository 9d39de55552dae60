"""From text to lines of a width: wrapped, indented, and never longer than the screen is wide."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

NARROWEST = 4
"""Below this nothing can be read; it is drawn anyway, and cut off."""
_LONGEST = 2_000
"""Characters of a line that are wrapped at once: longer lines are broken there first."""
_CONSOLE = Console(file=io.StringIO(), force_terminal=True, color_system="standard", legacy_windows=False)


def plain_lines(text: str, width: int, style: Style) -> list[Strip]:
    """A text that is clean, line by line."""
    return [strip for line in text.split("\n") for strip in wrapped(Text(line, style), width)]


def wrapped(text: Text, width: int) -> list[Strip]:
    """One line of text in as many lines as it takes."""
    width = max(width, NARROWEST)
    if cell_len(text.plain) <= width:
        return [_strip(text)]
    pieces = text.divide(range(_LONGEST, len(text), _LONGEST)) if len(text) > _LONGEST else [text]
    return [_strip(line) for piece in pieces for line in piece.wrap(_CONSOLE, width, justify="left", overflow="fold")]


def rendered(renderable: RenderableType, width: int) -> list[Strip]:
    """Anything that rich can draw, without blanks at the ends of lines."""
    options = _CONSOLE.options.update(width=max(width, NARROWEST), highlight=False)
    lines = _CONSOLE.render_lines(renderable, options, pad=False)
    return [_trimmed(line) for line in lines]


def cut(text: Text, width: int, more: str) -> Strip:
    """In one line, with a sign where it was cut."""
    if text.cell_len > width > 0:
        room = max(0, width - cell_len(more))
        text = text.copy()
        text.truncate(room)
        text.append(more)
    return _strip(text)


def beside(sign: str, style: Style, strips: Iterable[Strip]) -> list[Strip]:
    """Lines with a sign before the first, and the others indented as far."""
    blank = Segment(" " * cell_len(sign))
    return [Strip([Segment(sign, style) if not place else blank, *strip], None) for place, strip in enumerate(strips)]


def indented(strips: Iterable[Strip], by: str = "  ", style: Style | None = None) -> list[Strip]:
    edge = Segment(by, style)
    return [Strip([edge, *strip]) for strip in strips]


def _trimmed(line: list[Segment]) -> Strip:
    while line and not (text := line[-1].text).rstrip():
        line = line[:-1]
    if line and text.endswith(" "):
        line = [*line[:-1], Segment(text.rstrip(), line[-1].style)]
    return Strip(line)


def _strip(text: Text) -> Strip:
    if not text.spans:
        return Strip([Segment(text.plain, _CONSOLE.get_style(text.style))] if text.plain else [])
    return Strip([segment for segment in text.render(_CONSOLE, end="") if segment.text])
