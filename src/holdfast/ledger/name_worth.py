"""What a name is worth: the learned chance that a later step needs it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from math import log1p
from operator import mul

from .deeds import is_finished
from .folders import base_name
from .learned import learned, named_last, near, odds
from .notebook import Notebook

_DEAR, _LARGE = 0.4, 20_000
"""A name that stands only in large results, of so many characters or more, counts for two fifths more: to find it
again, all of one must be read."""
WORD = 2e-4
"""A plain word's worth: next to nothing beside a name, everything where there are no names."""
_TRIFLES = {"word": WORD, "wide": WORD, "proper": 4 * WORD, "figure": 4 * WORD}
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
Known = tuple[str, int, int, int, int | None, int | None, bool, int | None, bool, int, float, float]
"""The arguments of `_name`."""
_PAIRS = tuple((_SINGLE.index(first), _SINGLE.index(second)) for first, second in _TOGETHER)


@cache
def name_weights() -> tuple[float, ...]:
    """In the order of the features."""
    return tuple(learned()["names"][feature] for feature in NAME_FEATURES)


def name_features(notebook: Notebook) -> Iterator[tuple[str, list[float]]]:
    """Each name with its features, without their products; plain words have none."""
    return ((name, _name(*known)) for name, known in _known(notebook))


def _known(notebook: Notebook) -> Iterator[tuple[str, Known]]:
    """All that is known of each name but its letters: of many, the same."""
    touched = {base_name(path): note for path, note in notebook.files.items()}
    latest, now = named_last(notebook), notebook.time
    asked = themes(notebook.users[-1].text) if notebook.users else frozenset()
    planned = frozenset().union(*(themes(step) for step, status in notebook.steps.all if not is_finished(status)))
    named = {name: seen for name, seen in notebook.names.items() if seen.kind != "word"}
    on_theme, on_plan = _shares(named, asked, planned)
    for name, seen in named.items():
        note = touched.get(name)
        yield (
            name,
            (
                seen.kind,
                seen.uses,
                seen.mentions,
                now - seen.last,
                now - seen.user if seen.user >= 0 else None,
                now - seen.said if seen.said >= 0 else None,
                seen.wrote >= 0,
                now - note.time if note else None,
                name in latest,
                len(name),
                on_theme.get(name, 0.0),
                on_plan.get(name, 0.0),
            ),
        )


def _shares(
    names: Iterable[str], asked: frozenset[str], planned: frozenset[str]
) -> tuple[dict[str, float], dict[str, float]]:
    """How much some names have of the rarest thing that was asked about, and of the plan."""
    wanted = asked | planned
    about = {name: found for name in names if not wanted.isdisjoint(found := themes(name))} if wanted else {}
    common = Counter(theme for found in about.values() for theme in found & asked)
    on_theme = {
        name: max([near(common[one], 10) for one in found & asked], default=0.0) for name, found in about.items()
    }
    return on_theme, {name: len(found & planned) / len(found) for name, found in about.items()}


def together(features: Sequence[float]) -> list[float]:
    """The products of features that say more together than each for itself."""
    return [features[first] * features[second] for first, second in _PAIRS]


@lru_cache(maxsize=200_000)
def themes(text: str) -> frozenset[str]:
    """The words that a name or a text is made of, without endings: what it is about."""
    return frozenset([word.lower().removesuffix("s") for word in _THEME.findall(text)])


def _name(
    kind: str,
    uses: int,
    mentions: int,
    age: int,
    user: int | None,
    said: int | None,
    wrote: bool,
    touched: int | None,
    asked: bool,
    length: int,
    theme: float,
    planned: float,
) -> list[float]:
    """Ages are in ticks since; None is never."""
    return [
        1.0,
        kind == "file",
        kind == "code",
        kind == "number",
        uses > 0,
        log1p(uses),
        log1p(mentions),
        near(age, 5),
        near(age, 30),
        user is not None,
        near(user, 20) if user is not None else 0.0,
        said is not None,
        near(said, 10) if said is not None else 0.0,
        wrote,
        touched is not None,
        near(touched, 10) if touched is not None else 0.0,
        asked,
        log1p(length),
        theme,
        planned,
    ]


def name_worth(notebook: Notebook) -> dict[str, float]:
    """The chance that each name is needed, and its price; for a plain word, a trifle that grows with its rarity."""
    weights, names = name_weights(), notebook.names
    chances: dict[Known, float] = {}
    worth: dict[str, float] = {}
    for name, known in _known(notebook):
        if (needed := chances.get(known)) is None:
            needed = chances[known] = chance(weights, _name(*known))
        worth[name] = needed * (1 + _DEAR * min(1.0, names[name].price / _LARGE))
    for name, seen in names.items():
        if trifle := _TRIFLES.get(seen.kind):
            worth[name] = worth.get(name, 0.0) + trifle * (2 if seen.user >= 0 else 1) * near(seen.mentions, 3)
    return worth


def chance(weights: Sequence[float], features: Sequence[float]) -> float:
    """Of a name; its weights are those of the features, then those of their products, most of which are nought."""
    total = sum(map(mul, weights, features))
    for (first, second), weight in zip(_PAIRS, weights[-len(_PAIRS) :], strict=True):
        if features[first]:
            total += weight * features[first] * features[second]
    return odds(total)
