"""Scores names and lines by hand-set terms.

A name's score is the chance that a later step refers to it. Lines have two: the chance that they will be edited, and
the share of them that the next steps will write again. Each is a logistic sum of a few terms, rounded to what is known
of real sessions; none depends on a programming language or on an agent's tools.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, groupby
from math import exp, log1p, sqrt
from operator import attrgetter
from typing import NamedTuple

from .entries import FileRecord, MentionStats, decay
from .extract import HistoryExtractor
from .files import base_name
from .lines import FILE_KINDS, LedgerLine
from .names import find_names
from .tool_calls import is_finished

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
_KINDS = {"file": 2.5, "code": 1.5, "number": 3.0}


def logistic(total: float) -> float:
    return 1 / (1 + exp(-total)) if total > -60 else 0.0


def _recency(now: int, time: int, scale: float) -> float:
    """Nearness of a time, 0 for never."""
    return decay(now - time, scale) if time >= 0 else 0.0


def score_names(history: HistoryExtractor) -> dict[str, float]:
    """Returns each name's chance of being needed, with the retrieval bonus; plain words score by their rarity."""
    touched = {base_name(path): note for path, note in history.files.items()}
    asked = topic_words(history.users[-1].text) if history.users else frozenset()
    planned = frozenset().union(*(topic_words(step) for step, status in history.plan.steps if not is_finished(status)))
    topics = _topic_scores([name for name, seen in history.names.items() if seen.kind != "word"], asked, planned)
    scores: dict[str, float] = {}
    for name, seen in history.names.items():
        score = 0.0
        if seen.kind != "word":
            score = logistic(_name_total(seen, history.time, touched.get(name)) + topics.get(name, 0.0))
            score *= 1 + _RETRIEVAL_BONUS * min(1.0, seen.min_result_chars / _LARGE_RESULT_CHARS)
        if base := _BASE_SCORES.get(seen.kind):
            score += base * (2 if seen.user_time >= 0 else 1) * decay(seen.mentions, 3)
        scores[name] = score
    return scores


def _name_total(seen: MentionStats, now: int, file: FileRecord | None) -> float:
    """Adds up the terms of a name: what it is, how often and how lately it was used, and who said it."""
    total = _KINDS.get(seen.kind, 0.0) - 9.5
    total += 2.0 + 0.5 * log1p(seen.uses) if seen.uses else 0.4 * log1p(seen.mentions)
    total += 1.3 * _recency(now, seen.last, 5) + (0.5 if seen.uses else 1.5) * _recency(now, seen.last, 30)
    total += 1.5 * _recency(now, seen.user_time, 20) + 0.8 * _recency(now, seen.assistant_time, 10)
    return total + (0.7 + 0.9 * decay(now - file.time, 10) if file else 0.0)


def _topic_scores(names: Sequence[str], asked: frozenset[str], planned: frozenset[str]) -> dict[str, float]:
    """Returns what names gain by words of the last request (the rarest counts) and of the open plan."""
    wanted = asked | planned
    about = {name: found for name in _containing(names, wanted) if (found := topic_words(name)) & wanted}
    common = Counter(word for found in about.values() for word in found & asked)
    return {
        name: 0.8 * max([decay(common[one], 10) for one in found & asked], default=0.0)
        + len(found & planned) / len(found)
        for name, found in about.items()
    }


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


@lru_cache(maxsize=200_000)
def topic_words(text: str) -> frozenset[str]:
    """Returns the words of a name or text in lower case, without a plural s."""
    return frozenset([word.lower().removesuffix("s") for word in _TOPIC_WORD.findall(text)])


# -- lines ----------------------------------------------------------------------------------------------------------

