"""What Ctrl-C does: stop, clear the input, or, pressed twice, quit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

DOUBLE_PRESS_SECONDS = 1.0
"""Seconds within which a second Ctrl-C quits."""


class CtrlCState:
    """Decides what Ctrl-C does: stop, clear the input, or, pressed twice, quit."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = float("-inf")

    def reset(self) -> None:
        """Forgets the last press, because another key was pressed."""
        self._last = float("-inf")

    @property
    def would_quit(self) -> bool:
        """Whether a press now would quit."""
        return self._clock() - self._last < DOUBLE_PRESS_SECONDS

    def press(self, *, busy: bool, typed: bool) -> Literal["leave", "stop", "clear", "warn"]:
        """Returns the action for this press."""
        now = self._clock()
        again, self._last = now - self._last <= DOUBLE_PRESS_SECONDS, now
        if again:
            return "leave"
        return "stop" if busy else "clear" if typed else "warn"
