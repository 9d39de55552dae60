"""Where a person types: Enter sends, and everything else is a small editor."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.keys import Keys
from textual.message import Message
from textual.widgets import TextArea

from .clean import typed
from .completing import Completions
from .past import Past

_NEW_LINE = ("shift+enter", "alt+enter", "ctrl+j", "shift+\r")
"""As terminals say it, where they say it at all: the last is xterm's."""
cast("dict[str, object]", ANSI_SEQUENCES_KEYS).setdefault("\x1b\r", (Keys.ControlJ,))
"""Alt-Enter, which textual would take for Enter."""


class InputBox(TextArea):
    """Grows with its text, up to a third of the screen."""

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

    def __init__(self, completions: Completions, take_first: Callable[[str], bool] = lambda key: False) -> None:
        super().__init__(soft_wrap=True, highlight_cursor_line=False, placeholder="Ask, or /help", compact=True)
        self.cursor_blink = False
        self.past = Past()
        self._completions = completions
        self._take_first = take_first
        """Somebody else who may want a key."""

    def put(self, text: str) -> None:
        """Replace what is there, and go to its end."""
        self.load_text(typed(text))
        self.move_cursor(self.document.end)

    def give_back(self, text: str) -> None:
        """Text that was not heard returns, before what was typed since."""
        self.put(f"{text}\n{self.text}" if self.text.strip() else text)

    async def _on_key(self, event: events.Key) -> None:
        if self._take_first(event.key) or self._take(event):
            event.stop()
            event.prevent_default()
        else:
            await super()._on_key(event)

    def _take(self, event: events.Key) -> bool:
        """True for a key that is not the editor's."""
        match event.key:
            case "enter" if self._ends_in_backslash():
                self.action_delete_left()
                self.insert("\n")
            case "enter":
                self._send()
            case key if key in _NEW_LINE:
                self.insert("\n")
            case "tab":
                self._recall(self._completions.step(self.text, 0))
            case "up" | "down" if self._completions.found:
                self._recall(self._completions.step(self.text, -1 if event.key == "up" else 1))
            case "up" if self.navigator.is_first_wrapped_line(self.cursor_location):
                return self._recall(self.past.back(self.text))
            case "down" if self.navigator.is_last_wrapped_line(self.cursor_location):
                return self._recall(self.past.forth())
            case _:
                return False
        return True

    def _recall(self, text: str | None) -> bool:
        if text is not None:
            self.put(text)
        return text is not None

    def _ends_in_backslash(self) -> bool:
        row, column = self.cursor_location
        return self.document.get_line(row)[:column].endswith("\\")

    def _send(self) -> None:
        text = self.text.strip()
        self.past.add(text)
        self.clear()
        self.post_message(self.Sent(text))

    async def _on_paste(self, event: events.Paste) -> None:
        """Many lines at once are one text; what could steer the screen is made visible."""
        event.prevent_default()
        event.stop()
        self.insert(typed(event.text))
