"""The names in a line: what a later step would have to spell exactly."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from typing import Literal

NameKind = Literal["file", "code", "number", "proper", "wide", "word"]

_ATOM = re.compile(r"#?\w+(?:[.\-]\w+)*")
_FILE_ENDING = re.compile(r"[a-z][a-z0-9]{0,5}$")
_PIECE = re.compile(r"\w+")
_SHORTEST = 3


Name = tuple[str, NameKind]
Named = Callable[[str], tuple[Name, ...]]
"""Finds the names in a line."""


def names_in(line: str) -> tuple[Name, ...]:
    """Every name in a line with its kind, and the plain words: in a conversation they are all there is."""
    return tuple(chain.from_iterable(map(_parts, _ATOM.findall(line))))


def exact_names_in(line: str) -> tuple[Name, ...]:
    """The same without plain words: in files and output they tell nothing, and are most of what there is."""
    return tuple(chain.from_iterable(map(_exact, _ATOM.findall(line))))


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
                found.append((piece, "number"))
        elif len(piece) >= _SHORTEST:
            found.append((piece, "code"))
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
