"""The files of a history: a record of each, and its known lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from .entries import FileRecord
from .lines import FILE_KINDS, LedgerLine, split_lines
from .paths import base_name, group_by_base_name
from .shell_files import FileChange, resolve_path

_MAX_ALIKE = 50
"""Newest paths with the same base name among which a relative one is sought."""


class FileIndex(dict[str, FileRecord]):
    """File records by path, the most recently touched last."""

    def __init__(self, files: Iterable[FileRecord]) -> None:
        super().__init__((file.path, file) for file in files)
        self._alike = group_by_base_name(self)

    def touch(self, path: str, place: int, time: int) -> FileRecord:
        if path in self:
            note = self[path] = self.pop(path)
        else:
            alike = self._alike.setdefault(base_name(path), [])
            newest = alike[-_MAX_ALIKE:]
            relative = next((known for known in newest if "/" in known and path.endswith(f"/{known}")), path)
            note = self[path] = replace(self.pop(relative, FileRecord(path)), path=path)
            alike.append(path)
        note.place, note.time = place, time
        return note

    def resolve(self, path: str) -> str:
        """Returns the known path of a file that is named by a relative path."""
        return resolve_path(path, self._alike.get(base_name(path), ()))

    def relevant_changes(self, changes: Iterable[FileChange]) -> Iterator[FileChange]:
        """Yields the changes, without deletions of files never seen before."""
        for change in changes:
            if change.kind == "deleted" or (change.kind == "part" and "/" in change.path):
                change = replace(change, path=self.resolve(change.path))
            if change.kind != "deleted" or change.path in self:
                yield change


_MIN_FRAGMENT_CHARS, _MAX_LINES_SEARCHED = 10, 5_000
"""Shortest line fragment that identifies its line; number of newest lines searched for it."""


class FileLines:
    """The known lines of each file, indexed lazily: most files are never changed."""

    def __init__(self, lines: Iterable[LedgerLine]) -> None:
        self._known: dict[str, dict[str, None]] = {}
        self._pending: defaultdict[str, list[Sequence[str]]] = defaultdict(list)
        for line in lines:
            if line.kind in FILE_KINDS:
                self.add(line.source, (line.text,))

    def add(self, path: str, texts: Sequence[str]) -> None:
        self._pending[path].append(texts)

    def _lines_of(self, path: str) -> dict[str, None]:
        known = self._known.setdefault(path, {})
        for texts in self._pending.pop(path, ()):
            known.update(dict.fromkeys(texts))
        return known

    def remove_changed(self, change: FileChange, lines: dict[str, LedgerLine]) -> None:
        """Drops the lines that a change removes: the whole file, whole lines, and lines partly replaced."""
        if change.kind != "part":
            gone = list(self._lines_of(change.path))
        else:
            old = [line for _, line, _ in split_lines(change.old)]
            parts = [line for line in {*old[:1], *old[-1:]} if line not in lines and len(line) >= _MIN_FRAGMENT_CHARS]
            newest = islice(reversed(self._lines_of(change.path)), _MAX_LINES_SEARCHED) if parts else ()
            gone = [text for text in newest if any(part in text for part in parts)]
            for line in old:
                lines.pop(line, None)
        for text in gone:
            del self._known[change.path][text]
            if (noted := lines.get(text)) and noted.source == change.path:
                del lines[text]

    def remove_replaced(self, change: FileChange, lines: dict[str, LedgerLine]) -> None:
        """Drops replaced lines again that the tool result quoted."""
        new = {line for _, line, _ in split_lines(change.new)} if change.old else ()
        for _, line, _ in split_lines(change.old):
            if line not in new:
                lines.pop(line, None)
