"""Horizontal bars drawn in characters, coloured by token kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from .breakdown import ShareKind, TokenShare

KIND_STYLES: dict[ShareKind, str] = {
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
BarSegment = tuple[int, str]
"""Amount and style."""


def bar(segments: Iterable[BarSegment], full: int, width: int, *, plain: bool = False, track: bool = False) -> Text:
    """A bar in which `width` cells represent `full`, drawn in half cells; any positive amount is visible.

    `plain` uses ASCII only. `track` also draws the unfilled rest.
    """
    edges: list[tuple[int, str]] = []
    run = 0
    segments = list(segments)
    for amount, style in segments:
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
        out.append(half, edges[-1][1] if drawn else max(segments)[1])
    rest = width - len(out)
    out.append(("." if plain else "─") * rest if track else " " * rest, "bright_black")
    return out


def stacked_bar(shares: Sequence[TokenShare], full: int, width: int, *, plain: bool) -> Text:
    """All shares in one stacked bar."""
    return bar([(share.tokens, KIND_STYLES[share.kind]) for share in shares], full, width, plain=plain)


def share_bar(share: TokenShare, full: int, width: int, *, plain: bool) -> Text:
    """One share; a tool's calls and results in two shades."""
    style = KIND_STYLES[share.kind]
    segments = [(share.tokens - share.calls, style), (share.calls, f"dim {style}")]
    return bar([piece for piece in segments if piece[0]], full, width, plain=plain)
