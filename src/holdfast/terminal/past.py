"""What was typed before, to be had again with up and down."""

from __future__ import annotations

from collections.abc import Iterable

_MOST = 500


class Past:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._place = 0
        self._draft = ""

    def add(self, text: str) -> None:
        if text.strip() and (not self._lines or self._lines[-1] != text):
            self._lines = [*self._lines, text][-_MOST:]
        self._place = len(self._lines)

    def fill(self, texts: Iterable[str]) -> None:
        """What was said in a session before, if nothing is known yet."""
        if not self._lines:
            for text in texts:
                self.add(text)

    def back(self, draft: str) -> str | None:
        """The one before; None at the beginning. What is being typed is kept for the way back."""
        if self._place == len(self._lines):
            self._draft = draft
        if not self._place:
            return None
        self._place -= 1
        return self._lines[self._place]

    def forth(self) -> str | None:
        if self._place == len(self._lines):
            return None
        self._place += 1
        return self._lines[self._place] if self._place < len(self._lines) else self._draft
