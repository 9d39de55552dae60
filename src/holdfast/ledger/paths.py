"""Compact lists of files: grouped by folder, with absolute paths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .entries import FileRecord
from .text import ROOT, ROOT_IS

_FILES_PER_LINE, _MAX_PATHS_COMPARED = 10, 50


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
    folders: dict[str, list[str]] = {}
    for file in sorted(files, key=lambda file: -file.time):
        folder, slash, name = file.path.rpartition("/")
        folders.setdefault(f"{folder}{slash}: " if slash else "", []).append(f"{name}{_file_status(file)}")
    return [
        folder + ", ".join(names[at : at + _FILES_PER_LINE])
        for folder, names in folders.items()
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


def _file_status(file: FileRecord) -> str:
    if file.deleted:
        return " (deleted)"
    if file.written and file.edits == 1:
        return " (written)"
    if file.edits:
        return f" (edited {file.edits}×)"
    return "" if file.reads else " (neither read nor written)"
