"""How much a notebook holds at most: the longest history is read in bounded room.

Nothing here matters below some millions of tokens. Beyond, what was met longest ago goes first. It goes in
bulk, once there is twice too much, so that reading stays as quick as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from heapq import nlargest
from itertools import islice
from typing import TypeVar

from .entries import Sighting
from .lines import Line

LINES, NAMES, SAID, SUBJECTS = 60_000, 120_000, 20_000, 20_000
ATTACHED, CALLS = 60, 60
SOURCE = 320
"""Of a long command, so much stands with each line that came from it."""
Noted = TypeVar("Noted")


def is_over(things: Sized, most: int) -> bool:
    return len(things) > 2 * most


def newest(things: dict[str, Noted], most: int) -> dict[str, Noted]:
    """The last that were put in."""
    return dict(islice(things.items(), max(0, len(things) - most), None)) if is_over(things, most) else things


def ends(said: list[Line], most: int) -> list[Line]:
    """The first and the newest."""
    return [*said[:1], *said[1:][-most:]] if is_over(said, most) else said


def needed(names: dict[str, Sighting], most: int) -> dict[str, Sighting]:
    """The names that calls referred to, and those that were met last."""
    if not is_over(names, most):
        return names
    return dict(nlargest(most, names.items(), key=lambda item: (item[1].uses > 0, item[1].last)))


def within(things: Iterable[tuple[str, Noted]], room: int) -> list[Noted]:
    """As many as fit, each with the text it is charged for; the first that does not fit is the last looked at."""
    kept = []
    for text, thing in things:
        if (room := room - len(text) - 1) < 0:
            break
        kept.append(thing)
    return kept