_MIN_REACH, _REACH_PER_TOKEN = 80_000, 17
"""Older lines than so many characters are hardly ever edited verbatim; the reach grows with the token budget."""
_BLOCK_INNER_START, _MIN_BLOCK_OPENER = " \t)]}", 8
"""First characters of a line inside or at the end of a block; shortest line that opens one."""
EDITED_WEIGHT, REUSED_WEIGHT = 0.4, 0.35
"""Weight of all lines that will be edited, and of all text that will be written again, relative to all names that will
be needed."""
_THREAD_TOKENS = 4_000
"""From this room on, both weights grow with the room: most needed names are shown."""
_MAX_GROWTH, _CHARS_PER_TOKEN = 6.0, 4
"""They grow by at most so many times the room's share of the history: in little of a long one, names are missing."""


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
    edited: dict[str, float] = {}
    reused: dict[str, float] = {}
    if history.files:
        for line, common, nearness, held in _recent_lines(history, scores, room):
            edit, again = _line_chances(line, common, nearness, held)
            edited[line.text] = edit
            reused[line.text] = 0.0 if line.kind == "user" else len(line.text) * again
    growth = min(room / _THREAD_TOKENS, _MAX_GROWTH * room / max(1, history.offset // _CHARS_PER_TOKEN))
    total = sum(scores.values()) * max(1.0, growth)
    per_edit = EDITED_WEIGHT * total / max(1.0, sum(edited.values()))
    per_character = REUSED_WEIGHT * total / max(1.0, sum(reused.values()))
    return LineScores(
        {text: per_edit * chance for text, chance in edited.items()},
        {text: per_character * length for text, length in reused.items()},
        per_character,
    )


def _line_chances(line: LedgerLine, common: tuple[float, float], near: float, held: list[float]) -> tuple[float, float]:
    """Returns the chance that a line will be edited, and the share of it that will be written again."""
    again = 0.7 if line.occurrences > 1 else 0.0
    if line.kind in FILE_KINDS:
        edit = common[0] + 0.6 * (line.text[:1] in " \t") + 2 * near + again
    else:
        edit = common[0] + 2 * (line.text[:1] in " \t") + 0.2 * near + again
    reuse = common[1] + 6 * min(0.2, max(held, default=0.0)) + 0.8 * near - 0.2 * min(5, len(held))
    return logistic(edit), logistic(reuse - 0.25 * log1p(len(line.text)))


def _common_totals(line: LedgerLine, history: HistoryExtractor) -> tuple[float, float]:
    """Adds up the terms that all lines of one text share."""
    file, now = history.files.get(line.source), history.time
    touched = decay(now - file.time, 10) if file else 0.0
    unedited = 1.0 if file and file.reads and not file.edits else 0.0
    recency, among = decay(now - line.time, 30), log1p(line.batch_size)
    if line.kind in FILE_KINDS:
        edit = -4.5 + 0.8 * recency + touched + unedited + (1.0 if line.kind == "wrote" else 0.0) - 0.35 * among
    else:
        edit = -2.5 - 1.2 * recency - 0.75 * log1p((history.offset - line.offset) / 1000) - 0.2 * among
    return edit, -3.4 + 0.9 * recency + 0.8 * touched - 0.35 * among


def _recent_lines(
    history: HistoryExtractor, scores: dict[str, float], room: int
) -> Iterator[tuple[LedgerLine, tuple[float, float], float, list[float]]]:
    """Yields recent lines with what their text shares, the nearness of names just said or asked for, and the scores of
    their names."""
    reach, now = max(_MIN_REACH, _REACH_PER_TOKEN * room), history.time
    exact = {name: seen for name, seen in history.names.items() if seen.kind != "word"}
    asked = set(find_names(history.users[-1].text)) if history.users else set()
    spoken = {
        name: max(_recency(now, seen.assistant_time, 3), 0.1 * (name in asked)) * decay(seen.mentions, 10)
        for name, seen in history.names.items()
        if seen.assistant_time >= 0 or name in asked
    }
    recent = [line for line in reversed(history.lines.values()) if history.offset - line.offset < reach]
    for _, group in groupby(recent, key=attrgetter("place", "source")):
        together = sorted(group, key=attrgetter("number"))
        held = [[name for name in history.name_cache[line.text] if name in exact] for line in together]
        near = _nearness(together, [max([spoken.get(name, 0.0) for name in here], default=0.0) for here in held])
        common: dict[tuple[str, int, int], tuple[float, float]] = {}
        for line, here, nearness in zip(together, held, near, strict=True):
            came = line.kind, line.time, line.batch_size
            shared = common.get(came) or common.setdefault(came, _common_totals(line, history))
            yield line, shared, nearness, [scores[name] for name in here if name in scores]


def _nearness(lines: list[LedgerLine], values: list[float]) -> list[float]:
    """Returns how near each line is to a name just said: on it, beside it, or in the opening line of its block."""
    if not any(values):
        return values
    last, opened = 0.0, []
    for line, value in zip(lines, values, strict=True):
        if line.text[:1] not in _BLOCK_INNER_START and len(line.text) > _MIN_BLOCK_OPENER:
            last = value
        opened.append(last)
    spread = map(sqrt, _spread_to_neighbours(values))
    return [one + 0.5 * block for one, block in zip(spread, opened, strict=True)]


def _spread_to_neighbours(values: list[float]) -> list[float]:
    """Passes a decaying part of each value to the neighbouring lines."""
    if not any(values):
        return values
    for places in (range(1, len(values)), range(len(values) - 2, -1, -1)):
        for place in places:
            values[place] = max(values[place], values[place - places.step] * 0.8)
    return values
