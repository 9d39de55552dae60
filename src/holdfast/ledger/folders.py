"""Files in as few words as their absolute paths need (P13)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .entries import File
from .headings import ROOT, ROOT_IS

_IN_LINE, _LOOKED_AT = 10, 50


def base_name(path: str) -> str:
    """What a file or a folder is called, wherever it lies."""
    return path.rstrip("/").rpartition("/")[2]


def by_name(paths: Iterable[str]) -> dict[str, list[str]]:
    """Paths whose files are called the same."""
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(base_name(path), []).append(path)
    return found


def told_apart(path: str, alike: Sequence[str]) -> str:
    """As much of a path's end as tells it from other files that are called the same."""
    if len(alike) == 1:
        return base_name(path)
    others = [other for other in alike[-_LOOKED_AT:] if not other.endswith(path) and not path.endswith(other)]
    parts = path.rstrip("/").split("/")
    endings = ("/".join(parts[-count:]) for count in range(1, len(parts)))
    return next((end for end in endings if not any(other.endswith(f"/{end}") for other in others)), path)


def by_folder(files: Iterable[File]) -> list[str]:
    """Every file under its folder's absolute path, the newest first, with what was done to it."""
    folders: dict[str, list[str]] = {}
    for file in sorted(files, key=lambda file: -file.time):
        folder, slash, name = file.path.rpartition("/")
        folders.setdefault(f"{folder}{slash}: " if slash else "", []).append(f"{name}{_done(file)}")
    return [
        folder + ", ".join(names[at : at + _IN_LINE])
        for folder, names in folders.items()
        for at in range(0, len(names), _IN_LINE)
    ]


def from_root(lines: list[str], longest: int) -> list[str]:
    """The same with the folder that most of them begin with told once, where that is shorter."""
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


def _done(file: File) -> str:
    if file.deleted:
        return " (deleted)"
    if file.written and file.edits == 1:
        return " (written)"
    if file.edits:
        return f" (edited {file.edits}×)"
    return "" if file.reads else " (neither read nor written)"
