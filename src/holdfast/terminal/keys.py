"""What keys do, wherever the cursor is; and what Ctrl-C means."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from textual.binding import Binding

AGAIN = 1.0
"""Seconds in which the second Ctrl-C must come."""
_ACTIONS = {
    "ctrl+c": "interrupt",
    "ctrl+d": "leave_or_delete",
    "escape": "stop",
    "ctrl+o": "unfold_all",
    "shift+tab": "choose",
    "ctrl+z": "suspend_process",
    "ctrl+l": "redraw",
    "pageup": "page(-1)",
    "pagedown": "page(1)",
    "ctrl+home": "home",
    "ctrl+end": "end",
}
BINDINGS = [Binding(key, action, show=False, priority=True) for key, action in _ACTIONS.items()]


class Interrupts:
    """Stop, clear, and twice within a second: leave."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = float("-inf")

    def forget(self) -> None:
        """Another key came in between."""
        self._last = float("-inf")

    def meaning(self, *, busy: bool, typed: bool) -> Literal["leave", "stop", "clear", "warn"]:
        now = self._clock()
        again, self._last = now - self._last <= AGAIN, now
        if again:
            return "leave"
        return "stop" if busy else "clear" if typed else "warn"
