"""The input box, with its completion list and the search in its history."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import cast

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.keys import Keys
from textual.message import Message
from textual.widget import Widget
from textual.widgets import TextArea

from ...io.text import sanitize_input, sanitize_line
from ..mention_completion import unfinished_mention
from .input_history import HistorySearch, InputHistory
from .theme import ACCENT, BOLD, DIM, ChatTheme

_MAX_COMPLETIONS = 6


class CompletionList(Widget):
    """List of completions above the input; Tab and arrows select."""

    DEFAULT_CSS = """
    CompletionList { height: auto; max-height: 8; display: none; background: ansi_default; color: ansi_default; }
    """

    def __init__(self, theme: ChatTheme) -> None:
        super().__init__()
        self._chat_theme = theme
        self.candidates: Sequence[str] = ()
        self._descriptions: dict[str, str] = {}
        self._selected = -1
        self._heading = ""
        self.mention: str | None = None
        """The unfinished @path that the candidates complete; None if they complete the whole input."""

    def set_descriptions(self, descriptions: dict[str, str]) -> None:
        """Sets the help text shown next to a candidate."""
        self._descriptions = descriptions

    def set_candidates(self, candidates: Sequence[str]) -> None:
        self.candidates, self._selected, self._heading = candidates, -1, ""
        self.mention = None
        self.display = bool(candidates)
        self.refresh(layout=True)

    def set_mentions(self, mention: str, candidates: Sequence[str]) -> None:
        """Lists paths for an unfinished mention, with the first one selected."""
        self.set_candidates(candidates)
        self._selected, self.mention = 0, mention if candidates else None

    def move(self, step: int) -> None:
        """Selects another candidate without changing the input."""
        self._selected = (self._selected + step) % len(self.candidates)
        self.refresh()

    @property
    def selected(self) -> str:
        return self.candidates[self._selected]

    def show_search(self, search: HistorySearch) -> None:
        """Shows the query of a search in the history, and its matches."""
        self.set_candidates(search.matches)
        self._selected, self.display = search.selected, True
        self._heading = f"history search: {search.query}" + ("" if search.matches else "  (no match)")

    def step(self, typed: str, step: int) -> str | None:
        """Returns the new input text: the common prefix first, then each candidate in turn."""
        if not self.candidates or self.mention is not None:
            return None
        shared = _common_prefix(self.candidates)
        if not step and self._selected < 0 and len(shared) > len(typed):
            return shared + (" " if len(self.candidates) == 1 else "")
        move = step or 1
        self._selected = (
            (self._selected + move) % len(self.candidates)
            if self._selected >= 0 or move > 0
            else len(self.candidates) - 1
        )
        self.refresh()
        return self.candidates[self._selected]

    def render(self) -> Text:
        first = max(0, min(self._selected - _MAX_COMPLETIONS // 2, len(self.candidates) - _MAX_COMPLETIONS))
        shown = list(enumerate(self.candidates))[first : first + _MAX_COMPLETIONS]
        wide = max((cell_len(one) for _, one in shown), default=0)
        lines = [Text(sanitize_line(self._heading), DIM, no_wrap=True, overflow="ellipsis")] if self._heading else []
        for index, one in shown:
            selected = index == self._selected
            line = Text(no_wrap=True, overflow="ellipsis")
            line.append(f"{self._chat_theme.symbols.prompt} " if selected else "  ", ACCENT)
            line.append(sanitize_line(one), BOLD if selected else "")
            if about := self._descriptions.get(one.strip()):
                line.append(f"{' ' * (wide - cell_len(one))}  {about}", DIM)
            lines.append(line)
        if more := len(self.candidates) - len(shown):
            lines.append(Text(f"  {self._chat_theme.symbols.ellipsis} {more} more", DIM))
        return Text("\n", no_wrap=True, overflow="crop").join(lines)


def _common_prefix(found: Sequence[str]) -> str:
    """Returns the longest common prefix."""
    first, last = min(found), max(found)
    same = (index for index, letter in enumerate(first) if last[index : index + 1] != letter)
    return first[: next(same, len(first))]


MAX_PASTED_LINES, MAX_PASTED_CHARS = 20, 4_000
"""A longer paste is folded."""
_MAX_LINES, _SHOWN_LINES, _MAX_CHARS = 200, 10, 40_000
"""Of a longer text that is put into the input, as from the history, only the first lines are shown."""
_MARK = re.compile(r"\[pasted [\d,]+ (?:lines?|characters)(?: #\d+)?\]")


class PastedTexts:
    """Long texts folded in the input, by their marks: an editor of thousands of lines wraps them all at each key.

    The whole text is sent; a mark that was edited is sent as it is.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold_paste(self, text: str) -> str:
        """Returns the text, or a mark for a long one."""
        lines = text.count("\n") + 1
        if lines <= MAX_PASTED_LINES and len(text) <= MAX_PASTED_CHARS:
            return text
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        mark, number = f"[pasted {size}]", 1
        while self._texts.setdefault(mark, text) != text:
            number += 1
            mark = f"[pasted {size} #{number}]"
        return mark

    def fold_text(self, text: str) -> str:
        """Returns the text; of a very long one, the first lines and a mark for the rest."""
        if text.count("\n") < _MAX_LINES and len(text) <= _MAX_CHARS:
            return text
        lines = text.split("\n")
        first = "\n".join(lines[:_SHOWN_LINES])
        if len(lines) <= _SHOWN_LINES or len(first) > MAX_PASTED_CHARS:
            return self.fold_paste(text)
        rest = self.fold_paste("\n".join(lines[_SHOWN_LINES:]))
        return f"{first}\n{rest}"

    def expand(self, text: str) -> str:
        """Returns the text with the whole of what its marks stand for."""
        return _MARK.sub(lambda mark: self._texts.get(mark[0], mark[0]), text) if self._texts else text

    def mark_before(self, text: str) -> str:
        """Returns the mark at the end of a text, so that it is deleted as one; empty if there is none."""
        return next((mark for mark in self._texts if text.endswith(mark)), "")


