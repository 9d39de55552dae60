"""Which lines are a file's as it was seen last: what it no longer holds, nobody should read as if it did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice

from .changes import Change
from .lines import Line, lines_of

_TELLING, _LOOKED_AT = 10, 5_000
"""Characters of a part of a line, at least, to know the line by it; lines among which it is looked for, the newest."""


class FileLines:
    """The lines that are known of each file. Most files are never changed: of these, nobody asks for any."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._known: dict[str, dict[str, None]] = {}
        self._unread: defaultdict[str, list[Sequence[str]]] = defaultdict(list)
        for line in lines:
            if line.voice in ("file", "wrote"):
                self.note(line.source, (line.text,))

    def note(self, path: str, texts: Sequence[str]) -> None:
        self._unread[path].append(texts)

    def _of(self, path: str) -> dict[str, None]:
        known = self._known.setdefault(path, {})
        for texts in self._unread.pop(path, ()):
            known.update(dict.fromkeys(texts))
        return known

    def let_go(self, change: Change, lines: dict[str, Line]) -> None:
        """Drop what a change takes out of its file: all of it, whole lines, and lines of which a part is replaced."""
        if change.kind != "part":
            gone = list(self._of(change.path))
        else:
            old = [line for _, line, _ in lines_of(change.old)]
            parts = [line for line in {*old[:1], *old[-1:]} if line not in lines and len(line) >= _TELLING]
            newest = islice(reversed(self._of(change.path)), _LOOKED_AT) if parts else ()
            gone = [text for text in newest if any(part in text for part in parts)]
            for line in old:
                lines.pop(line, None)
        for text in gone:
            del self._known[change.path][text]
            if (noted := lines.get(text)) and noted.source == change.path:
                del lines[text]

    def stay_gone(self, change: Change, lines: dict[str, Line]) -> None:
        """An answer that quotes what was replaced does not bring it back."""
        new = {line for _, line, _ in lines_of(change.new)} if change.old else ()
        for _, line, _ in lines_of(change.old):
            if line not in new:
                lines.pop(line, None)
