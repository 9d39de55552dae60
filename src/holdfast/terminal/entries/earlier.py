"""What was said before this start of the program: a line or two of each, and the summary folded."""

from __future__ import annotations

from rich.text import Text
from textual.strip import Strip

from ..clean import clean, one_line
from ..drawing import beside, cut, indented, plain_lines
from ..look import DIM, PLAIN, Look
from .entry import Entry

_MOST = 600
"""Characters of a message that are looked at."""


class Earlier(Entry):
    """A message in one line."""

    tight = True

    def __init__(self, who: str, text: str) -> None:
        super().__init__()
        self._who, self._text = who, one_line(text[:_MOST])
        self.said = text if who == "user" else None

    def draw(self, width: int, look: Look) -> list[Strip]:
        signs = look.signs
        sign = {"user": signs.prompt, "tool": signs.dot}.get(self._who, " ")
        line = Text(self._text, PLAIN if self._who == "user" else DIM)
        return beside(f"{sign} ", DIM, [cut(line, width - 2, signs.more)])


class Summary(Entry):
    """What stands for the messages that were compacted."""

    tight = True
    folds = True

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = clean(text).strip()

    def draw(self, width: int, look: Look) -> list[Strip]:
        signs = look.signs
        count = self._text.count("\n") + 1
        head = f"{signs.folded if self.folded else signs.open} summary of what came before, {count} lines"
        drawn = plain_lines(head, width, DIM)
        return (
            drawn if self.folded else drawn + indented(plain_lines(self._text, width - 4, DIM), f"  {signs.bar} ", DIM)
        )
