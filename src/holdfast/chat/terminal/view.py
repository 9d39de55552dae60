"""Scrolling view of the transcript: draws visible lines only and wraps changed entries only."""

from __future__ import annotations

import time
from bisect import bisect_right

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from .entries import TerminalEntry
from .theme import SELECTED, ChatTheme
from .transcript import TerminalTranscript

_WRAP_BUDGET = 0.03
"""Seconds per redraw for drawing entries again, as after a resize; the rest follows in later redraws."""


class TranscriptView(ScrollView, can_focus=False):
    """Follows the end of the transcript unless the user has scrolled up."""

    DEFAULT_CSS = """
    TranscriptView { height: 1fr; scrollbar-size: 0 0; background: ansi_default; color: ansi_default; }
    """

    def __init__(self, transcript: TerminalTranscript, theme: ChatTheme) -> None:
        super().__init__()
        self.transcript = transcript
        self._chat_theme = theme
        self._entries: list[TerminalEntry] = []
        self._tops: list[int] = []
        """First line of each entry, without the blank line before it."""
        self._drawn: list[tuple[int, list[Strip]]] = []
        """Position and lines of each entry as last drawn."""
        self._earlier_place = -1
        """Index of the entry that stands for earlier events; -1 if all are shown."""
        self._height = 0
        self._follow_end = True
        self.selected: TerminalEntry | None = None

    # -- layout ----------------------------------------------------------------------------------------

    def redraw(self) -> bool:
        """Rewraps and lays out changed entries; returns True if some are still to be wrapped for this width."""
        width = self.size.width
        if not width:
            return False
        if self._follow_end:
            self.transcript.trim()
        anchor = None if self._follow_end else self._anchor()
        left = self._wrap(width)
        before, first = self._height, self._lay_out()
        self.virtual_size = Size(width, self._height)
        top = self.scroll_offset.y
        if self._follow_end:
            self.scroll_end(animate=False, immediate=True, force=True)
        elif anchor is not None:
            self._return_to(*anchor)
        if self.scroll_offset.y == top:
            end = max(self._height, before) - top
            if (start := max(0, first - top)) < min(end, self.size.height):
                self.refresh(Region(0, start, width, self.size.height - start))
        return left

    def _wrap(self, width: int) -> bool:
        """Draws new entries at once, and changed ones or those of a different width, newest first, within a budget."""
        until = time.monotonic() + _WRAP_BUDGET
        for entry in reversed(list(self.transcript)):
            if not entry.fits(width) and (not entry.lines or time.monotonic() < until):
                entry.redraw(width, self._chat_theme)
        return any(not entry.fits(width) for entry in self.transcript)

    def _lay_out(self) -> int:
        """Computes the position of each entry; returns the first line that changed."""
        old, self._drawn = self._drawn, []
        self._entries, self._tops = list(self.transcript), []
        earlier = self.transcript.earlier
        self._earlier_place = -1 if earlier is None else self._entries.index(earlier)
        height, first, tight = 0, -1, True
        for index, entry in enumerate(self._entries):
            height += 0 if tight and (entry.tight or not height) else 1
            self._tops.append(height)
            shown = (height, entry.lines)
            if first < 0 and old[index : index + 1] != [shown]:
                first = height
            self._drawn.append(shown)
            height += len(entry.lines)
            tight = entry.tight
        self._height = height
        return first if first >= 0 else height

    def _anchor(self) -> tuple[TerminalEntry, int] | None:
        """Returns the entry at the top of the screen, or the first that stays when earlier ones are shown."""
        index = bisect_right(self._tops, self.scroll_offset.y) - 1
        if 0 <= index <= self._earlier_place < len(self._entries) - 1:
            index = self._earlier_place + 1
        return (self._entries[index], self.scroll_offset.y - self._tops[index]) if index >= 0 else None

    def _return_to(self, entry: TerminalEntry, above: int) -> None:
        if entry in self._entries:
            top = self._tops[self._entries.index(entry)]
            self.scroll_to(y=top + min(above, len(entry.lines)), animate=False, immediate=True, force=True)

    # -- drawing ---------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        row, width = self.scroll_offset.y + y, self.size.width
        strip = self._line_at(row).crop_extend(0, width, Style())
        if (selection := self.text_selection) is not None and (span := selection.get_span(row)) is not None:
            strip = _highlight_span(strip, *span)
        return strip.apply_offsets(0, row)

    def _line_at(self, row: int) -> Strip:
        index = bisect_right(self._tops, row) - 1
        if index < 0:
            return Strip.blank(0)
        entry, line = self._entries[index], row - self._tops[index]
        if line >= len(entry.lines):
            return Strip.blank(0)
        return entry.lines[line].apply_style(SELECTED) if entry is self.selected and not line else entry.lines[line]

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Returns the selected text as written; an entry that is selected whole gives its source."""
        texts: list[str] = []
        for top, entry in zip(self._tops, self._entries, strict=True):
            spans = [selection.get_span(row) for row in range(top, top + len(entry.lines))]
            if not any(span is not None for span in spans):
                continue
            if texts and (not top or not self._line_at(top - 1).text):
                texts.append("")
            texts.append(entry.copied(spans))
        return "\n".join(texts), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    # -- scrolling -------------------------------------------------------------------------------------

    @property
    def shows_earlier_place(self) -> bool:
        """Whether the place of earlier entries is on the screen: they are wanted."""
        return self._earlier_place >= 0 and self._tops[self._earlier_place] >= self.scroll_offset.y

    @property
    def below(self) -> int:
        """Lines below the screen."""
        return max(0, self._height - self.scroll_offset.y - self.size.height)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._follow_end = new_value >= self.max_scroll_y
        self.transcript.notify()

    def on_resize(self) -> None:
        self.redraw()
        self.transcript.notify()

    # -- selection and folding ---------------------------------------------------------------------

    def handle_selection_key(self, key: str) -> bool:
        """While an entry is selected, arrows select another and Enter unfolds it; other keys clear the selection."""
        match key:
            case _ if self.selected is None:
                return False
            case "up":
                self.select(-1)
            case "down":
                self.select(1)
            case "enter":
                self.transcript.toggle(self.selected)
            case _:
                self.clear_selection()
                return False
        return True

    def select(self, step: int) -> None:
        """Selects the last foldable entry, or the one before or after the selected one."""
        foldable = [entry for entry in self._entries if entry.foldable]
        if not foldable:
            return
        index = foldable.index(self.selected) + step if self.selected in foldable else len(foldable) - 1
        self.selected = foldable[max(0, min(index, len(foldable) - 1))]
        top = self._tops[self._entries.index(self.selected)] if self.selected is not foldable[0] else 0
        self.scroll_to_region(Region(0, top, 1, 1), animate=False, immediate=True, force=True)
        self.refresh()

    def clear_selection(self) -> None:
        self.selected = None
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        index = bisect_right(self._tops, self.scroll_offset.y + event.y) - 1
        if index >= 0 and self._entries[index].foldable and not self.screen.selections:
            self.transcript.toggle(self._entries[index])


def _highlight_span(strip: Strip, start: int, end: int) -> Strip:
    length = strip.cell_length
    start, end = max(0, start), length if end < 0 else min(end, length)
    before, inside, after = strip.crop(0, start), strip.crop(start, end), strip.crop(end, length)
    return Strip.join([before, inside.apply_style(SELECTED), after])
