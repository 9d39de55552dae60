"""Entries as text, in a given width."""

from __future__ import annotations

from holdfast.terminal.entries import Entry
from holdfast.terminal.look import Look

LOOK = Look()


def drawn(entry: Entry, width: int = 60, look: Look = LOOK) -> str:
    entry.redraw(width, look)
    return "\n".join(strip.text.rstrip() for strip in entry.lines)


def widest(entry: Entry, width: int) -> int:
    entry.redraw(width, LOOK)
    return max((strip.cell_length for strip in entry.lines), default=0)
