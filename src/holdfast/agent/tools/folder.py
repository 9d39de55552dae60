"""The folder that an agent works in, and may not leave."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from ...errors import InvalidInput

_PASSED_OVER = frozenset((".git", ".hg", ".venv", "node_modules", "__pycache__"))
_BEGINNING = 8_192
"""Bytes that tell whether a file is text."""


class Folder:
    """Paths in here are the agent's; links that lead out are not."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise InvalidInput(f"{root} is no folder: name one to work in.")

    def inside(self, path: str) -> Path:
        """The real path of something in the folder."""
        try:
            found = (self.root / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as problem:
            raise InvalidInput(f"{path!r} is no path ({problem}).") from None
        if found != self.root and self.root not in found.parents:
            raise InvalidInput(f"{path} is outside the working folder: only files in {self.root} can be used.")
        return found

    def name(self, path: Path) -> str:
        """As it is shown; bytes that are no UTF-8 are written as a shell takes them, as in caf\\xe9."""
        return os.fsencode(path.relative_to(self.root).as_posix()).decode(errors="backslashreplace")

    def files(self, path: str, pattern: str) -> Iterator[Path]:
        """Files below a path whose names fit a pattern, in order, but for what other tools keep there.

        A pattern that says nothing is for all of them.
        """
        start = self.inside(path)
        if start.is_file():
            yield start
            return
        if not start.is_dir():
            raise InvalidInput(f"There is no {path} in the working folder.")
        wanted = pattern if Path(pattern).parts else "*"
        for place, folders, names in os.walk(start):
            folders[:] = sorted(name for name in folders if name not in _PASSED_OVER)
            for name in sorted(names):
                found = Path(place) / name
                if found.match(wanted) and not found.is_symlink():
                    yield found

    def text(self, path: Path, errors: str) -> str:
        """All that a file says; `errors` is for bytes that are none in UTF-8."""
        self._must_be_text(path)
        return path.read_bytes().decode(errors=errors)

    def opened(self, path: Path) -> TextIO:
        """A file to be read line by line, its line ends as they are."""
        self._must_be_text(path)
        return path.open(encoding="utf-8", errors="replace", newline="\n")

    def _must_be_text(self, path: Path) -> None:
        if not path.is_file():
            raise InvalidInput(f"There is no file {self.name(path)}: list the files to find it.")
        with path.open("rb") as file:
            if b"\0" in file.read(_BEGINNING):
                raise InvalidInput(f"{self.name(path)} is no text: it cannot be read here.")
