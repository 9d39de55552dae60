"""The transcript on the screen: only what is seen is drawn, and only what has changed is worked out again."""

from __future__ import annotations

import time
from bisect import bisect_right

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from .entries import Entry
from .look import CHOSEN, Look
from .transcript import Transcript

_PATIENCE = 0.03
"""Seconds of one drawing that may go to wrapping older entries anew after a resize; the rest waits its turn."""


class TranscriptView(ScrollView, can_focus=False):
    """Scrolls by itself while its end is in sight, and stays where it is when somebody reads further up."""

    DEFAULT_CSS = """
    TranscriptView { height: 1fr; scrollbar-size: 0 0; background: ansi_default; color: ansi_default; }
    """

    def __init__(self, transcript: Transcript, look: Look) -> None:
        super().__init__()
        self.transcript = transcript
        self._look = look
        self._entries: list[Entry] = []
        self._tops: list[int] = []
        """The line at which each entry begins, the empty one before it apart."""
        self._shown: list[tuple[int, list[Strip]]] = []
        """Each entry as it was last drawn, and where."""
        self._height = 0
        self._following = True
        self.chosen: Entry | None = None

    # -- layout ----------------------------------------------------------------------------------------

    def redraw(self) -> bool:
        """Take in what has changed. True if some entries are still to be wrapped for this width."""
        width = self.size.width
        if not width:
            return False
        anchor = None if self._following else self._anchor()
        left = self._wrap(width)
        before, first = self._height, self._lay_out()
        self.virtual_size = Size(width, self._height)
        top = self.scroll_offset.y
        if self._following:
            self.scroll_end(animate=False, immediate=True, force=True)
        elif anchor is not None:
            self._return_to(*anchor)
        if self.scroll_offset.y == top:
            end = max(self._height, before) - top
            if (start := max(0, first - top)) < min(end, self.size.height):
                self.refresh(Region(0, start, width, self.size.height - start))
        return left

    def _wrap(self, width: int) -> bool:
        """What has changed at once; what only has another width from the newest on, as far as time allows."""
        until = time.monotonic() + _PATIENCE
        for entry in reversed(list(self.transcript)):
            if entry.is_stale or (not entry.fits(width) and time.monotonic() < until):
                entry.redraw(width, self._look)
        return any(not entry.fits(width) for entry in self.transcript)

    def _lay_out(self) -> int:
        """Where each entry stands. Returns the first line that is not as it was."""
        old, self._shown = self._shown, []
        self._entries, self._tops = list(self.transcript), []
        height, first, tight = 0, -1, True
        for place, entry in enumerate(self._entries):
            height += 0 if tight and (entry.tight or not height) else 1
            self._tops.append(height)
            shown = (height, entry.lines)
            if first < 0 and old[place : place + 1] != [shown]:
                first = height
            self._shown.append(shown)
            height += len(entry.lines)
            tight = entry.tight
        self._height = height
        return first if first >= 0 else height

    def _anchor(self) -> tuple[Entry, int] | None:
        """The entry at the top of the screen, and how much of it is above."""
        place = bisect_right(self._tops, self.scroll_offset.y) - 1
        return (self._entries[place], self.scroll_offset.y - self._tops[place]) if place >= 0 else None

    def _return_to(self, entry: Entry, above: int) -> None:
        if entry in self._entries:
            top = self._tops[self._entries.index(entry)]
            self.scroll_to(y=top + min(above, len(entry.lines)), animate=False, immediate=True, force=True)

    # -- drawing ---------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        place, width = self.scroll_offset.y + y, self.size.width
        strip = self._line(place).crop_extend(0, width, Style())
        if (selection := self.text_selection) is not None and (span := selection.get_span(place)) is not None:
            strip = _marked(strip, *span)
        return strip.apply_offsets(0, place)

    def _line(self, place: int) -> Strip:
        index = bisect_right(self._tops, place) - 1
        if index < 0:
            return Strip.blank(0)
        entry, line = self._entries[index], place - self._tops[index]
        if line >= len(entry.lines):
            return Strip.blank(0)
        return entry.lines[line].apply_style(CHOSEN) if entry is self.chosen and not line else entry.lines[line]

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        text = "\n".join(self._line(place).text for place in range(self._height))
        return selection.extract(text), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    # -- scrolling -------------------------------------------------------------------------------------

    @property
    def below(self) -> int:
        """Lines below the screen."""
        return max(0, self._height - self.scroll_offset.y - self.size.height)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._following = new_value >= self.max_scroll_y
        self.transcript.changed()

    def on_resize(self) -> None:
        self.redraw()
        self.transcript.changed()

    # -- choosing and unfolding ------------------------------------------------------------------------

    def take(self, key: str) -> bool:
        """While an entry is chosen, arrows choose another and Enter unfolds it; any other key ends that."""
        match key:
            case _ if self.chosen is None:
                return False
            case "up":
                self.choose(-1)
            case "down":
                self.choose(1)
            case "enter":
                self.transcript.toggle(self.chosen)
            case _:
                self.unchoose()
                return False
        return True

    def choose(self, step: int) -> None:
        """The last entry that unfolds, or the one before or after the one that is chosen."""
        folding = [entry for entry in self._entries if entry.folds]
        if not folding:
            return
        place = folding.index(self.chosen) + step if self.chosen in folding else len(folding) - 1
        self.chosen = folding[max(0, min(place, len(folding) - 1))]
        top = self._tops[self._entries.index(self.chosen)]
        self.scroll_to_region(Region(0, top, 1, 1), animate=False, immediate=True, force=True)
        self.refresh()

    def unchoose(self) -> None:
        self.chosen = None
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        index = bisect_right(self._tops, self.scroll_offset.y + event.y) - 1
        if index >= 0 and self._entries[index].folds and not self.screen.selections:
            self.transcript.toggle(self._entries[index])


def _marked(strip: Strip, start: int, end: int) -> Strip:
    length = strip.cell_length
    start, end = max(0, start), length if end < 0 else min(end, length)
    before, inside, after = strip.crop(0, start), strip.crop(start, end), strip.crop(end, length)
    return Strip.join([before, inside.apply_style(CHOSEN), after])
