"""Renders entries to text at a given width, and a finished tool call to render."""

from __future__ import annotations

from holdfast.chat.terminal.entries import TerminalEntry
from holdfast.chat.terminal.reply_entries import ToolCallEntry
from holdfast.chat.terminal.theme import ChatTheme

THEME = ChatTheme()


def render(entry: TerminalEntry, width: int = 60, theme: ChatTheme = THEME) -> str:
    entry.redraw(width, theme)
    return "\n".join(strip.text.rstrip() for strip in entry.lines)


def max_width(entry: TerminalEntry, width: int) -> int:
    entry.redraw(width, THEME)
    return max((strip.cell_length for strip in entry.lines), default=0)


def tool(text: str = "one\ntwo\nthree", *, failed: bool = False) -> ToolCallEntry:
    line = ToolCallEntry("1", "read_file", "tides.csv")
    line.finish(text, failed=failed)
    return line
