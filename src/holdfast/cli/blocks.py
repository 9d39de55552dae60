"""Tables and blocks of a report on a terminal."""

from __future__ import annotations

from typing import Literal

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from ..anatomy import printable

MARGIN = "  "
Block = RenderableType | list[RenderableType] | None


def grid(*columns: str) -> Table:
    """A table without lines. Columns are `left`, `right`, or `rest`: whatever room is left, then cut off."""
    table = Table.grid(padding=(0, 2, 0, 0), expand="rest" in columns)
    for column in columns:
        side: Literal["left", "right"] = "right" if column == "right" else "left"
        table.add_column(justify=side, no_wrap=True, overflow="ellipsis", ratio=1 if column == "rest" else None)
    return table


def show(console: Console, *blocks: Block) -> None:
    """Print blocks with a margin and a blank line around each; what is in a list stands together."""
    console.print()
    for block in blocks:
        if block is not None:
            for piece in block if isinstance(block, list) else [block]:
                _show(console, piece)
            console.print()


def _show(console: Console, piece: RenderableType) -> None:
    """Without blanks at the ends of lines, so that reports can be compared and pasted."""
    if isinstance(piece, Text) and piece.overflow == "ignore":
        console.print(Text(MARGIN).append(piece), soft_wrap=True)
        return
    room = console.options.update(width=console.width - len(MARGIN))
    for line in console.render_lines(piece, room, pad=False):
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            last = line.pop()
            line.append(Segment(last.text.rstrip(), last.style))
        console.print(Segments([Segment(MARGIN), *line, Segment.line()]), end="")


def whole_line(text: str, style: str = "") -> Text:
    """A path or a command: a terminal may break it, we do not."""
    return Text(printable(text), style, no_wrap=True, overflow="ignore")


def heading(text: str) -> Text:
    return Text(text, "bold")


def ascii_only(console: Console) -> bool:
    return not console.encoding.lower().startswith("utf")
