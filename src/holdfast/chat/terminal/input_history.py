"""Earlier inputs: kept in a file between starts, recalled with Up and Down, searched with Ctrl-R."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ...io.files import file_lock, write_file_atomically
from ...messages.json_text import decodable

_MAX_INPUTS = 500
"""Inputs recalled in one chat."""
_MAX_STORED = 2_000
"""Inputs kept when the file is shortened."""
_MAX_FILE_BYTES = 1_000_000
"""A larger file is shortened, to half of this."""
_MAX_CHARACTERS = 20_000
"""A longer input is not stored."""


@decodable
class StoredInput(msgspec.Struct, frozen=True):
    """One line of the file."""

    folder: str
    text: str


class HistoryFile:
    """Inputs of all folders as JSON lines, readable for the user only. Failures are ignored: it is a convenience."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._path, self._folder = path, str(folder)

    def read(self) -> list[str]:
        """Returns the newest inputs, oldest first: those of other folders, then those of this one."""
        stored = self._read_all()[-_MAX_STORED:]
        here = [one.text for one in stored if one.folder == self._folder]
        return [*(one.text for one in stored if one.folder != self._folder), *here][-_MAX_INPUTS:]

    def append(self, text: str) -> None:
        if len(text) > _MAX_CHARACTERS:
            return
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with file_lock(f"{self._path}.lock"):
                line = msgspec.json.encode(StoredInput(self._folder, text)) + b"\n"
                handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                with open(handle, "ab") as file:
                    file.write(line)
                self._shorten()

    def _shorten(self) -> None:
        if self._path.stat().st_size <= _MAX_FILE_BYTES:
            return
        kept, size = list[bytes](), 0
        for line in reversed([msgspec.json.encode(one) + b"\n" for one in self._read_all()[-_MAX_STORED:]]):
            size += len(line)
            if size > _MAX_FILE_BYTES // 2:
                break
            kept.append(line)
        write_file_atomically(self._path, b"".join(reversed(kept)), new_mode=0o600)

    def _read_all(self) -> list[StoredInput]:
        found = []
        with suppress(OSError):
            for line in self._path.read_bytes().splitlines():
                with suppress(msgspec.MsgspecError, UnicodeError):
                    found.append(msgspec.json.decode(line, type=StoredInput))
        return found


class InputHistory:
    """Earlier inputs, recalled with Up and Down; a text that starts with a space is not remembered."""

    def __init__(self) -> None:
        self._file: HistoryFile | None = None
        self._lines: list[str] = []
        self._index = 0
        self._draft = ""
        self._added = False

    def open(self, file: HistoryFile) -> None:
        """Loads the inputs of earlier starts, and stores new ones from now on."""
        self._file = file
        self._lines = [*file.read(), *self._lines][-_MAX_INPUTS:]
        self._index = len(self._lines)

    def add(self, text: str) -> None:
        if text.strip() and not text.startswith(" ") and (not self._lines or self._lines[-1] != text):
            self._lines, self._added = [*self._lines, text][-_MAX_INPUTS:], True
            if self._file is not None:
                self._file.append(text)
        self._index = len(self._lines)

    def seed(self, texts: Iterable[str]) -> None:
        """Makes the prompts of a session the newest inputs, unless something was typed before; stores none of them."""
        if not self._added:
            prompts = list(dict.fromkeys(text for text in texts if text.strip()))
            self._lines = [*(line for line in self._lines if line not in prompts), *prompts][-_MAX_INPUTS:]
            self._index = len(self._lines)

    def previous(self, draft: str) -> str | None:
        """Returns the previous input, or None at the oldest; keeps the draft for `next`."""
        if self._index == len(self._lines):
            self._draft = draft
        if not self._index:
            return None
        self._index -= 1
        return self._lines[self._index]

    def next(self) -> str | None:
        """Returns the next input, then the draft, then None."""
        if self._index == len(self._lines):
            return None
        self._index += 1
        return self._lines[self._index] if self._index < len(self._lines) else self._draft

    def search(self, query: str) -> list[str]:
        """Returns the inputs that contain all words of the query, the newest first, each once."""
        words = query.casefold().split()
        found = (text for text in reversed(self._lines) if all(word in text.casefold() for word in words))
        return list(dict.fromkeys(found))


class HistorySearch:
    """An incremental search: the query as typed so far, its matches, and the one that is selected."""

    def __init__(self, history: InputHistory, draft: str) -> None:
        self.draft = draft
        """The input before the search, restored when it is cancelled."""
        self.query = ""
        self.matches: Sequence[str] = ()
        self.selected = 0
        self._history = history
        self._find()

    def extend(self, characters: str) -> None:
        self.query += characters
        self._find()

    def shorten(self) -> None:
        self.query = self.query[:-1]
        self._find()

    def step(self, step: int) -> None:
        """Selects an older (1) or newer (-1) match, and stops at the ends."""
        self.selected = max(0, min(self.selected + step, len(self.matches) - 1))

    @property
    def found(self) -> str | None:
        """The selected input; None if nothing matches."""
        return self.matches[self.selected] if self.matches else None

    def _find(self) -> None:
        self.matches, self.selected = self._history.search(self.query), 0
