"""What the model says, and what it thinks aloud."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from ..clean import clean, one_line
from ..drawing import beside, cut, indented, plain_lines, rendered
from ..look import DIM, PLAIN, QUIET, WARN, Look
from ..markdown import LONGEST, QuietMarkdown
from .entry import Entry

_MOST = 200_000
"""Characters of one reply that are shown; all of it is in the session."""
_LONG_LINE = 4_000


class Stream:
    """Text that comes in pieces. A line that has come to its end is wrapped once."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0
        self._ended: list[Strip] = []
        self._rest = ""
        self._width = 0

    def add(self, piece: str) -> None:
        if self._size < _MOST:
            self._pieces.append(piece)
            self._size += len(piece)
            self._rest += piece

    @property
    def text(self) -> str:
        return clean("".join(self._pieces)).strip("\n")

    def lines(self, width: int, style: Style) -> list[Strip]:
        if width != self._width:
            self._ended, self._width, self._rest = [], width, "".join(self._pieces)
        rest = self._rest if self._ended else self._rest.lstrip("\n")
        *ended, self._rest = rest.split("\n")
        while len(self._rest) > _LONG_LINE:
            ended.append(self._rest[:_LONG_LINE])
            self._rest = self._rest[_LONG_LINE:]
        for line in ended:
            self._ended += plain_lines(clean(line), width, style)
        return self._ended + plain_lines(clean(self._rest), width, style)


class Reply(Entry):
    """Plain while it comes; Markdown when it is whole."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._stream = Stream()
        self._stream.add(text)
        self.whole = bool(text)
        self._remark = ""

    def say(self, piece: str) -> None:
        self._stream.add(piece)
        self.changed()

    def end(self, remark: str = "") -> None:
        """That is all; `remark` says why, where it is not the end that it should have had."""
        self.whole, self._remark = True, remark
        self.changed()

    def draw(self, width: int, look: Look) -> list[Strip]:
        text = self._stream.text if self.whole else ""
        if text and len(text) <= LONGEST:
            strips = rendered(QuietMarkdown(text), width - 2)
        else:
            strips = self._stream.lines(width - 2, PLAIN)
        if self._remark:
            strips = [*strips, *plain_lines(f"({self._remark})", width - 2, WARN)]
        return indented(strips)


class Thought(Entry):
    """What the model thinks aloud: dim, and folded once it speaks."""

    tight = True
    folds = True

    def __init__(self) -> None:
        super().__init__()
        self._stream = Stream()
        self.whole = False

    def say(self, piece: str) -> None:
        self._stream.add(piece)
        self.changed()

    def end(self) -> None:
        self.whole = True
        self.changed()

    def draw(self, width: int, look: Look) -> list[Strip]:
        signs = look.signs
        if self.whole and self.folded:
            line = Text.assemble(("thought ", DIM), (one_line(self._stream.text), QUIET))
            return indented(beside(f"{signs.folded} ", DIM, [cut(line, width - 4, signs.more)]))
        strips = self._stream.lines(width - 4, QUIET)
        return indented(beside(f"{signs.open if self.whole else signs.busy} ", DIM, strips))
