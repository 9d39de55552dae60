"""The names in a line: what a later step would have to spell exactly."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from typing import Literal

NameKind = Literal["file", "code", "number", "figure", "proper", "wide", "word"]
"""A proper word begins with a capital; a figure is a short number, or all capitals. Both could be guessed."""

_ATOM = re.compile(r"[\w#](?:(?<!#)|(?=\w))\w*(?:[.\-]\w+)*")
"""A word with what is joined to it, and a # before it. Beginning with a set of signs, it is a fifth quicker."""
_ESCAPES = re.compile(r"(?<!\\)(?:(?<![\w:])(?:\\+[nrt])+|(?:\\+[nrt]){2,}|\\+[nrt](?=[A-Z]))")
"""Line ends and tabs in quoted text: their letters belong to no name. In a path of Windows they do."""
_FILE_ENDING = re.compile(r"[a-z][a-z0-9]{0,5}$")
_PIECE = re.compile(r"\w+")
_TELLING = re.compile(r"(?=\w*(?:[^\W\d_]_|[a-z][A-Z]|[^\W\d_]\d))[^\W\d]\w{3,}|\d{4,}|(?=\w*\d)[0-9a-f]{7,40}")
_SHORTEST, _LONG_NUMBER = 3, 4


Name = tuple[str, NameKind]
Named = Callable[[str], tuple[Name, ...]]
"""Finds the names in a line."""


def names_in(line: str) -> tuple[Name, ...]:
    """Every name in a line with its kind, and the plain words: in a conversation they are all there is."""
    return tuple(chain.from_iterable(map(_parts, _ATOM.findall(_unescaped(line)))))


def exact_names_in(line: str) -> tuple[Name, ...]:
    """The same without plain words: in files and output they tell nothing, and are most of what there is."""
    return tuple(chain.from_iterable(map(_exact, _ATOM.findall(_unescaped(line)))))


def stands_alone(name: str, line: str) -> bool:
    """Does a name say something without its line, and is it no part of a longer one there? A file needs its path."""
    if "." in name:
        return f"/{name}" in line or name == line
    if not _TELLING.fullmatch(name):
        return False
    before, _, behind = f" {_unescaped(line)}  ".partition(name)
    part = before[-1].isalnum() or before[-1] in "_-" or behind[0].isalnum() or behind[0] in "_-"
    return not part and not (behind[0] == "." and behind[1].islower())


def _unescaped(line: str) -> str:
    return _ESCAPES.sub(" ", line) if "\\" in line else line


def words_in(text: str) -> frozenset[str]:
    """All names and words of a text, whatever their case."""
    return frozenset(name.lower() for line in text.splitlines() for name, _ in names_in(line))


@lru_cache(maxsize=200_000)
def _parts(atom: str) -> tuple[Name, ...]:
    if atom.isascii() and atom.isalpha() and (atom.islower() or atom.istitle() or len(atom) < _SHORTEST):
        return _plain(atom)
    if not atom.isascii() and max(atom) >= "⺀":
        return tuple((atom[at : at + 2], "wide") for at in range(len(atom) - 1))
    found: list[Name] = []
    if "." in atom or "-" in atom:
        ending = atom.rpartition(".")[2]
        if ending != atom and _FILE_ENDING.match(ending):
            found.append((atom, "file"))
        elif any(letter.isdigit() for letter in atom):
            found.append((atom, "number" if atom[0].isdigit() else "code"))
    elif atom[0] == "#":
        return ((atom, "number"),)
    for piece in _PIECE.findall(atom):
        if piece.isalpha() and (piece.islower() or piece.istitle()):
            found += _plain(piece)
        elif piece.isdigit():
            if len(piece) >= 2:
                found.append((piece, "number" if len(piece) >= _LONG_NUMBER else "figure"))
        elif len(piece) >= _SHORTEST:
            found.append((piece, "figure" if piece.isupper() and piece.isalpha() else "code"))
    return tuple(found)


@lru_cache(maxsize=200_000)
def _exact(atom: str) -> tuple[Name, ...]:
    if atom.islower() and atom.isascii() and atom.isalpha():
        return ()
    return tuple(name for name in _parts(atom) if name[1] != "word")


def _plain(word: str) -> tuple[Name, ...]:
    if len(word) <= _SHORTEST:
        return ()
    return ((word, "proper"),) if word[0].isupper() else ((word, "word"),)
