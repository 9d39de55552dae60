"""The names in a line: what a later step would have to spell exactly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from string import ascii_letters, digits
from typing import Literal

NameKind = Literal["file", "code", "number", "figure", "proper", "wide", "word"]
"""A proper word begins with a capital; a figure is a short number, or all capitals. Both could be guessed."""

_ATOM = re.compile(r"[\w#](?:(?<!#)|(?=\w))\w*(?:[.\-]\w+(?:[.\-]\w+)*|)")
"""A word with what is joined to it, and a # before it. Written so, it is a third quicker than in fewer signs."""
_ASCII_ATOM = re.compile(_ATOM.pattern, re.ASCII)
_IN_ATOMS = frozenset(f"{ascii_letters}{digits}_#.-".encode())
_APART = bytes(sign if sign in _IN_ATOMS else ord(" ") for sign in range(256))
"""Puts a blank for every sign that stands between atoms: so they are found apart in about half the time."""
_ESCAPES = re.compile(r"(?<!\\)(?:(?<![\w:])(?:\\+[nrt])+|(?:\\+[nrt]){2,}|\\+[nrt](?=[A-Z]))")
"""Line ends and tabs in quoted text: their letters belong to no name. In a path of Windows they do."""
_FILE_ENDING = re.compile(r"\.[a-z][a-z0-9]{0,5}$")
_PIECE = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
_WIDE = "⺀"
"""From here on, a sign is a syllable or a word: two of them are a name."""
_TELLING = re.compile(r"(?=\w*(?:[^\W\d_]_|[a-z][A-Z]|[^\W\d_]\d))[^\W\d]\w{3,}|\d{4,}|(?=\w*\d)[0-9a-f]{7,40}")
_SHORTEST, _LONG_NUMBER = 3, 4
_REMEMBERED = 200_000

Named = Callable[[str], tuple[str, ...]]
"""Finds the names in a line."""


def names_in(line: str) -> tuple[str, ...]:
    """Every name in a line, and the plain words: in a conversation they are all there is."""
    return tuple(chain.from_iterable(map(_ALL.__getitem__, _tokens(line))))


def exact_names_in(line: str) -> tuple[str, ...]:
    """The same without plain words: in files and output they tell nothing, and are most of what there is."""
    return tuple(chain.from_iterable(map(_EXACT.__getitem__, _tokens(line))))


class NamesOnce:
    """The names in lines, looked for once in each: the same lines come again, and are weighed again."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, ...]] = {}

    def __call__(self, line: str) -> tuple[str, ...]:
        found = self._found.get(line)
        return self.spoken(line) if found is None else found

    def spoken(self, line: str) -> tuple[str, ...]:
        """In a line that somebody speaks: there, plain words count."""
        found = self._found[line] = names_in(line)
        return found

    def exact(self, line: str) -> tuple[str, ...]:
        """In a line that nobody spoke yet."""
        found = self._found.get(line)
        if found is None:
            found = self._found[line] = exact_names_in(line)
        return found


def kind_of(name: str) -> NameKind:
    """What a name is, by how it looks."""
    if _is_word(name):
        return "word"
    if max(name) >= _WIDE:
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


def stands_alone(name: str, line: str) -> bool:
    """Does a name say something without its line, and is it no part of a longer one there? A file needs its path."""
    if "." in name:
        return f"/{name}" in line or name == line
    if not _TELLING.fullmatch(name):
        return False
    before, _, behind = f" {_unescaped(line)}  ".partition(name)
    part = before[-1].isalnum() or before[-1] in "_-" or behind[0].isalnum() or behind[0] in "_-"
    return not part and not (behind[0] == "." and behind[1].islower())


def _tokens(line: str) -> list[str]:
    """Atoms, some of them still joined by more than one sign."""
    line = _unescaped(line)
    return line.encode().translate(_APART).decode().split() if line.isascii() else _ATOM.findall(line)


def _unescaped(line: str) -> str:
    return _ESCAPES.sub(" ", line) if "\\" in line else line


def words_in(text: str) -> frozenset[str]:
    """All names and words of a text, whatever their case."""
    return frozenset(name.lower() for line in text.splitlines() for name in names_in(line))


class _NamesOf(dict[str, tuple[str, ...]]):
    """The names in each token that was met: looked up in a fraction of the time that finding them takes."""

    def __init__(self, *, words: bool) -> None:
        super().__init__()
        self._words = words

    def __missing__(self, token: str) -> tuple[str, ...]:
        if len(self) >= _REMEMBERED:
            self.clear()
        found = self[token] = tuple(self._found(token))
        return found

    def _found(self, token: str) -> Iterable[str]:
        if token.isascii() and (token.isalnum() or token.isidentifier()):
            return (token,) if _tells(token) and (self._words or not _is_word(token)) else ()
        atoms = (_ASCII_ATOM if token.isascii() else _ATOM).findall(token)
        return [name for atom in atoms for name in _parts(atom) if self._words or not _is_word(name)]


_ALL, _EXACT = _NamesOf(words=True), _NamesOf(words=False)


def _parts(atom: str) -> Sequence[str]:
    if atom.isalpha() and atom.isascii():
        return (atom,) if _tells(atom) else ()
    if not atom.isascii() and max(atom) >= _WIDE:
        return [atom[at : at + 2] for at in range(len(atom) - 1)]
    joined = "." in atom or "-" in atom
    if atom[0] == "#" and not joined:
        return (atom,)
    pieces = list(filter(_tells, _PIECE.findall(atom)))
    if joined and (_FILE_ENDING.search(atom) or _DIGIT.search(atom)):
        pieces.insert(0, atom)
    return pieces


def _tells(piece: str) -> bool:
    """Is a piece of a longer word a name for itself?"""
    if piece.isalpha() and (piece.islower() or piece.istitle()):
        return len(piece) > _SHORTEST
    return len(piece) >= (2 if piece.isdigit() else _SHORTEST)


def _is_word(name: str) -> bool:
    return name.islower() and name.isalpha() and (name.isascii() or max(name) < _WIDE)
