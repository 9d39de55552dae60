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

FAR = 150_000
"""So many characters back, a line is hardly edited from memory any more."""
_INNER, _OUTER = " \t)]}", 8
"""How a line begins that stands inside or ends a block; how long one is at least that opens one."""
LINE_FEATURES = (
    *("bias", "wrote", "file", "said", "time30", "depth", "edits", "unedited", "touched10", "among", "length"),
    *("names", "best", "indent", "stale", "times", "newest", "near_said", "near_user", "count", "below_said"),
)


@cache
def line_curves() -> tuple[Curve, ...]:
    """In the order of the features."""
    return tuple(Curve.of(learned()["lines"][feature]) for feature in LINE_FEATURES)


def line_features(notebook: Notebook, worth: dict[str, float]) -> Iterator[tuple[Line, list[float]]]:
    """Features of the lines that are near enough to be edited, newest text first."""
    names, now, latest = notebook.names, notebook.time, named_last(notebook)
    recent = [line for line in reversed(notebook.lines.values()) if notebook.depth - line.depth < FAR]
    for rank, (_, group) in enumerate(groupby(recent, key=lambda line: (line.place, line.source))):
        together = sorted(group, key=lambda line: line.number)
        held = [
            [name for name, kind in notebook.named(line.text) if kind != "word" and name in names] for line in together
        ]
        spoken = [max([_spoken(names[name], now) for name in here], default=0.0) for here in held]
        below = list(_below(together, spoken))
        said = _spread(spoken)
        user = _spread(
            [max([near(names[name].mentions, 10) for name in here if name in latest], default=0.0) for here in held]
        )
        for line, here, near_said, near_user, below_said in zip(together, held, said, user, below, strict=True):
            features = _line(line, notebook, [worth.get(name, 0.0) for name in here])
            yield line, [*features, near(rank, 1), near_said, near_user, min(5, len(here)), below_said]


def _spoken(seen: Sighting, now: int) -> float:
    """How lately the assistant spoke of a rare name."""
    return near(now - seen.said, 3) * near(seen.mentions, 10) if seen.said >= 0 else 0.0


def _below(lines: list[Line], values: list[float]) -> Iterator[float]:
    """For each line, what the last one has that is not indented: a function's name is in its first line."""
    last = 0.0
    for line, value in zip(lines, values, strict=True):
        if line.text[:1] not in _INNER and len(line.text) > _OUTER:
            last = value
        yield last


def _spread(values: list[float]) -> list[float]:
    """What a line has, its neighbours have a part of."""
    for places in (range(1, len(values)), range(len(values) - 2, -1, -1)):
        for place in places:
            values[place] = max(values[place], values[place - places.step] * 0.8)
    return values


def _line(line: Line, notebook: Notebook, names: list[float]) -> list[float]:
    note = notebook.files.get(line.source)
    return [
        1.0,
        line.voice == "wrote",
        line.voice == "file",
        line.voice == "said",
        near(notebook.time - line.time, 30),
        log1p((notebook.depth - line.depth) / 1000),
        log1p(note.edits) if note else 0.0,
        note is not None and note.reads > 0 and not note.edits,
        near(notebook.time - note.time, 10) if note else 0.0,
        log1p(line.among),
        log1p(len(line.text.strip())),
        min(1.0, sum(names)),
        max(names, default=0.0),
        line.text[:1] in " \t",
        note is not None and note.time - line.time > 10,
        log1p(line.times),
    ]


def line_worth(notebook: Notebook, worth: dict[str, float]) -> dict[str, float]:
    """The chance that each line is edited as it stands; where no file was touched, there is nothing to edit."""
    if not notebook.files:
        return {}
    curves = line_curves()
    return {line.text: odds(along(curves, features)) for line, features in line_features(notebook, worth)}
