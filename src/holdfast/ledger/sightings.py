"""Keeping count of names: how often and when each was met, and in whose words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .entries import Sighting
from .lines import Voice
from .names import kind_of

Sightings = dict[str, Sighting]


def sight(names: Sightings, met: Mapping[str, int], voice: Voice, time: int, length: int) -> None:
    """Names that were met in a text of this length; plain words count only where somebody speaks."""
    spoken, found = voice in ("said", "user"), voice in ("file", "output")
    for name, times in met.items():
        seen = names.get(name) or names.setdefault(name, Sighting(kind_of(name), time))
        if seen.kind == "word" and not spoken:
            continue
        seen.mentions += times
        seen.last = time
        if found:
            if not 0 < seen.price < length:
                seen.price = length
        elif voice == "wrote":
            seen.wrote = time
        elif voice == "said":
            seen.said = time
        elif voice == "user":
            seen.user = time


def use(names: Sightings, referred: Iterable[str], time: int) -> None:
    """Names in what a call refers to: they had to be known."""
    for name in referred:
        seen = names.get(name) or names.setdefault(name, Sighting(kind_of(name), time))
        if seen.kind == "word":
            continue
        if seen.last_use != time:
            seen.uses += 1
        seen.last_use = seen.last = time
