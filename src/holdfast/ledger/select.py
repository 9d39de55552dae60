"""Selects lines within a budget: weighted coverage, solved greedily by score per character.

A line scores the names that it adds to the page, plus what it is worth that it may be edited, plus what its text is
worth that may be written again, as far as nothing else shows that text. A name whose lines are too long can be listed
alone for a part of its score, so that it can at least be searched for. Gains only shrink as lines are selected
(submodularity), so a lazy heap avoids recomputing most of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Literal

import msgspec

from .lines import LedgerLine, find_shingles, is_wrapper_line, unseen_share
from .names import NameFinder, is_clear_alone

MIN_LINE_CHARS = 10
"""Shorter lines are not shown."""
_LINE_OVERHEAD = 8
"""Fixed cost of a line in characters."""
_PIECE_SHARE = 0.5
"""Share of its names' scores that a piece of an over-long line gets."""
_NAME_SHARE = 0.6
"""Share of its score that a name gets without its line."""
_SEPARATOR_CHARS = 2
"""Characters between two names."""
_SPOKEN = frozenset(("said", "user", "asked"))
"""Kinds of lines whose names are not listed alone."""
_MAX_LONE_NAMES = 1_000
"""Number of highest-scored names that may be listed alone."""
_MAX_MISFITS = 20
"""Lines that do not fit before the selection stops."""


class Candidate(msgspec.Struct, gc=False):
    """A line or a single name that may be selected, with its score for an empty page."""

    line: LedgerLine
    own_score: float
    """Score that does not depend on other lines."""
    reuse_score: float
    """Score of its text if nothing else shows it."""
    name_share: float
    """Share of its names' scores that it gets."""
    density: float


def rank_candidates(
    lines: Sequence[LedgerLine],
    names_of: NameFinder,
    scores: dict[str, float],
    own_scores: dict[str, float],
    reuse_scores: dict[str, float],
) -> list[Candidate]:
    """Returns candidates by score per character, of equal ones the newest first."""
    found, newest = [], dict[str, LedgerLine]()
    sought = set(sorted(scores, key=scores.__getitem__, reverse=True)[:_MAX_LONE_NAMES])
    for line in reversed(lines):
        text, kind = line.text, line.kind
        if (len(text.strip()) < MIN_LINE_CHARS and kind != "name") or is_wrapper_line(text):
            continue
        names = names_of(text)
        if kind not in _SPOKEN and not sought.isdisjoint(names):
            newest.update([(name, line) for name in names if name in sought])
            sought.difference_update(names)
        if kind == "name":
            continue
        own_score, reuse_score = own_scores.get(text, 0.0), reuse_scores.get(text, 0.0)
        share = 1.0 if line.whole else _PIECE_SHARE
        gain = own_score + reuse_score + share * sum(filter(None, map(scores.get, names)))
        if gain > 0:
            found.append(Candidate(line, own_score, reuse_score, share, gain / (len(text) + _LINE_OVERHEAD)))
    for name, line in newest.items():
        if is_clear_alone(name, line.text):  # with the source of its newest line
            alone = LedgerLine(name, "name", line.source, line.place, line.number, line.time)
            density = _NAME_SHARE * scores[name] / (len(name) + _SEPARATOR_CHARS)
            found.append(Candidate(alone, 0.0, 0.0, _NAME_SHARE, density))
    return sorted(found, key=attrgetter("density"), reverse=True)


Verdict = Literal["taken", "no room", "in a longer line", "not reached", "adds nothing"]
"""What became of a candidate: `in a longer line` is a lone name, `not reached` one after the last that was taken."""


class RankedLine(msgspec.Struct, frozen=True):
    """A candidate with its place in a finished selection."""

    line: LedgerLine
    rank: int
    """1 is the first that was considered."""
    density: float
    """Score per character when it was considered, given the lines before it."""
    names: tuple[str, ...]
    """Its names that have a score, highest first."""
    verdict: Verdict


