"""Where the conversation stands, for the footer."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..agent.events import Gauged, Known
from ..chat import State


class Standing:
    """What the footer shows; told bit by bit."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.session = self.model = self.preset = ""
        self.tokens = self.window = 0
        self.known: Known = "estimated"
        self.auto = True
        self.busy = False
        self.doing = ""
        """What is happening, in a word or two; empty while nothing is."""
        self.remark = ""
        """Said once: the next key takes it away."""
        self._clock = clock
        self._since = 0.0

    @property
    def seconds(self) -> int:
        """How long it has been doing that."""
        return int(self._clock() - self._since)

    def does(self, what: str) -> None:
        if what != self.doing:
            self.doing, self._since = what, self._clock()

    def gauge(self, event: Gauged) -> None:
        self.tokens, self.window, self.known, self.auto = event.tokens, event.window, event.known, event.auto

    def settle(self, state: State) -> None:
        self.session, self.model, self.preset = state.session, state.model, state.preset
        self.tokens, self.window, self.known, self.auto = state.tokens, state.window, state.known, state.auto
