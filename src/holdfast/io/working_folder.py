"""The one folder that the agent may use: every access stays inside, whatever other processes rename meanwhile.

A path is resolved once. Then each folder on the way is opened relative to the one above and never through a link, so
that a link put in place of a folder after the check leads nowhere.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from ..errors import InvalidInput
from .files import write_file_atomically

_IGNORED_FOLDERS = frozenset((".git", ".hg", ".venv", "node_modules", "__pycache__"))
_SNIFF_BYTES = 8_192
"""Bytes read to detect binary files."""
_HAS_DESCRIPTORS = os.open in os.supports_dir_fd and hasattr(os, "fwalk")
"""False on Windows: there, paths are checked and then opened."""
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_LINK_ERRNOS = (errno.ELOOP, errno.ENOTDIR)


class WorkingFolder:
    """Resolves paths and rejects those, or links, that lead outside."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise InvalidInput(f"{root} is not a folder: name an existing one to work in.")

    def resolve(self, path: str) -> Path:
        """Returns the real path; raises `InvalidInput` if it is outside the folder."""
        try:
            found = (self.root / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as problem:
            raise InvalidInput(f"{path!r} is not a valid path ({problem}).") from None
        if found != self.root and self.root not in found.parents:
            raise InvalidInput(f"{path} is outside the working folder: only files in {self.root} can be used.")
        return found

    def display_name(self, path: Path) -> str:
        """Returns the relative path; bytes that are not UTF-8 are escaped as in a shell, e.g. caf\\xe9."""
        return os.fsencode(path.relative_to(self.root).as_posix()).decode(errors="backslashreplace")

    def files(self, path: str, pattern: str) -> Iterator[Path]:
        """Yields the files below a path that match a pattern, sorted, without `_IGNORED_FOLDERS` and links.

        An empty pattern matches every file.
        """
        start = self.resolve(path)
        if start.is_file():
            yield start
            return
        if not start.is_dir():
            raise InvalidInput(f"There is no {path} in the working folder.")
        wanted = pattern if Path(pattern).parts else "*"
        for place, folders, names in self._walk(start):
            folders[:] = sorted(name for name in folders if name not in _IGNORED_FOLDERS)
            for name in sorted(names):
                found = place / name
                if found.match(wanted) and not found.is_symlink():
                    yield found

    def _walk(self, start: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
        if not _HAS_DESCRIPTORS:
            yield from ((Path(place), folders, names) for place, folders, names in os.walk(start))
            return
        with self._folder(start) as top:
            for place, folders, names, _ in os.fwalk(".", dir_fd=top):
                yield start / place, folders, names

    def read_bytes(self, path: Path, limit: int = -1, owners: Collection[int] | None = None) -> bytes | None:
        """Returns the content of a file, up to a limit; None if there is no file, or not one of these owners."""
        try:
            with open(self._open(path), "rb") as file:
                is_theirs = owners is None or os.fstat(file.fileno()).st_uid in owners
                return file.read(limit) if is_theirs else None
        except FileNotFoundError:
            return None

    def read_text(self, path: Path, errors: str) -> str:
        """Returns the whole text; `errors` handles bytes that are not UTF-8."""
        self.open_text(path).close()
        return (self.read_bytes(path) or b"").decode(errors=errors)

    def open_text(self, path: Path) -> TextIO:
        """Opens a file for reading line by line, with its line endings unchanged."""
        try:
            handle = self._open(path)
        except FileNotFoundError:
            raise InvalidInput(f"There is no file {self.display_name(path)}: list the files to find it.") from None
        if b"\0" in os.read(handle, _SNIFF_BYTES):
            os.close(handle)
            raise InvalidInput(f"{self.display_name(path)} is not a text file: it cannot be read with this tool.")
        os.lseek(handle, 0, os.SEEK_SET)
        return open(handle, encoding="utf-8", errors="replace", newline="\n")

    def write(self, path: Path, data: bytes) -> None:
        """Writes a file atomically, with the permissions of the one that it replaces; makes missing folders."""
        if not _HAS_DESCRIPTORS:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file_atomically(path, data)
            return
        with self._folder(path.parent, make=True) as place:
            fresh = f".holdfast-{secrets.token_hex(6)}"
            handle, named = _new_file(place, fresh)
            try:
                with open(handle, "wb") as file:
                    mode = _permissions(path.name, place)
                    os.fchmod(handle, 0o644 if mode is None else mode)
                    file.write(data)
                    file.flush()
                    os.fsync(handle)
                    if not named:
                        fresh = path.name if mode is None else fresh
                        os.link(f"/proc/self/fd/{handle}", fresh, dst_dir_fd=place, follow_symlinks=True)
                if fresh != path.name:
                    os.replace(fresh, path.name, src_dir_fd=place, dst_dir_fd=place)
            except BaseException:
                if fresh != path.name:
                    with suppress(FileNotFoundError):
                        os.unlink(fresh, dir_fd=place)
                raise

    def _open(self, path: Path) -> int:
        """Opens a regular file for reading."""
        if not _HAS_DESCRIPTORS:
            handle = os.open(path, _READ_FLAGS)
        else:
            with self._folder(path.parent) as place, self._refusing_links(path):
                handle = os.open(path.name, _READ_FLAGS, dir_fd=place)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise FileNotFoundError(path)
        return handle

    @contextmanager
    def _folder(self, path: Path, *, make: bool = False) -> Iterator[int]:
        """Opens a folder below the root, step by step; `path` is resolved."""
        handle = os.open(self.root, _FOLDER_FLAGS)
        try:
            for name in path.relative_to(self.root).parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=handle)
                with self._refusing_links(path):
                    inner = os.open(name, _FOLDER_FLAGS, dir_fd=handle)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def _refusing_links(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            if problem.errno not in _LINK_ERRNOS:
                raise
            raise InvalidInput(f"{self.display_name(path)} was replaced by a link meanwhile: it is not used.") from None


def _new_file(place: int, name: str) -> tuple[int, bool]:
    """Opens a new file in a folder, without a name where the system can: a killed process leaves nothing behind."""
    if (nameless := getattr(os, "O_TMPFILE", 0)) and os.path.exists("/proc/self/fd"):
        with suppress(OSError):
            return os.open(".", os.O_WRONLY | nameless, 0o600, dir_fd=place), False
    return os.open(name, _NEW_FLAGS, 0o600, dir_fd=place), True


def _permissions(name: str, place: int) -> int | None:
    try:
        return stat.S_IMODE(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None
