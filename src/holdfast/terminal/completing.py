"""The small list above the input: what a command, or its argument, may become."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text
from textual.widget import Widget

from .clean import one_line
from .look import BOLD, DIM, NAME, Look

_SHOWN = 6


class Completions(Widget):
    """Nothing is chosen until Tab or an arrow chooses."""

    DEFAULT_CSS = """
    Completions { height: auto; max-height: 6; display: none; background: ansi_default; color: ansi_default; }
    """

    def __init__(self, look: Look) -> None:
        super().__init__()
        self._look = look
        self.found: Sequence[str] = ()
        self._about: dict[str, str] = {}
        self._chosen = -1

    def explain(self, about: dict[str, str]) -> None:
        """A few words about some of them."""
        self._about = about

    def offer(self, found: Sequence[str]) -> None:
        self.found, self._chosen = found, -1
        self.display = bool(found)
        self.refresh(layout=True)

    def step(self, typed: str, step: int) -> str | None:
        """What the input should say now: as much as all of them share, else one after the other."""
        if not self.found:
            return None
        shared = _shared(self.found)
        if not step and self._chosen < 0 and len(shared) > len(typed):
            return shared + (" " if len(self.found) == 1 else "")
        move = step or 1
        self._chosen = (self._chosen + move) % len(self.found) if self._chosen >= 0 or move > 0 else len(self.found) - 1
        self.refresh()
        return self.found[self._chosen]

    def render(self) -> Text:
        first = max(0, min(self._chosen - _SHOWN // 2, len(self.found) - _SHOWN))
        shown = list(enumerate(self.found))[first : first + _SHOWN]
        wide = max((cell_len(one) for _, one in shown), default=0)
        lines = []
        for place, one in shown:
            chosen = place == self._chosen
            line = Text(no_wrap=True, overflow="ellipsis")
            line.append(f"{self._look.signs.prompt} " if chosen else "  ", NAME)
            line.append(one_line(one), BOLD if chosen else "")
            if about := self._about.get(one.strip()):
                line.append(f"{' ' * (wide - cell_len(one))}  {about}", DIM)
            lines.append(line)
        return Text("\n", no_wrap=True, overflow="crop").join(lines)


def _shared(found: Sequence[str]) -> str:
    """What all of them begin with."""
    first, last = min(found), max(found)
    same = (place for place, letter in enumerate(first) if last[place : place + 1] != letter)
    return first[: next(same, len(first))]
