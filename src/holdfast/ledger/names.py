"""The names in a line: what a later step would have to spell exactly."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Literal

NameKind = Literal["file", "code", "number", "figure", "proper", "wide", "word"]
"""A proper word begins with a capital; a figure is a short number, or all capitals. Both could be guessed."""

_ATOM = re.compile(r"[\w#](?:(?<!#)|(?=\w))\w*(?:[.\-]\w+(?:[.\-]\w+)*|)")
"""A word with what is joined to it, and a # before it. Written so, it is a third quicker than in fewer signs."""
_ASCII_ATOM = re.compile(_ATOM.pattern, re.ASCII)
_ESCAPES = re.compile(r"(?<!\\)(?:(?<![\w:])(?:\\+[nrt])+|(?:\\+[nrt]){2,}|\\+[nrt](?=[A-Z]))")
"""Line ends and tabs in quoted text: their letters belong to no name. In a path of Windows they do."""
_FILE_ENDING = re.compile(r"\.[a-z][a-z0-9]{0,5}$")
_PIECE = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
_WIDE = "⺀"
"""From here on, a sign is a syllable or a word: two of them are a name."""
_TELLING = re.compile(r"(?=\w*(?:[^\W\d_]_|[a-z][A-Z]|[^\W\d_]\d))[^\W\d]\w{3,}|\d{4,}|(?=\w*\d)[0-9a-f]{7,40}")
_SHORTEST, _LONG_NUMBER = 3, 4

Named = Callable[[str], tuple[str, ...]]
"""Finds the names in a line."""


def names_in(line: str) -> tuple[str, ...]:
    """Every name in a line, and the plain words: in a conversation they are all there is."""
    return tuple(chain.from_iterable(map(_all, _atoms(line))))


def exact_names_in(line: str) -> tuple[str, ...]:
    """The same without plain words: in files and output they tell nothing, and are most of what there is."""
    return tuple(chain.from_iterable(map(_exact, _atoms(line))))


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


def _atoms(line: str) -> list[str]:
    return (_ASCII_ATOM if line.isascii() else _ATOM).findall(_unescaped(line))


def _unescaped(line: str) -> str:
    return _ESCAPES.sub(" ", line) if "\\" in line else line


def words_in(text: str) -> frozenset[str]:
    """All names and words of a text, whatever their case."""
    return frozenset(name.lower() for line in text.splitlines() for name in names_in(line))


@lru_cache(maxsize=200_000)
def _all(atom: str) -> tuple[str, ...]:
    return tuple(_parts(atom))


@lru_cache(maxsize=200_000)
def _exact(atom: str) -> tuple[str, ...]:
    if atom.islower() and atom.isalpha() and atom.isascii():
        return ()
    return tuple([name for name in _parts(atom) if not _is_word(name)])


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
