"""Finds names in lines: files, identifiers, ids and numbers, which a later step must spell exactly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from string import ascii_letters, digits
from typing import Literal

NameKind = Literal["file", "code", "number", "figure", "proper", "wide", "word"]
"""A proper word starts with a capital; a figure is a short number or all capitals. Both could be guessed."""
_ATOM = re.compile(r"[\w#](?:(?<!#)|(?=\w))\w*(?:[.\-]\w+(?:[.\-]\w+)*|)")
"""A word with parts joined by . or -, and a # before it. This form is a third faster than a shorter pattern."""
_ASCII_ATOM = re.compile(_ATOM.pattern, re.ASCII)
_ATOM_BYTES = frozenset(f"{ascii_letters}{digits}_#.-".encode())
_ATOM_SEPARATOR_TABLE = bytes(sign if sign in _ATOM_BYTES else ord(" ") for sign in range(256))
"""Translates every byte between atoms to a blank: splitting then takes about half the time of the pattern."""
_ESCAPES = re.compile(r"(?<!\\)(?:(?<![\w:])(?:\\+[nrt])+|(?:\\+[nrt]){2,}|\\+[nrt](?=[A-Z]))")
"""Escaped line ends and tabs in quoted text, whose letters belong to no name; not Windows paths."""
_FILE_ENDING = re.compile(r"\.[a-z][a-z0-9]{0,5}$")
_PIECE = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
_WIDE = "⺀"
"""First code point of scripts in which two characters make a name."""
_DISTINCTIVE = re.compile(r"(?=\w*(?:[^\W\d_]_|[a-z][A-Z]|[^\W\d_]\d))[^\W\d]\w{3,}|\d{4,}|(?=\w*\d)[0-9a-f]{7,40}")
_MIN_NAME_CHARS, _LONG_NUMBER = 3, 4
_CACHE_SIZE = 200_000
NameFinder = Callable[[str], tuple[str, ...]]
"""Returns the names in a line."""


def find_names(line: str) -> tuple[str, ...]:
    """Returns every name and plain word in a line."""
    return tuple(chain.from_iterable(map(_ALL_NAMES.__getitem__, _tokens(line))))


def find_exact_names(line: str) -> tuple[str, ...]:
    """Returns the names in a line without plain words, which carry no information in files and output."""
    return tuple(chain.from_iterable(map(_EXACT_NAMES.__getitem__, _tokens(line))))


class NameCache(dict[str, tuple[str, ...]]):
    """Caches the names of each line: lines recur, and are scored again."""

    def __missing__(self, line: str) -> tuple[str, ...]:
        return self.find_all(line)

    def find_all(self, line: str) -> tuple[str, ...]:
        """Names and plain words of user or assistant text."""
        found = self[line] = find_names(line)
        return found

    def find_exact(self, line: str) -> tuple[str, ...]:
        """Names only, unless the line was already read as user or assistant text."""
        found = self.get(line)
        if found is None:
            found = self[line] = find_exact_names(line)
        return found


def name_kind(name: str) -> NameKind:
    """Classifies a name by its spelling."""
    if _is_word(name):
        return "word"
    if not name.isascii() and max(name) >= _WIDE:
        return "wide"
    if "." in name or "-" in name:
        if _FILE_ENDING.search(name):
            return "file"
        return "number" if name[0].isdigit() else "code"
    if name[0] == "#" or name.isdigit():
        return "number" if name[0] == "#" or len(name) >= _LONG_NUMBER else "figure"
    if not name.isalpha():
        return "code"
    return "proper" if name.istitle() else "figure" if name.isupper() else "code"


def is_clear_alone(name: str, line: str) -> bool:
    """Whether a name is informative without its line and is not part of a longer one; a file needs its path."""
    if "." in name:
        return f"/{name}" in line or name == line
    if not _DISTINCTIVE.fullmatch(name):
        return False
    before, _, after = f" {_unescaped(line)}  ".partition(name)
    part = before[-1].isalnum() or before[-1] in "_-" or after[0].isalnum() or after[0] in "_-"
    return not part and not (after[0] == "." and after[1].islower())


def _tokens(line: str) -> list[str]:
    """Splits a line into atoms, some still joined by several separators."""
    line = _unescaped(line)
    return line.encode().translate(_ATOM_SEPARATOR_TABLE).decode().split() if line.isascii() else _ATOM.findall(line)


def _unescaped(line: str) -> str:
    return _ESCAPES.sub(" ", line) if "\\" in line else line


def find_words(text: str) -> frozenset[str]:
    """Returns all names and words of a text in lower case."""
    return frozenset(name.lower() for line in text.splitlines() for name in find_names(line))


class _TokenNames(dict[str, tuple[str, ...]]):
    """Caches the names in each token; a lookup takes a fraction of the search."""

    def __init__(self, *, words: bool) -> None:
        super().__init__()
        self._words = words

    def __missing__(self, token: str) -> tuple[str, ...]:
        if len(self) >= _CACHE_SIZE:
            self.clear()
        found = self[token] = tuple(self._found(token))
        return found

    def _found(self, token: str) -> Iterable[str]:
        if token.isascii():
            if token.isalpha() and token.islower():
                return (token,) if self._words and _is_name(token) else ()
            if token.isalnum() or token.isidentifier():
                return (token,) if _is_name(token) else ()
        atoms = (_ASCII_ATOM if token.isascii() else _ATOM).findall(token)
        return [name for atom in atoms for name in _names_in_atom(atom) if self._words or not _is_word(name)]


_ALL_NAMES, _EXACT_NAMES = _TokenNames(words=True), _TokenNames(words=False)


def _names_in_atom(atom: str) -> Sequence[str]:
    if atom.isalpha() and atom.isascii():
        return (atom,) if _is_name(atom) else ()
    if not atom.isascii() and max(atom) >= _WIDE:
        return [atom[at : at + 2] for at in range(len(atom) - 1)]
    joined = "." in atom or "-" in atom
    if atom[0] == "#" and not joined:
        return (atom,)
    pieces = list(filter(_is_name, _PIECE.findall(atom)))
    if joined and (_FILE_ENDING.search(atom) or _DIGIT.search(atom)):
        pieces.insert(0, atom)
    return pieces


def _is_name(piece: str) -> bool:
    """Whether a piece of an atom counts as a name."""
    if piece.isalpha() and (piece.islower() or piece.istitle()):
        return len(piece) > _MIN_NAME_CHARS
    return len(piece) >= (2 if piece.isdigit() else _MIN_NAME_CHARS)


def _is_word(name: str) -> bool:
    return name.islower() and name.isalpha() and (name.isascii() or max(name) < _WIDE)
