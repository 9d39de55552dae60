"""Every file that a history speaks of, under one path, wherever it was named from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from .changes import Change
from .entries import File
from .folders import base_name, by_name
from .matches import same_file


class SeenFiles(dict[str, File]):
    """By their paths, those that were met last at the end."""

    def __init__(self, files: Iterable[File]) -> None:
        super().__init__((file.path, file) for file in files)
        self._alike = by_name(self)

    def meet(self, path: str, place: int, time: int) -> File:
        if path not in self:
            self._alike.setdefault(base_name(path), []).append(path)
        note = self[path] = self.pop(path, File(path))
        note.place, note.time = place, time
        return note

    def known_as(self, path: str) -> str:
        """The path under which a file was met that is named from somewhere else."""
        return same_file(path, self._alike.get(base_name(path), ()))

    def concerned(self, changes: Iterable[Change]) -> Iterator[Change]:
        """All changes but of what is taken away that nobody had seen."""
        for change in changes:
            if change.kind == "deleted":
                change = replace(change, path=self.known_as(change.path))
            if change.kind != "deleted" or change.path in self:
                yield change
