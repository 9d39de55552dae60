"""A list to choose from: typing filters it, arrows and Enter choose, Esc leaves it.

`await picker.choose(choices)` shows the list in place of the transcript and returns the chosen value, or None.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from textwrap import wrap

from rich.text import Text
from textual import events
from textual.widget import Widget

from ...errors import HoldfastError
from ...io.text import sanitize, sanitize_input, sanitize_line
from ..commands.base import Choice, Choices, ContentSearch
from .theme import ACCENT, BOLD, DIM, SELECTED, ChatTheme

_MIN_TITLE = 12
"""Columns that a title keeps beside its detail; in a narrower row the detail is dropped."""
_SEARCH_PAUSE = 0.15
"""Seconds without a key before contents are searched."""
_MIN_PREVIEW_HEIGHT = 15
_HEAD_ROWS = 2
"""The title with the filter, and the keys."""
_MOVES = {"up": -1, "ctrl+p": -1, "down": 1, "ctrl+n": 1}


class ChoiceFilter:
    """The typed filter, the choices that match it, and the selected one; knows nothing of the screen."""

    def __init__(self, items: Sequence[Choice]) -> None:
        self._items = [(item, _searched_text(item)) for item in items]
        self.text = ""
        self.matches: Sequence[Choice] = list(items)
        self.index = next((place for place, item in enumerate(items) if item.current), 0)

    def set_text(self, text: str) -> None:
        """Keeps the choices that contain every typed word, those with most of them in the title first."""
        self.text, self.index = text, 0
        words = text.casefold().split()
        found = [item for item, searched in self._items if all(word in searched for word in words)]
        self.matches = sorted(found, key=lambda item: sum(word not in item.title.casefold() for word in words))

    def add_found(self, text: str, values: Collection[str]) -> None:
        """Adds, after the others, the choices that contain the words, if they are still what is typed."""
        if text == self.text:
            known = {item.value for item in self.matches}
            more = [item for item, _ in self._items if item.value in values and item.value not in known]
            self.matches = [*self.matches, *more]

    def move(self, step: int) -> None:
        """Moves the selection, and stops at both ends."""
        self.index = max(0, min(self.index + step, len(self.matches) - 1))

    @property
    def selected(self) -> Choice | None:
        return self.matches[self.index] if self.matches else None


def _searched_text(item: Choice) -> str:
    return sanitize_line(f"{item.title} {item.detail} {item.about} {item.value}").casefold()


class Picker(Widget, can_focus=True):
    """Widget that replaces transcript and input while a choice is open."""

    DEFAULT_CSS = """
    Picker { height: 1fr; display: none; background: ansi_default; color: ansi_default; }
    """

    def __init__(self, theme: ChatTheme) -> None:
        super().__init__()
        self._chat_theme = theme
        self._choices = Choices("", ())
        self._filter = ChoiceFilter(())
        self._first = 0
        """Index of the first choice on the screen."""
        self._answer: asyncio.Future[str | None] | None = None
        self._searched = ""
        """The text that contents were last searched for."""

    async def choose(self, choices: Choices) -> str | None:
        """Shows the list until one is chosen; None if the user leaves it."""
        self.cancel()
        self._choices, self._filter, self._first = choices, ChoiceFilter(choices.items), 0
        self._searched = ""
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._answer = answer
        self.display = True
        self.focus()
        self.refresh()
        try:
            return await answer
        finally:
            if self._answer is answer:
                self._answer, self.display = None, False

    def cancel(self) -> None:
        """Leaves the list without a choice."""
        self._finish(None)

    def _finish(self, value: str | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(value)

    # -- keys ------------------------------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        found, typed = self._filter, event.character if event.is_printable else None
        match event.key:
            case "escape" | "ctrl+c":
                self.cancel()
            case "enter" if found.selected is not None:
                self._finish(found.selected.value)
            case key if key in _MOVES:
                found.move(_MOVES[key])
            case "pageup" | "pagedown":
                found.move((-1 if event.key == "pageup" else 1) * max(1, self._room // self._rows_each))
            case "home" | "end":
                found.move(len(found.matches) * (-1 if event.key == "home" else 1))
            case "backspace" if found.text:
                found.set_text(found.text[:-1])
            case "ctrl+u":
                found.set_text("")
            case _ if typed:
                found.set_text(found.text + typed)
            case _:
                return
        event.stop()
        self._filter_changed()

    def _filter_changed(self) -> None:
        self.refresh()
        if self._choices.search is not None and self._filter.text != self._searched:
            self._searched = self._filter.text
            self.run_worker(self._search(self._choices.search, self._searched), group="searching", exclusive=True)

    async def _search(self, search: ContentSearch, text: str) -> None:
        """Looks for what is typed in the contents, once the user pauses."""
        await asyncio.sleep(_SEARCH_PAUSE)
        if text.strip():
            try:
                self._filter.add_found(text, await search(text))
            except HoldfastError:
                return  # the list is filtered by what it shows
            self.refresh()

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self._filter.set_text(self._filter.text + " ".join(sanitize_input(event.text).split()))
        self._filter_changed()

    def on_click(self, event: events.Click) -> None:
        place = self._first + (event.y - 1) // self._rows_each
        if event.y and place < min(len(self._filter.matches), self._first + self._room // self._rows_each):
            self._finish(self._filter.matches[place].value)

    # -- drawing ---------------------------------------------------------------------------------------

    @property
    def _rows_each(self) -> int:
        return 2 if any(item.about for item in self._choices.items) else 1

    @property
    def _preview_rows(self) -> int:
        """Rows below the list, the rule above them included; none on a low screen."""
        has_preview = any(item.preview for item in self._choices.items)
        return self.size.height // 3 if has_preview and self.size.height >= _MIN_PREVIEW_HEIGHT else 0

    @property
    def _room(self) -> int:
        return max(1, self.size.height - _HEAD_ROWS - self._preview_rows)

    def render(self) -> Text:
        found, shown = self._filter, max(1, self._room // self._rows_each)
        self._first = max(min(self._first, found.index), found.index - shown + 1, 0)
        rows = [self._head()]
        for item in found.matches[self._first : self._first + shown]:
            rows += self._item_rows(item, selected=item is found.selected)
        if not found.matches:
            why = "Nothing matches: Backspace removes the last character." if found.text else self._choices.empty
            rows += [Text(f"  {line}", DIM) for line in wrap(why, max(8, self.size.width - 2))]
        rows += [Text()] * (self._room + 1 - len(rows))
        return Text("\n").join([*rows, *self._preview(), self._keys()])

    def _preview(self) -> list[Text]:
        if not (count := self._preview_rows):
            return []
        selected, width = self._filter.selected, self.size.width
        lines = sanitize(selected.preview if selected else "").split("\n")
        wrapped = [row for line in lines for row in wrap(line, max(8, width - 4)) or [""]][: count - 1]
        rows = [Text(self._chat_theme.symbols.rule * width, DIM), *(Text(f"  {row}") for row in wrapped)]
        return [*rows, *[Text()] * (count - len(rows))]

    def _head(self) -> Text:
        found, total = self._filter, len(self._choices.items)
        count = f"{len(found.matches):,} of {total:,}" if found.text else f"{total:,}"
        head = Text.assemble((self._choices.title, BOLD), (f"  {count}  ", DIM), (sanitize_line(found.text), ACCENT))
        head.append(" ", SELECTED)
        return self._fitted(head, "" if found.text else "type to filter")

    def _item_rows(self, item: Choice, *, selected: bool) -> list[Text]:
        marker = f"{self._chat_theme.symbols.prompt} " if selected else "  "
        title = Text.assemble((marker, ACCENT), (sanitize_line(item.title), BOLD if selected else ""))
        rows = [self._fitted(title, sanitize_line(item.detail))]
        if self._rows_each == 2:
            rows.append(self._fitted(Text(f"    {sanitize_line(item.about)}", DIM), ""))
        return rows

    def _fitted(self, left: Text, right: str) -> Text:
        """Returns one row: the left text cut to its room, the right one at the edge if there is room for both."""
        width, end = self.size.width, Text(right, DIM)
        room = width - end.cell_len - 2 if right else width
        if right and room < _MIN_TITLE:
            return self._fitted(left, "")
        if left.cell_len > room:
            ellipsis = self._chat_theme.symbols.ellipsis
            left.truncate(max(0, room - len(ellipsis)))
            left.append(ellipsis, DIM)
        left.append(" " * max(0, width - left.cell_len - end.cell_len))
        left.append_text(end)
        left.no_wrap = True
        return left

    def _keys(self) -> Text:
        keys = Text()
        for key, what in (("Enter", self._choices.enter), ("Up/Down", "move"), ("Esc", self._choices.leave)):
            keys.append(key, BOLD).append(f" {what}   ", DIM)
        keys.rstrip()
        return self._fitted(keys, "")
