"""Calls the user when the chat waits for an answer, ends or fails: bell, notification, and the window's title.

The title is always current. Bell and notification are for somebody who is elsewhere: the terminal has lost the focus,
or nothing was typed for a while.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Literal

from ...io.text import sanitize_line

AWAY_SECONDS = 10.0
"""Without a key for so long, the user counts as away from a terminal that has the focus."""
_MAX_TEXT = 160
_PUSH_TITLE, _POP_TITLE = "\x1b[22;0t", "\x1b[23;0t"
_URXVT_TERMINALS = ("foot", "rxvt")
"""Terminals whose notifications are OSC 777, by the beginning of TERM; those on VTE name their version."""
Status = Literal["", "busy", "waiting", "done", "failed"]
"""Empty before the first run."""
_MARKS: dict[Status, str] = {"": "", "busy": "… ", "waiting": "? ", "done": "✓ ", "failed": "✗ "}


def notification(title: str, text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Returns a bell and a notification in the form that the terminal shows; tmux passes it on if it is set to."""
    title, text = _plain(title).replace(";", ","), _plain(text).replace(";", ",")
    is_urxvt = environ.get("VTE_VERSION") or environ.get("TERM", "").startswith(_URXVT_TERMINALS)
    shown = f"\x1b]777;notify;{title};{text}\x07" if is_urxvt else f"\x1b]9;{title}: {text}\x07"
    if environ.get("TMUX"):
        shown = "\x1bPtmux;" + shown.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return f"\x07{shown}"


def window_title(text: str) -> str:
    return f"\x1b]2;{_plain(text)}\x07"


def _plain(text: str) -> str:
    return "".join(letter for letter in sanitize_line(text) if letter.isprintable())[:_MAX_TEXT]


class Attention:
    """Follows what the chat does; writes escape sequences when it changes."""

    def __init__(
        self, write: Callable[[str], object], *, calls: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._calls, self._clock = write, calls, clock
        self._last_key = clock()
        self._title = ""
        self._status: Status = ""
        self.focused = True

    def key_pressed(self) -> None:
        self._last_key = self._clock()

    @property
    def is_away(self) -> bool:
        return not self.focused or self._clock() - self._last_key >= AWAY_SECONDS

    def update(self, status: Status, name: str, what: str) -> None:
        """Shows the status and its description in the title; calls the user if the chat now waits for them."""
        if (title := f"{_MARKS[status]}{name}{f': {what}' if what else ''}") != self._title:
            self._write(("" if self._title else _PUSH_TITLE) + window_title(title))
            self._title = title
        if status != self._status and status in ("waiting", "done", "failed") and self._calls and self.is_away:
            self._write(notification(name, what))
        self._status = status

    def close(self) -> None:
        """Restores the title."""
        if self._title:
            self._write(_POP_TITLE)
            self._title = ""
