"""Bars in characters: thin lines, coloured by what they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from .anatomy import Kind, Share

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
Piece = tuple[int, str]
"""An amount and its style."""


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
