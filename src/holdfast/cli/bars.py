"""Bars and tables in a terminal's characters: thin lines, coloured by what they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from .anatomy import Kind, Share
from .glimpse import printable

STYLES: dict[Kind, str] = {
    "system": "magenta",
    "tools": "bright_magenta",
    "note": "bright_green",
    "user": "green",
    "assistant": "cyan",
    "reasoning": "blue",
    "media": "red",
    "other": "white",
    "tool": "yellow",
}
MARGIN = "  "
Piece = tuple[int, str]
"""An amount and its style."""
Block = RenderableType | list[RenderableType] | None


def bar(pieces: Iterable[Piece], full: int, width: int, *, plain: bool = False, track: bool = False) -> Text:
    """A bar on which `width` cells stand for `full`; drawn in half cells, and never empty if something is there.

    `plain` keeps to ASCII. With `track`, the rest of the width is drawn too.
    """
    edges: list[tuple[int, str]] = []
    run = 0
    pieces = list(pieces)
    for amount, style in pieces:
        run += amount
        edges.append((min(2 * width, round(2 * width * run / max(full, 1))), style))
    if run and edges[-1][0] == 0:
        edges[-1] = (1, edges[-1][1])
    line, half = ("#", "#") if plain else ("━", "╸")
    out = Text(no_wrap=True)
    drawn = 0
    for edge, style in edges:
        if (cells := (edge - drawn) // 2) > 0:
            out.append(line * cells, style)
            drawn += 2 * cells
    if edges and edges[-1][0] > drawn and drawn < 2 * width:
        out.append(half, edges[-1][1] if drawn else max(pieces)[1])
    rest = width - len(out)
    out.append(("." if plain else "─") * rest if track else " " * rest, "bright_black")
    return out


def stacked(shares: Sequence[Share], full: int, width: int, *, plain: bool) -> Text:
    """All shares in one bar."""
    return bar([(share.tokens, STYLES[share.kind]) for share in shares], full, width, plain=plain)


def single(share: Share, full: int, width: int, *, plain: bool) -> Text:
    """One share; a tool's calls and results in two shades."""
    style = STYLES[share.kind]
    pieces = [(share.tokens - share.calls, style), (share.calls, f"dim {style}")]
    return bar([piece for piece in pieces if piece[0]], full, width, plain=plain)


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
