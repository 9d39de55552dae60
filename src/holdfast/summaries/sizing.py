"""A text that is written by length and must fit by tokens."""

from __future__ import annotations

from collections.abc import Callable

_TRIES = 8
_CLOSE = 0.9


def sized(write: Callable[[int], str], characters: int, room: int, tokens: Callable[[str], int]) -> str:
    """What can be written in about so many characters, made shorter until it has room; empty if it never has."""
    for _ in range(_TRIES):
        text = write(characters)
        size = tokens(text)
        if size <= room:
            return text
        characters = int(characters * _CLOSE * room / size) if room > 0 else 0
    return ""
