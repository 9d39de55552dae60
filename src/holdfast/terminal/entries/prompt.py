"""What a person said."""

from __future__ import annotations

from rich.text import Text
from textual.strip import Strip

from ..clean import clean, one_line
from ..drawing import beside, cut, indented, plain_lines
from ..look import BOLD, DIM, NAME, QUIET, Look
from .entry import Entry

_SHOWN = 12
"""Lines of a long prompt that are shown folded."""


class Prompt(Entry):
    """A prompt or a command. While it waits it says so, and stands at the end."""

    def __init__(self, text: str, waiting: str = "") -> None:
        super().__init__()
        self.text = text
        self.waiting, self.tight = waiting, bool(waiting)
        """Why it has not been heard yet; empty once it has."""
        self._lines = clean(text).strip("\n").split("\n")
        self.folds = len(self._lines) > _SHOWN

    def wait(self, why: str) -> None:
        self.waiting, self.tight = why, bool(why)
        self.changed()

    def heard(self) -> None:
        self.wait("")

    def draw(self, width: int, look: Look) -> list[Strip]:
        sign = f"{look.signs.prompt} "
        if self.waiting:
            line = Text.assemble((f"{self.waiting}: ", DIM), (one_line(self.text), QUIET))
            return beside(sign, DIM, [cut(line, width - 2, look.signs.more)])
        is_command = self.text.startswith("/")
        shown = self._lines[:_SHOWN] if self.folded else self._lines
        strips = plain_lines("\n".join(shown), width - 2, NAME if is_command else BOLD)
        drawn = beside(sign, DIM if is_command else NAME, strips)
        if left := len(self._lines) - len(shown):
            drawn += indented(plain_lines(f"{look.signs.folded} {left} more lines", width - 2, DIM))
        return drawn
