"""Keeping count of names: how often and when each was met, and in whose words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .entries import Sighting
from .lines import Voice
from .names import Name

Sightings = dict[str, Sighting]


def sight(names: Sightings, met: Mapping[Name, int], voice: Voice, time: int, length: int) -> None:
    """Names that were met in a text of this length; plain words count only where somebody speaks."""
    spoken, found = voice in ("said", "user"), voice in ("file", "output")
    for (name, kind), times in met.items():
        if kind == "word" and not spoken:
            continue
        seen = names.get(name)
        if seen is None:
            seen = names[name] = Sighting(kind, time)
        seen.mentions += times
        seen.last = time
        if voice == "said":
            seen.said = time
        elif voice == "user":
            seen.user = time
        elif voice == "wrote":
            seen.wrote = time
        elif found and not 0 < seen.price < length:
            seen.price = length


def use(names: Sightings, referred: Iterable[Name], time: int) -> None:
    """Names in what a call refers to: they had to be known."""
    for name, kind in referred:
        if kind == "word":
            continue
        seen = names.get(name)
        if seen is None:
            seen = names[name] = Sighting(kind, time)
        if seen.last_use != time:
            seen.uses += 1
        seen.last_use = seen.last = time
