"""What a name and a line are worth: the learned chance that a later step needs them.

Two small logistic models, one for names and one for lines that will be edited. What each feature adds stands in
`weights.toml`, learned from what real sessions needed later: a weight, or a curve given by its points.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import groupby
from math import exp, log1p
from operator import mul
from typing import Any

from .curves import Curve, along
from .deeds import FINISHED
from .entries import File, Sighting
from .lines import Line
from .names import names_in
from .notebook import Notebook

FAR = 150_000
"""So many characters back, a line is hardly edited from memory any more."""
_DEAR, _LARGE = 0.4, 20_000
"""A name that stands only in large results, of so many characters or more, counts for two fifths more: to find it
again, all of one must be read."""
WORD = 2e-4
"""A plain word's worth: next to nothing beside a name, everything where there are no names."""
_THEME = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}|[^\W\d_a-zA-Z]{2,}")
_TOGETHER = (
    ("file", "last5"),
    ("file", "last30"),
    ("code", "last30"),
    ("used", "last5"),
    ("used", "last30"),
    ("used", "file"),
    ("used", "code"),
    ("said", "last30"),
    ("user", "last30"),
    ("mentions", "last30"),
    ("mentions", "used"),
)
_SINGLE = (
    *("bias", "file", "code", "number", "used", "uses", "mentions", "last5", "last30", "user", "user20"),
    *("said", "said10", "wrote", "touched", "touched10", "asked", "length", "theme", "planned"),
)
NAME_FEATURES = (*_SINGLE, *(f"{first} and {second}" for first, second in _TOGETHER))
LINE_FEATURES = (
    *("bias", "wrote", "file", "said", "time30", "depth", "edits", "unedited", "touched10", "among", "length"),
    *("names", "best", "indent", "stale", "newest", "near_said", "near_user", "count"),
)
_PAIRS = tuple((_SINGLE.index(first), _SINGLE.index(second)) for first, second in _TOGETHER)


@cache
def _learned() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files(__package__).joinpath("weights.toml").read_text(encoding="utf-8"))


@cache
def name_weights() -> tuple[float, ...]:
    """In the order of the features."""
    return tuple(_learned()["names"][feature] for feature in NAME_FEATURES)


@cache
def line_curves() -> tuple[Curve, ...]:
    """In the order of the features."""
    return tuple(Curve.of(_learned()["lines"][feature]) for feature in LINE_FEATURES)


def near(age: float, scale: float) -> float:
    return 1 / (1 + age / scale)


def name_features(notebook: Notebook) -> Iterator[tuple[str, list[float]]]:
    """Each name with its features, without their products; plain words have none."""
    touched = {path.rstrip("/").rpartition("/")[2]: note for path, note in notebook.files.items()}
    latest = _latest(notebook)
    asked = themes(notebook.users[-1].text) if notebook.users else frozenset()
    planned = frozenset().union(*(themes(step) for step, status in notebook.plan if status not in FINISHED))
    named = [name for name, seen in notebook.names.items() if seen.kind != "word"]
    common = Counter(theme for name in named for theme in themes(name))
    for name in named:
        about = themes(name)
        theme = max([near(common[one], 10) for one in about & asked], default=0.0)
        plan = len(about & planned) / len(about) if about else 0.0
        note = touched.get(name)
        yield name, _name(name, notebook.names[name], notebook.time, note, name in latest, theme, plan)


def together(features: Sequence[float]) -> list[float]:
    """The products of features that say more together than each for itself."""
    return [features[first] * features[second] for first, second in _PAIRS]


@lru_cache(maxsize=200_000)
def themes(text: str) -> frozenset[str]:
    """The words that a name or a text is made of, without endings: what it is about."""
    return frozenset(word.lower().removesuffix("s") for word in _THEME.findall(text))


def _latest(notebook: Notebook) -> set[str]:
    """The names in what the user said last."""
    return {name for name, _ in names_in(notebook.users[-1].text)} if notebook.users else set()


def _name(
    name: str, seen: Sighting, now: int, file: File | None, asked: bool, theme: float, planned: float
) -> list[float]:
    age = now - seen.last
    return [
        1.0,
        seen.kind == "file",
        seen.kind == "code",
        seen.kind == "number",
        seen.uses > 0,
        log1p(seen.uses),
        log1p(seen.mentions),
        near(age, 5),
        near(age, 30),
        seen.user >= 0,
        near(now - seen.user, 20) if seen.user >= 0 else 0.0,
        seen.said >= 0,
        near(now - seen.said, 10) if seen.said >= 0 else 0.0,
        seen.wrote >= 0,
        file is not None,
        near(now - file.time, 10) if file else 0.0,
        asked,
        log1p(len(name)),
        theme,
        planned,
    ]


def name_worth(notebook: Notebook) -> dict[str, float]:
    """The chance that each name is needed, and its price; for a plain word, a trifle that grows with its rarity."""
    learned, names = name_weights(), notebook.names
    worth = {
        name: chance(learned, features) * (1 + _DEAR * min(1.0, names[name].price / _LARGE))
        for name, features in name_features(notebook)
    }
    for name, seen in names.items():
        if seen.kind in ("word", "proper", "wide"):
            weight = WORD * (4 if seen.kind == "proper" else 1) * (2 if seen.user >= 0 else 1)
            worth[name] = worth.get(name, 0.0) + weight * near(seen.mentions, 3)
    return worth


def chance(learned: Sequence[float], features: Sequence[float]) -> float:
    """Of a name; its weights are those of the features, then those of their products, most of which are nought."""
    total = sum(map(mul, learned, features))
    for (first, second), weight in zip(_PAIRS, learned[len(features) :], strict=True):
        if features[first]:
            total += weight * features[first] * features[second]
    return _odds(total)


def _odds(total: float) -> float:
    return 1 / (1 + exp(-total)) if total > -60 else 0.0


def line_features(notebook: Notebook, worth: dict[str, float]) -> Iterator[tuple[Line, list[float]]]:
    """Features of the lines that are near enough to be edited, newest text first."""
    names, now, latest = notebook.names, notebook.time, _latest(notebook)
    recent = [line for line in reversed(notebook.lines.values()) if notebook.depth - line.depth < FAR]
    for rank, (_, group) in enumerate(groupby(recent, key=lambda line: (line.place, line.source))):
        together = sorted(group, key=lambda line: line.number)
        held = [
            [name for name, kind in notebook.named(line.text) if kind != "word" and name in names] for line in together
        ]
        said = _spread([max([_spoken(names[name], now) for name in here], default=0.0) for here in held])
        user = _spread(
            [max([near(names[name].mentions, 10) for name in here if name in latest], default=0.0) for here in held]
        )
        for line, here, near_said, near_user in zip(together, held, said, user, strict=True):
            features = _line(line, notebook, [worth.get(name, 0.0) for name in here])
            yield line, [*features, near(rank, 1), near_said, near_user, min(5, len(here))]


def _spoken(seen: Sighting, now: int) -> float:
    """How lately the assistant spoke of a rare name."""
    return near(now - seen.said, 3) * near(seen.mentions, 10) if seen.said >= 0 else 0.0


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
    ]


def line_worth(notebook: Notebook, worth: dict[str, float]) -> dict[str, float]:
    """The chance that each line is edited as it stands; where no file was touched, there is nothing to edit."""
    if not notebook.files:
        return {}
    curves = line_curves()
    return {line.text: _odds(along(curves, features)) for line, features in line_features(notebook, worth)}
