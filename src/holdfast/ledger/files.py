"""The files of a history: a record of each, its known lines, and compact lists of them, grouped by folder."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from .entries import FileRecord
from .headings import ROOT, ROOT_IS
from .lines import FILE_KINDS, LedgerLine, split_lines
from .shell_files import FileChange, resolve_path

_FILES_PER_LINE, _MAX_PATHS_COMPARED = 10, 50
_STATUS = r"written|neither read nor written|deleted|edited (\d+)×"
_LISTED = re.compile(rf'("(?:[^"\\\n]|\\.)*"|[^"].*?)(?: \(({_STATUS})\))?(?:, |$)')
"""One file in a list: its name, quoted if it could be misread, and its status."""
_AMBIGUOUS = re.compile(
    rf'^[">]|, |: |[\x00-\x1f\x7f\x85\u2028\u2029]|\((?:{_STATUS})\)$|^{re.escape(ROOT)}|^\s|\s$|^$'
)


def is_path(text: str) -> bool:
    """Whether a text may be a path: it has a slash and no blank."""
    return "/" in text and len(text.split(maxsplit=1)) == 1


def base_name(path: str) -> str:
    """Returns the last component of a path."""
    return path.rstrip("/").rpartition("/")[2]


def group_by_base_name(paths: Iterable[str]) -> dict[str, list[str]]:
    """Groups paths by the name of their file."""
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(base_name(path), []).append(path)
    return found


def shortest_unique_path(path: str, alike: Sequence[str]) -> str:
    """Returns the shortest path suffix that distinguishes a file from others of the same name."""
    if len(alike) == 1:
        return base_name(path)
    others = [other for other in alike[-_MAX_PATHS_COMPARED:] if not other.endswith(path) and not path.endswith(other)]
    parts = path.rstrip("/").split("/")
    endings = ("/".join(parts[-count:]) for count in range(1, len(parts)))
    return next((end for end in endings if not any(other.endswith(f"/{end}") for other in others)), path)


def list_by_folder(files: Iterable[FileRecord]) -> list[str]:
    """Lists every file with its status under the path of its folder, newest first."""
    folders: dict[tuple[str, bool], list[str]] = {}
    for file in sorted(files, key=lambda file: -file.time):
        folder, slash, name = file.path.rpartition("/")
        if quoted := _AMBIGUOUS.search(name) is not None or bool(slash and _AMBIGUOUS.search(f"{folder}/")):
            folder, slash, name = "", "", json.dumps(file.path, ensure_ascii=False)
        folders.setdefault((f"{folder}{slash}: " if slash else "", quoted), []).append(f"{name}{_file_status(file)}")
    return [
        folder + ", ".join(names[at : at + _FILES_PER_LINE])
        for (folder, _), names in folders.items()
        for at in range(0, len(names), _FILES_PER_LINE)
    ]


def abbreviate_root(lines: list[str], longest: int) -> list[str]:
    """Writes the root folder of most lines once, abbreviated elsewhere, if that is shorter."""
    folders = [line.rpartition(": ")[0] for line in lines]
    below: dict[str, int] = {}
    for folder in folders:
        for end in range(1, min(longest, len(folder)) + 1):
            if folder[end - 1] == "/":
                below[folder[:end]] = below.get(folder[:end], 0) + 1
    saved = {root: (len(root) - len(ROOT)) * times - len(ROOT_IS) - len(root) for root, times in below.items()}
    root = max(saved, key=saved.__getitem__, default="")
    if not root or saved[root] <= 0 or any(folder.startswith(ROOT) for folder in folders):
        return lines
    return [ROOT_IS + root, *(ROOT + line.removeprefix(root) if line.startswith(root) else line for line in lines)]


def parse_file_list(lines: Iterable[str]) -> Iterator[FileRecord]:
    """Yields the files that `list_by_folder` and `abbreviate_root` list."""
    root = ROOT
    for line in lines:
        if line.startswith(ROOT_IS):
            root = line.removeprefix(ROOT_IS)
            continue
        if line.startswith(ROOT):
            line = root + line.removeprefix(ROOT)
        folder, slash, names = ("", "", line) if line.startswith('"') else line.rpartition("/: ")
        for found in _LISTED.finditer(names):
            name, status = _unquoted(found[1]), found[2]
            yield FileRecord(
                f"{folder}/{name}" if slash else name,
                reads=int(not status),
                edits=int(found[3] or (status == "written")),
                written=status == "written",
                deleted=status == "deleted",
            )


def _unquoted(name: str) -> str:
    try:
        return str(json.loads(name)) if name.startswith('"') else name
    except ValueError:
        return name


def _file_status(file: FileRecord) -> str:
    if file.deleted:
        return " (deleted)"
    if file.written and file.edits == 1:
        return " (written)"
    if file.edits:
        return f" (edited {file.edits}×)"
    return "" if file.reads else " (neither read nor written)"


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
