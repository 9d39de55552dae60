"""What a line is worth for itself: the learned chance that it is edited as it stands."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import groupby
from math import log1p

from .curves import Curve, along
from .entries import Sighting
from .learned import learned, named_last, near, odds
from .lines import Line
from .notebook import Notebook

_NEAR, _FURTHER = 80_000, 17
"""So many characters back, a line is hardly edited as it stands; with room for more lines, some more for each token."""
_INNER, _OUTER = " \t)]}", 8
"""How a line begins that stands inside or ends a block; how long one is at least that opens one."""
SHARED = ("bias", "wrote", "file", "said", "time30", "edits", "unedited", "touched10", "among", "stale", "newest")
"""What a line has in common with those that came with it."""
OWN = ("depth", "length", "names", "best", "count", "indent", "times", "near_said", "near_user", "below_said")
Features = list[float]


@cache
def line_curves(features: tuple[str, ...]) -> tuple[Curve, ...]:
    """In the order of the features."""
    return tuple(Curve.of(learned()["lines"][feature]) for feature in features)


def line_features(notebook: Notebook, worth: dict[str, float], room: int) -> Iterator[tuple[Line, Features, Features]]:
    """The lines that are near enough to be edited, newest text first: what they share, and what is their own."""
    reach = max(_NEAR, _FURTHER * room)
    names, now = notebook.names, notebook.time
    exact = {name for name, seen in names.items() if seen.kind != "word"}
    spoken = {name: _spoken(seen, now) for name, seen in names.items() if seen.said >= 0}
    asked = {name: near(names[name].mentions, 10) for name in named_last(notebook) if name in names}
    recent = [line for line in reversed(notebook.lines.values()) if notebook.depth - line.depth < reach]
    for rank, (_, group) in enumerate(groupby(recent, key=lambda line: (line.place, line.source))):
        together = sorted(group, key=lambda line: line.number)
        held = [[name for name in notebook.named(line.text) if name in exact] for line in together]
        said = [_most(spoken, here) for here in held]
        below = list(_below(together, said))
        around = zip(_spread(said), _spread([_most(asked, here) for here in held]), below, strict=True)
        common: dict[tuple[str, int, int], Features] = {}
        for line, here, near_by in zip(together, held, around, strict=True):
            came = line.voice, line.time, line.among
            shared = common.get(came) or common.setdefault(came, _shared(line, rank, notebook))
            yield line, shared, [*_own(line, notebook.depth, [worth.get(name, 0.0) for name in here]), *near_by]


def _most(values: dict[str, float], names: list[str]) -> float:
    if values.keys().isdisjoint(names):
        return 0.0
    return max([values[name] for name in names if name in values])


def _spoken(seen: Sighting, now: int) -> float:
    """How lately the assistant spoke of a rare name."""
    return near(now - seen.said, 3) * near(seen.mentions, 10)


def _below(lines: list[Line], values: list[float]) -> Iterator[float]:
    """For each line, what the last one has that is not indented: a function's name is in its first line."""
    last = 0.0
    for line, value in zip(lines, values, strict=True):
        if line.text[:1] not in _INNER and len(line.text) > _OUTER:
            last = value
        yield last


def _spread(values: list[float]) -> list[float]:
    """What a line has, its neighbours have a part of."""
    if not any(values):
        return values
    for places in (range(1, len(values)), range(len(values) - 2, -1, -1)):
        for place in places:
            values[place] = max(values[place], values[place - places.step] * 0.8)
    return values


def _shared(line: Line, rank: int, notebook: Notebook) -> Features:
    note = notebook.files.get(line.source)
    return [
        1.0,
        line.voice == "wrote",
        line.voice == "file",
        line.voice == "said",
        near(notebook.time - line.time, 30),
        log1p(note.edits) if note else 0.0,
        note is not None and note.reads > 0 and not note.edits,
        near(notebook.time - note.time, 10) if note else 0.0,
        log1p(line.among),
        note is not None and note.time - line.time > 10,
        near(rank, 1),
    ]


def _own(line: Line, depth: int, names: list[float]) -> Features:
    return [
        log1p((depth - line.depth) / 1000),
        log1p(len(line.text.strip())),
        min(1.0, sum(names)),
        max(names, default=0.0),
        min(5, len(names)),
        line.text[:1] in " \t",
        log1p(line.times),
    ]


def line_worth(notebook: Notebook, worth: dict[str, float], room: int) -> dict[str, float]:
    """The chance that each line is edited as it stands, for so many tokens of them.

    Where no file was touched, there is nothing to edit.
    """
    if not notebook.files:
        return {}
    chances: dict[str, float] = {}
    own_curves, shared_curves = line_curves(OWN), line_curves(SHARED)
    last, common = None, 0.0
    for line, shared, own in line_features(notebook, worth, room):
        if shared is not last:
            last, common = shared, along(shared_curves, shared)
        chances[line.text] = odds(common + along(own_curves, own))
    return chances
