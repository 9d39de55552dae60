"""The folder that an agent works in, and may not leave."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ...errors import InvalidInput

_PASSED_OVER = frozenset((".git", ".hg", ".venv", "node_modules", "__pycache__"))
_LARGEST = 2_000_000
"""Bytes of a file that is still looked into."""


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
        return path.relative_to(self.root).as_posix()

    def files(self, path: str, pattern: str) -> Iterator[Path]:
        """Files below a path whose names fit a pattern, in order, but for what other tools keep there."""
        start = self.inside(path)
        if start.is_file():
            yield start
            return
        if not start.is_dir():
            raise InvalidInput(f"There is no {path} in the working folder.")
        for place, folders, names in os.walk(start):
            folders[:] = sorted(name for name in folders if name not in _PASSED_OVER)
            for name in sorted(names):
                found = Path(place) / name
                if found.match(pattern) and not found.is_symlink():
                    yield found

    def text(self, path: Path, errors: str = "replace") -> str:
        """What a file says; an error for what is no text. `errors` is for bytes that are none in UTF-8."""
        if not path.is_file():
            raise InvalidInput(f"There is no file {self.name(path)}: list the files to find it.")
        data = path.read_bytes()
        if b"\0" in data[:8_192]:
            raise InvalidInput(f"{self.name(path)} is no text: it cannot be read here.")
        return data.decode(errors=errors)

    def searchable(self, path: Path) -> str:
        """What a file says, empty where it is too large or no text."""
        try:
            return self.text(path) if path.stat().st_size <= _LARGEST else ""
        except (InvalidInput, OSError):
            return ""
