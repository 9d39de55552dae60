"""Scores names: the learned probability that a later step refers to them."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate, chain
from math import log1p
from operator import itemgetter, mul

from .extract import HistoryExtractor
from .names import find_names
from .paths import base_name
from .tool_calls import is_finished
from .weights import decay, load_weights, logistic


def names_in_last_request(history: HistoryExtractor) -> set[str]:
    """Returns the names in the last user message."""
    return set(find_names(history.users[-1].text)) if history.users else set()


_RETRIEVAL_BONUS, _LARGE_RESULT_CHARS = 0.4, 20_000
"""Bonus of a name that occurs only in large results, and the size at which it is full: retrieving it costs a whole
result."""
PLAIN_WORD_SCORE = 2e-4
"""Score of a plain word: negligible next to a name, decisive where there are none."""
_BASE_SCORES = {
    "word": PLAIN_WORD_SCORE,
    "wide": PLAIN_WORD_SCORE,
    "proper": 4 * PLAIN_WORD_SCORE,
    "figure": 4 * PLAIN_WORD_SCORE,
}
_TOPIC_WORD = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}|[^\W\d_a-zA-Z]{2,}")
_PRODUCTS = (
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
    *("said", "said10", "wrote", "touched", "touched10", "asked", "theme", "planned"),
)
NAME_FEATURES = (*_SINGLE, *(f"{first} and {second}" for first, second in _PRODUCTS))
NameKey = tuple[str, int, int, int, int | None, int | None, bool, int | None, bool, float, float]
"""The arguments of `_features_of`."""
_FIRST_OF_PAIRS, _SECOND_OF_PAIRS = (itemgetter(*map(_SINGLE.index, names)) for names in zip(*_PRODUCTS, strict=True))


@cache
def name_weights() -> tuple[float, ...]:
    """Returns the weights in the order of the features."""
    return tuple(load_weights()["names"][feature] for feature in NAME_FEATURES)


def name_features(history: HistoryExtractor) -> Iterator[tuple[str, list[float]]]:
    """Yields each name with its features, without their products; plain words are skipped."""
    return ((name, _features_of(*known)) for name, known in _name_keys(history))


def _name_keys(history: HistoryExtractor) -> Iterator[tuple[str, NameKey]]:
    """Yields each name with all that its score depends on; many names share one key."""
    touched = {base_name(path): note for path, note in history.files.items()}
    latest, now = names_in_last_request(history), history.time
    asked = topic_words(history.users[-1].text) if history.users else frozenset()
    planned = frozenset().union(*(topic_words(step) for step, status in history.plan.steps if not is_finished(status)))
    named = {name: seen for name, seen in history.names.items() if seen.kind != "word"}
    on_topic, on_plan = _topic_shares(list(named), asked, planned)
    for name, seen in named.items():
        note = touched.get(name)
        yield (
            name,
            (
                seen.kind,
                seen.uses,
                seen.mentions,
                now - seen.last,
                now - seen.user_time if seen.user_time >= 0 else None,
                now - seen.assistant_time if seen.assistant_time >= 0 else None,
                seen.write_time >= 0,
                now - note.time if note else None,
                name in latest,
                on_topic.get(name, 0.0),
                on_plan.get(name, 0.0),
            ),
        )


def _topic_shares(
    names: Sequence[str], asked: frozenset[str], planned: frozenset[str]
) -> tuple[dict[str, float], dict[str, float]]:
    """Returns how much each name shares with the last request (by its rarest word) and with the open plan."""
    wanted = asked | planned
    holding = _containing(names, wanted)
    about = {name: found for name in holding if not wanted.isdisjoint(found := topic_words(name))}
    common = Counter(word for found in about.values() for word in found & asked)
    on_topic = {
        name: max([decay(common[one], 10) for one in found & asked], default=0.0) for name, found in about.items()
    }
    return on_topic, {name: len(found & planned) / len(found) for name, found in about.items()}


def _containing(names: Sequence[str], words: Iterable[str]) -> list[str]:
    """Returns the names that contain one of these words in lower case, found in one text of all names."""
    lowered = [name.lower() for name in names]
    text, starts = "\n".join(lowered), [0, *accumulate(len(name) + 1 for name in lowered)]
    found: set[int] = set()
    for word in words:
        at = text.find(word)
        while at >= 0:
            following = bisect(starts, at)
            found.add(following - 1)
            at = text.find(word, starts[following])
    return [names[place] for place in sorted(found)]


def feature_products(features: Sequence[float]) -> Iterator[float]:
    """Returns the products of feature pairs that the model uses."""
    return map(mul, _FIRST_OF_PAIRS(features), _SECOND_OF_PAIRS(features))


@lru_cache(maxsize=200_000)
def topic_words(text: str) -> frozenset[str]:
    """Returns the words of a name or text in lower case, without a plural s."""
    return frozenset([word.lower().removesuffix("s") for word in _TOPIC_WORD.findall(text)])


def _features_of(
    kind: str,
    uses: int,
    mentions: int,
    age: int,
    user: int | None,
    assistant: int | None,
    wrote: bool,
    touched: int | None,
    asked: bool,
    theme: float,
    planned: float,
) -> list[float]:
    """Returns the features in the order of `_SINGLE`. Ages are in ticks; None means never."""
    return [
        1.0,
        kind == "file",
        kind == "code",
        kind == "number",
        uses > 0,
        log1p(uses),
        log1p(mentions),
        decay(age, 5),
        decay(age, 30),
        user is not None,
        decay(user, 20) if user is not None else 0.0,
        assistant is not None,
        decay(assistant, 10) if assistant is not None else 0.0,
        wrote,
        touched is not None,
        decay(touched, 10) if touched is not None else 0.0,
        asked,
        theme,
        planned,
    ]


def score_names(history: HistoryExtractor) -> dict[str, float]:
    """Returns each name's probability of being needed, with the retrieval bonus; plain words score by their rarity."""
    weights, names = name_weights(), history.names
    probabilities: dict[NameKey, float] = {}
    scores: dict[str, float] = {}
    for name, known in _name_keys(history):
        if (needed := probabilities.get(known)) is None:
            needed = probabilities[known] = name_probability(weights, _features_of(*known))
        scores[name] = needed * (1 + _RETRIEVAL_BONUS * min(1.0, names[name].min_result_chars / _LARGE_RESULT_CHARS))
    for name, seen in names.items():
        if base := _BASE_SCORES.get(seen.kind):
            scores[name] = scores.get(name, 0.0) + base * (2 if seen.user_time >= 0 else 1) * decay(seen.mentions, 3)
    return scores


def name_probability(weights: Sequence[float], features: Sequence[float]) -> float:
    """Evaluates the model of names: weights of the features, then of their products."""
    return logistic(sum(map(mul, weights, chain(features, feature_products(features)))))