_NEW_LINE = ("shift+enter", "alt+enter", "ctrl+j", "shift+\r")
"""Key names sent by different terminals; the last is xterm's."""


cast("dict[str, object]", ANSI_SEQUENCES_KEYS).setdefault("\x1b\r", (Keys.ControlJ,))
"""Alt-Enter, which textual would read as Enter."""


class InputBox(TextArea):
    """Multi-line editor in which Enter sends; grows up to a third of the screen."""

    DEFAULT_CSS = """
    InputBox, InputBox:focus {
        height: auto; max-height: 33vh; min-height: 1; padding: 0; border: none; scrollbar-size: 0 0;
        background: ansi_default; color: ansi_default;
        & .text-area--cursor { text-style: reverse; color: ansi_default; background: ansi_default; }
        & .text-area--cursor-line { background: ansi_default; }
        & .text-area--placeholder { color: ansi_default; text-style: dim; }
    }
    """

    class Sent(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(
        self,
        completions: CompletionList,
        intercept_key: Callable[[str], bool] = lambda key: False,
        replace_paste: Callable[[str], str] = lambda text: text,
    ) -> None:
        super().__init__(soft_wrap=True, highlight_cursor_line=False, placeholder="Ask, or /help", compact=True)
        self.cursor_blink = False
        self.input_history = InputHistory()
        self._completions = completions
        self._pasted = PastedTexts()
        self._intercept_key = intercept_key
        """Called with each key first; returns True to consume it."""
        self._replace_paste = replace_paste
        """Returns what to insert for a pasted text."""
        self._search: HistorySearch | None = None

    def set_text(self, text: str) -> None:
        """Replaces the text and moves the cursor to its end."""
        self.load_text(self._pasted.fold_text(sanitize_input(text)))
        self.move_cursor(self.document.end)

    def restore_unsent(self, text: str) -> None:
        """Puts an unsent text back before the current one."""
        self.set_text(f"{text}\n{self.text}" if self.text.strip() else text)

    def action_delete_left(self) -> None:
        """Deletes a character, or a folded paste as one."""
        row, column = self.cursor_location
        mark = self._pasted.mark_before(self.document.get_line(row)[:column]) if self.selection.is_empty else ""
        if mark:
            self.delete((row, column - len(mark)), (row, column))
        else:
            super().action_delete_left()

    async def _on_key(self, event: events.Key) -> None:
        if self._intercept_key(event.key) or self._handle_key(event):
            event.stop()
            event.prevent_default()
        else:
            await super()._on_key(event)

    def _handle_key(self, event: events.Key) -> bool:
        """Handles send, newline, completion and history keys; returns False for editor keys."""
        if self._search is not None:
            return self._handle_search_key(self._search, event)
        match event.key:
            case "enter" | "tab" if self._completes_mention():
                self._complete_mention(self._completions.selected)
            case "up" | "down" if self._completes_mention():
                self._completions.move(-1 if event.key == "up" else 1)
            case "ctrl+r":
                self._search = HistorySearch(self.input_history, self.text)
                self._completions.show_search(self._search)
            case "enter" if self._ends_in_backslash():
                self.action_delete_left()
                self.insert("\n")
            case "enter":
                self._send()
            case key if key in _NEW_LINE:
                self.insert("\n")
            case "tab":
                self._replace_text(self._completions.step(self.text, 0))
            case "up" | "down" if self._completions.candidates:
                self._replace_text(self._completions.step(self.text, -1 if event.key == "up" else 1))
            case "up" if self.navigator.is_first_wrapped_line(self.cursor_location):
                return self._replace_text(self.input_history.previous(self.text))
            case "down" if self.navigator.is_last_wrapped_line(self.cursor_location):
                return self._replace_text(self.input_history.next())
            case _:
                return False
        return True

    @property
    def text_before_cursor(self) -> str:
        """The line of the cursor up to it."""
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    def _completes_mention(self) -> bool:
        """Whether the list is of the mention at the cursor; one of an earlier text would complete to a wrong path."""
        mention = self._completions.mention
        return mention is not None and mention == unfinished_mention(self.text_before_cursor)

    def _complete_mention(self, mention: str) -> None:
        typed = unfinished_mention(self.text_before_cursor) or ""
        row, column = self.cursor_location
        self.replace(f"{mention} ", (row, column - len(typed)), (row, column))

    def _handle_search_key(self, search: HistorySearch, event: events.Key) -> bool:
        """Extends the query or selects a match; Enter and Tab put the match into the input, without sending it."""
        match event.key:
            case "ctrl+r" | "down":
                search.step(1)
            case "up":
                search.step(-1)
            case "backspace":
                search.shorten()
            case "enter" | "tab" | "right":
                self._end_search(search.found)
                return True
            case _ if event.character is not None and event.is_printable:
                search.extend(event.character)
            case _:
                self._end_search(search.found)
                return False
        self._completions.show_search(search)
        return True

    @property
    def is_searching(self) -> bool:
        """Whether a search in the history is open."""
        return self._search is not None

    def cancel_search(self) -> bool:
        """Ends a search in the history and restores the input; returns False if there is none."""
        if self._search is None:
            return False
        self._end_search(None)
        return True

    def _end_search(self, found: str | None) -> None:
        assert self._search is not None
        self._completions.set_candidates(())
        self.set_text(self._search.draft if found is None else found)
        self._search = None

    def _replace_text(self, text: str | None) -> bool:
        if text is not None:
            self.set_text(text)
        return text is not None

    def _ends_in_backslash(self) -> bool:
        return self.text_before_cursor.endswith("\\")

    def _send(self) -> None:
        text = self.text.strip()
        self.input_history.add("" if self.text.startswith(" ") else text)
        self.clear()
        self.post_message(self.Sent(self._pasted.expand(text)))

    async def _on_paste(self, event: events.Paste) -> None:
        """Inserts a paste as one text, with control characters made visible; a long one is folded."""
        event.prevent_default()
        event.stop()
        if self._search is not None:
            self._end_search(self._search.found)
        self.insert(self._pasted.fold_paste(sanitize_input(self._replace_paste(event.text))))
