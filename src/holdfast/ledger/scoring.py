"""Scores names and lines by learned models.

A name's score is the probability that a later step refers to it. Lines have two: the probability that they will be
edited, and the share of them that the next steps will write again; the weights of both against the names' are learned.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate, chain, groupby
from math import log1p
from operator import itemgetter, mul
from typing import NamedTuple

from .entries import MentionStats
from .extract import HistoryExtractor
from .files import base_name
from .lines import FILE_KINDS, LedgerLine
from .names import find_names
from .tool_calls import is_finished
from .weights import Curve, CurvePair, decay, load_weights, logistic, sum_curves


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


# -- lines ----------------------------------------------------------------------------------------------------------

_MIN_REACH, _REACH_PER_TOKEN = 80_000, 17
"""Older lines than so many characters are hardly ever edited verbatim; the reach grows with the token budget."""
_BLOCK_INNER_START, _MIN_BLOCK_OPENER = " \t)]}", 8
"""First characters of a line inside or at the end of a block; shortest line that opens one."""
SHARED_FEATURES = (
    "bias",
    "wrote",
    "file",
    "said",
    "time30",
    "edits",
    "unedited",
    "touched10",
    "among",
    "stale",
    "newest",
)
"""Features that all lines of one text share."""
EDITED_WEIGHT, REUSED_WEIGHT = 0.4, 0.35
"""Weight of all lines that will be edited, and of all text that will be written again, relative to all names that will
be needed."""
_THREAD_TOKENS = 4_000
"""From this room on, the weight of text that will be written again grows with the room: most needed names are shown."""
OWN_FEATURES = ("depth", "length", "names", "best", "count", "indent", "times", "near_said", "near_user", "below_said")
LINE_MODELS = EDITED_IN_FILES, EDITED_ELSEWHERE, REUSED = "edited_in_files", "edited_elsewhere", "reused"
"""What tells of a file's line that it will be edited does not tell it of a line that only output showed."""
Features = list[float]


@cache
def line_curves(model: str, features: tuple[str, ...]) -> tuple[Curve, ...]:
    """Returns the curves of a model in the order of the features."""
    return tuple(Curve.of(load_weights()[model][feature]) for feature in features)


def line_features(
    history: HistoryExtractor, scores: dict[str, float], room: int
) -> Iterator[tuple[LedgerLine, Features, Features]]:
    """Yields the recent lines, newest text first, with their shared and own features."""
    reach = max(_MIN_REACH, _REACH_PER_TOKEN * room)
    names, now = history.names, history.time
    exact = {name for name, seen in names.items() if seen.kind != "word"}
    spoken = {name: _assistant_recency(seen, now) for name, seen in names.items() if seen.assistant_time >= 0}
    asked = {name: decay(names[name].mentions, 10) for name in names_in_last_request(history) if name in names}
    recent = [line for line in reversed(history.lines.values()) if history.offset - line.offset < reach]
    for rank, (_, group) in enumerate(groupby(recent, key=lambda line: (line.place, line.source))):
        together = sorted(group, key=lambda line: line.number)
        held = [[name for name in history.name_cache[line.text] if name in exact] for line in together]
        mentioned = [_max_value(spoken, here) for here in held]
        below = list(_block_values(together, mentioned))
        around = zip(
            _spread_to_neighbours(mentioned),
            _spread_to_neighbours([_max_value(asked, here) for here in held]),
            below,
            strict=True,
        )
        common: dict[tuple[str, int, int], Features] = {}
        for line, here, near_by in zip(together, held, around, strict=True):
            came = line.kind, line.time, line.batch_size
            shared = common.get(came) or common.setdefault(came, _shared_features(line, rank, history))
            yield (
                line,
                shared,
                [*_own_features(line, history.offset, [scores.get(name, 0.0) for name in here]), *near_by],
            )


def _max_value(values: dict[str, float], names: list[str]) -> float:
    if values.keys().isdisjoint(names):
        return 0.0
    return max([values[name] for name in names if name in values])


def _assistant_recency(seen: MentionStats, now: int) -> float:
    """Recency of the assistant's last mention, higher for rare names."""
    return decay(now - seen.assistant_time, 3) * decay(seen.mentions, 10)


