"""Files in as few words as their absolute paths need (P13)."""

from __future__ import annotations

from collections.abc import Iterable

from .entries import File

_IN_LINE = 10


def base_name(path: str) -> str:
    """What a file or a folder is called, wherever it lies."""
    return path.rstrip("/").rpartition("/")[2]


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


def _done(file: File) -> str:
    if file.written and file.edits == 1:
        return " (written)"
    return f" (edited {file.edits}×)" if file.edits else ""