class Selection:
    """Greedy order of the candidates, computed lazily as far as the room requires.

    With less room, fewer of the same lines are selected: another size needs no new computation.
    """

    def __init__(
        self,
        candidates: Iterable[Candidate],
        names_of: NameFinder,
        scores: dict[str, float],
        *,
        covered: Collection[str],
        heading: Callable[[LedgerLine], tuple[str, int]],
        opened: Collection[str] = (),
        known: str = "",
    ) -> None:
        self._pool = list(candidates)
        self._scores = scores
        self._seen, self._opened = set(covered), set(opened)
        self._shown = set(find_shingles(known))
        self._shingles: dict[int, list[str]] = {}
        """Of the candidates considered so far: most never are."""
        self._is_lone = [candidate.line.kind == "name" for candidate in self._pool]
        self._names = [
            (one.line.text,) if alone else tuple(dict.fromkeys(filter(scores.__contains__, names_of(one.line.text))))
            for one, alone in zip(self._pool, self._is_lone, strict=True)
        ]
        self._lone: dict[str, int] = {}
        """Names selected without a line, with their index."""
        self._headings = [heading(candidate.line) for candidate in self._pool]
        self._under: dict[str, list[int]] = {}
        for index, (key, _) in enumerate(self._headings):
            self._under.setdefault(key, []).append(index)
        self._heap = [(-self._density(index, at_most=True), index) for index in range(len(self._pool))]
        heapify(self._heap)
        self._order: dict[int, int] = {}
        """Selected candidates with their cost, including a heading that they open."""
        self._densities: dict[int, float] = {}
        """Their score per character when they were selected."""

    def within(self, room: int) -> list[LedgerLine]:
        """Returns the selection for `room` characters; a name alone gives way to a line that contains it."""
        verdicts = self._verdicts(room)
        return [self._pool[index].line for index in sorted(verdicts) if verdicts[index] == "taken"]

    def ranking(self, room: int) -> list[RankedLine]:
        """Returns all candidates with what became of each in the selection for `room` characters, best first."""
        verdicts = self._verdicts(room)
        rest = [(self._density(index), index) for index in range(len(self._pool)) if index not in verdicts]
        order: list[tuple[float, int, Verdict]] = [(self._densities[at], at, verdicts[at]) for at in verdicts]
        order += [(now, at, "not reached" if now > 0 else "adds nothing") for now, at in sorted(rest, reverse=True)]
        best_first = [tuple(sorted(names, key=lambda name: -self._scores[name])) for names in self._names]
        return [
            RankedLine(self._pool[at].line, rank, now, best_first[at], verdict)
            for rank, (now, at, verdict) in enumerate(order, 1)
        ]

    def _verdicts(self, room: int) -> dict[int, Verdict]:
        """Returns what becomes of the candidates, in the order in which they are considered, until the room is full."""
        verdicts, left, misfits = dict[int, Verdict](), room, 0
        for index, cost in self._selected():
            if cost > left:
                verdicts[index] = "no room"
                misfits += 1
            else:
                verdicts[index] = "taken"
                left -= cost
                if not self._is_lone[index]:
                    for name in self._names[index]:
                        other = self._lone.get(name)
                        if other is not None and verdicts.get(other) == "taken":
                            verdicts[other] = "in a longer line"
                            left += len(self._pool[other].line.text) + _SEPARATOR_CHARS
            if left <= MIN_LINE_CHARS or misfits > _MAX_MISFITS:
                break
        return verdicts

    def _selected(self) -> Iterator[tuple[int, int]]:
        yield from tuple(self._order.items())
        while (index := self._select_next()) is not None:
            yield index, self._order[index]

    def _select_next(self) -> int | None:
        heap, taken = self._heap, self._order
        while heap:
            _, index = heappop(heap)
            if index in taken:
                continue
            now = self._density(index)
            if now <= 0:
                continue
            if heap and now < -heap[0][0] - 1e-12:
                heappush(heap, (-now, index))
            else:
                self._densities[index] = now
                self._select(index)
                return index
        return None

    def _select(self, index: int) -> None:
        candidate, (key, price) = self._pool[index], self._headings[index]
        alone = self._is_lone[index]
        self._order[index] = (
            len(candidate.line.text) + (_SEPARATOR_CHARS if alone else 1) + (0 if key in self._opened else price)
        )
        if alone:
            self._lone[candidate.line.text] = index
        else:
            self._seen.update(self._names[index])
            self._shown.update(self._shingles[index])
        if key not in self._opened:
            self._opened.add(key)
            for other in self._under[key]:
                if other not in self._order:
                    heappush(self._heap, (-self._density(other, at_most=True), other))

    def _density(self, index: int, *, at_most: bool = False) -> float:
        """Score per character given what is selected; `at_most` does not compare its text with what is shown."""
        candidate, (key, price) = self._pool[index], self._headings[index]
        scores, seen, alone = self._scores, self._seen, self._lone
        opening = 0 if key in self._opened else price
        if self._is_lone[index]:
            name = candidate.line.text
            gain = 0.0 if name in seen or name in alone else _NAME_SHARE * scores[name]
            return gain / (len(name) + _SEPARATOR_CHARS + opening)
        new = [name for name in self._names[index] if name not in seen]
        gain = sum([scores[name] * (1 - _NAME_SHARE if name in alone else 1) for name in new]) if new else 0.0
        reuse = candidate.reuse_score if at_most else candidate.reuse_score * self._unseen_share(index)
        score = candidate.own_score + reuse + candidate.name_share * gain
        return score / (len(candidate.line.text) + _LINE_OVERHEAD + opening)

    def _unseen_share(self, index: int) -> float:
        shingles = self._shingles.get(index)
        if shingles is None:
            shingles = self._shingles[index] = find_shingles(self._pool[index].line.text)
        return unseen_share(shingles, self._shown)
