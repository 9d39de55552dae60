"""One entry of a transcript."""

from __future__ import annotations

from textual.strip import Strip

from ..look import Look


class Entry:
    """Drawn when it has changed, or when the screen has another width; else its lines stay as they are."""

    tight = False
    """May it follow another such entry without an empty line between?"""
    folds = False
    """Is there more of it than is shown at first?"""

    def __init__(self) -> None:
        self.folded = True
        self.lines: list[Strip] = []
        """As last drawn."""
        self._drawn_for = 0

    @property
    def is_stale(self) -> bool:
        """Was it drawn at all since it changed?"""
        return not self._drawn_for

    def fits(self, width: int) -> bool:
        return self._drawn_for == width

    def changed(self) -> None:
        self._drawn_for = 0

    def fold(self, folded: bool) -> None:
        if self.folds and folded != self.folded:
            self.folded = folded
            self.changed()

    def redraw(self, width: int, look: Look) -> None:
        self.lines = self.draw(width, look)
        self._drawn_for = width

    def draw(self, width: int, look: Look) -> list[Strip]:
        raise NotImplementedError
