"""What the program itself has to say: notices, problems, and the pages of commands."""

from __future__ import annotations

from typing import Literal

from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from ..clean import clean, one_line
from ..drawing import beside, indented, plain_lines, wrapped
from ..look import BAD, BOLD, DIM, QUIET, WARN, Look
from .entry import Entry

Tone = Literal["quiet", "aside", "warning", "problem"]
_STYLES: dict[Tone, Style] = {"quiet": DIM, "aside": QUIET, "warning": WARN, "problem": BAD}


class Note(Entry):
    """A sentence or two."""

    tight = True

    def __init__(self, text: str, tone: Tone = "quiet") -> None:
        super().__init__()
        self.text, self._tone = clean(text).strip(), tone

    def draw(self, width: int, look: Look) -> list[Strip]:
        strips = plain_lines(self.text, width - 4, _STYLES[self._tone])
        sign = {"warning": "! ", "problem": f"{look.signs.bad} "}.get(self._tone, f"{look.signs.dot} ")
        return indented(beside(sign, _STYLES[self._tone], strips))


class Welcome(Entry):
    """Where one is, and how to get on."""

    def __init__(self, how: str, folder: str, model: str) -> None:
        super().__init__()
        session = {"new": "a new session", "handed_off": "a new session for a goal", "forked": "a branch"}.get(how)
        self._where = f"{session or 'the session as it stands'} in {one_line(folder)}, with {one_line(model)}"

    def draw(self, width: int, look: Look) -> list[Strip]:
        dot = look.signs.dot
        first = Text.assemble(("holdfast ", BOLD), (self._where, DIM))
        keys = f"/help lists the commands {dot} Esc stops {dot} Ctrl-O unfolds {dot} Ctrl-D leaves"
        return indented([*wrapped(first, width - 2), *plain_lines(keys, width - 2, DIM)])


class Page(Entry):
    """What a command answers, with its columns as they are."""

    tight = True

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = clean(text).strip("\n")

    def draw(self, width: int, look: Look) -> list[Strip]:
        return indented(plain_lines(self.text, width - 2, DIM))