def _block_values(lines: list[LedgerLine], values: list[float]) -> Iterator[float]:
    """Yields for each line the value of its block's first line, which holds a function's name."""
    last = 0.0
    for line, value in zip(lines, values, strict=True):
        if line.text[:1] not in _BLOCK_INNER_START and len(line.text) > _MIN_BLOCK_OPENER:
            last = value
        yield last


def _spread_to_neighbours(values: list[float]) -> list[float]:
    """Passes a decaying part of each value to the neighbouring lines."""
    if not any(values):
        return values
    for places in (range(1, len(values)), range(len(values) - 2, -1, -1)):
        for place in places:
            values[place] = max(values[place], values[place - places.step] * 0.8)
    return values


def _shared_features(line: LedgerLine, rank: int, history: HistoryExtractor) -> Features:
    note = history.files.get(line.source)
    return [
        1.0,
        line.kind == "wrote",
        line.kind == "file",
        line.kind == "said",
        decay(history.time - line.time, 30),
        log1p(note.edits) if note else 0.0,
        note is not None and note.reads > 0 and not note.edits,
        decay(history.time - note.time, 10) if note else 0.0,
        log1p(line.batch_size),
        note is not None and note.time - line.time > 10,
        decay(rank, 1),
    ]


def _own_features(line: LedgerLine, offset: int, names: list[float]) -> Features:
    return [
        log1p((offset - line.offset) / 1000),
        log1p(len(line.text.strip())),
        min(1.0, sum(names)),
        max(names, default=0.0),
        min(5, len(names)),
        line.text[:1] in " \t",
        log1p(line.occurrences),
    ]


class _LineModel(NamedTuple):
    """The curves of one model of edited lines, each paired with that of reused text."""

    shared: tuple[CurvePair, ...]
    own: tuple[CurvePair, ...]


def _load_model(edited: str) -> _LineModel:
    def pairs(features: tuple[str, ...]) -> tuple[CurvePair, ...]:
        return _pair_curves(line_curves(edited, features), line_curves(REUSED, features))

    return _LineModel(pairs(SHARED_FEATURES), pairs(OWN_FEATURES))


@cache
def _pair_curves(edited: tuple[Curve, ...], reused: tuple[Curve, ...]) -> tuple[CurvePair, ...]:
    return tuple(map(CurvePair.of, edited, reused))


class LineScores(NamedTuple):
    """Scores of lines apart from the names they hold, in the unit of the names' scores."""

    edited: dict[str, float]
    reused: dict[str, float]
    """By text: what it is worth that the line may be edited, and that its text may be written again."""
    per_character: float
    """What one character is worth that will certainly be written again."""


def score_lines(history: HistoryExtractor, scores: dict[str, float], room: int) -> LineScores:
    """Scores the recent lines for a budget of `room` tokens.

    Edits are scored relative to all lines that may be edited, reuse relative to all text that may be written again.
    Without files there is nothing to edit or to write again. The user's messages have a section of their own, and count
    as names alone.
    """
    edited: list[float] = []
    reused: list[float] = []
    texts: list[str] = []
    in_files, elsewhere = _load_model(EDITED_IN_FILES), _load_model(EDITED_ELSEWHERE)
    last, common_edited, common_reused = None, 0.0, 0.0
    for line, shared, own in line_features(history, scores, room):
        model = in_files if line.kind in FILE_KINDS else elsewhere
        if shared is not last:
            last = shared
            common_edited, common_reused = sum_curves(model.shared, shared)
        own_edited, own_reused = sum_curves(model.own, own)
        texts.append(line.text)
        edited.append(logistic(common_edited + own_edited) if history.files else 0.0)
        again = logistic(common_reused + own_reused) if history.files and line.kind != "user" else 0.0
        reused.append(len(line.text) * again)
    total = sum(scores.values())
    per_edit = EDITED_WEIGHT * total / max(1.0, sum(edited))
    reused_weight = REUSED_WEIGHT * max(1.0, room / _THREAD_TOKENS)
    per_character = reused_weight * total / max(1.0, sum(reused))
    return LineScores(
        dict(zip(texts, [per_edit * chance for chance in edited], strict=True)),
        dict(zip(texts, [per_character * length for length in reused], strict=True)),
        per_character,
    )
