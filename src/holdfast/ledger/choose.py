"""Choosing lines within a budget: the greatest worth for the room there is.

A line is worth the names it adds to what is already there, and the chance that it is edited as it stands.
A name whose lines are too long can be told alone, for a part of its worth: it can at least be looked for.
The greedy choice by worth per character is the usual near-optimal answer to such covering problems; gains
only shrink as lines are chosen, so most of them need never be worked out again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import heapify, heappop, heappush, nlargest

import msgspec

from .lines import Line, is_wrapping
from .names import Named, stands_alone

EDITED = 0.26
"""What all the lines that will be edited count for, beside all the names that will be needed."""
SHORTEST = 10
"""Lines of fewer characters say too little to be shown."""
_EACH = 8
"""Characters that one more line costs a reader, beside its own."""
_PART = 0.5
"""A part of an over-long line gives its names with half of what they stood in."""
_ALONE = 0.5
"""What a name gives without its line."""
_SEPARATED = 2
"""Characters between two names."""
_NAMES = 1_000
"""Of the names that are worth most, so many may be told alone."""
_REFUSED = 20
"""Lines that may be too long for the rest of the room before no more are tried."""


class Candidate(msgspec.Struct, gc=False):
    """A line or a single name that may be chosen, with its worth while nothing is."""

    line: Line
    own: float
    """Worth that does not depend on the other lines."""
    share: float
    """How much of its names' worth it gives."""
    density: float


def candidates(
    lines: Iterable[Line], named: Named, worth: dict[str, float], edited: dict[str, float]
) -> list[Candidate]:
    """The lines that are worth most for their length: where many may be edited, each of them counts for less."""
    found, newest = [], dict[str, Line]()
    best = set(nlargest(_NAMES, worth, key=worth.__getitem__))
    an_edit = EDITED * sum(worth.values()) / max(1.0, sum(edited.values()))
    for line in lines:
        text = line.text
        if (len(text) < SHORTEST and line.voice != "name") or is_wrapping(text):
            continue
        names = named(text)
        if line.voice not in ("said", "user", "asked") and not best.isdisjoint(names):
            newest.update(dict.fromkeys(filter(best.__contains__, names), line))
        if line.voice == "name":
            continue
        own = an_edit * edited.get(text, 0.0)
        share = 1.0 if line.whole else _PART
        gain = own + share * sum(filter(None, map(worth.get, names)))
        if gain > 0:
            found.append(Candidate(line, own, share, gain / (len(text) + _EACH)))
    found += _alone(newest, worth)
    return sorted(found, key=lambda candidate: -candidate.density)


def _alone(newest: dict[str, Line], worth: dict[str, float]) -> Iterator[Candidate]:
    """Names that say something by themselves, each under what it was last met in."""
    for name, line in newest.items():
        if stands_alone(name, line.text):
            alone = Line(name, "name", line.source, line.place, line.number, line.time)
            yield Candidate(alone, 0.0, _ALONE, _ALONE * worth[name] / (len(name) + _SEPARATED))


class Choice:
    """Lines in the order in which they are worth their room, worked out as far as somebody has room.

    With less room, fewer of the same lines are chosen: whoever guessed the room wrongly need not begin again.
    """

    def __init__(
        self,
        among: Iterable[Candidate],
        named: Named,
        worth: dict[str, float],
        *,
        covered: Collection[str],
        heading: Callable[[Line], tuple[str, int]],
        opened: Collection[str] = (),
    ) -> None:
        self._pool = list(among)
        self._worth = worth
        self._seen, self._opened = set(covered), set(opened)
        self._is_alone = [candidate.line.voice == "name" for candidate in self._pool]
        self._names = [
            (one.line.text,) if alone else tuple(dict.fromkeys(filter(worth.__contains__, named(one.line.text))))
            for one, alone in zip(self._pool, self._is_alone, strict=True)
        ]
        self._alone: dict[str, int] = {}
        """Names that were chosen without a line."""
        self._headings = [heading(candidate.line) for candidate in self._pool]
        self._under: dict[str, list[int]] = {}
        for index, (key, _) in enumerate(self._headings):
            self._under.setdefault(key, []).append(index)
        self._heap = [(-self._density(index), index) for index in range(len(self._pool))]
        heapify(self._heap)
        self._order: dict[int, int] = {}
        """The chosen, and what each costs with the heading it is first to need."""

    def within(self, room: int) -> list[Line]:
        """As much worth as fits into so many characters; no name alone that stands on a line after all."""
        taken, left, refused = set[int](), room, 0
        for index, cost in self._all():
            if cost > left:
                refused += 1
            else:
                taken.add(index)
                left -= cost
                if not self._is_alone[index]:
                    told = {self._alone[name] for name in self._names[index] if name in self._alone} & taken
                    left += sum(len(self._pool[other].line.text) + _SEPARATED for other in told)
                    taken -= told
            if left <= SHORTEST or refused > _REFUSED:
                break
        return [self._pool[index].line for index in sorted(taken)]

    def _all(self) -> Iterator[tuple[int, int]]:
        yield from tuple(self._order.items())
        while (index := self._next()) is not None:
            yield index, self._order[index]

    def _next(self) -> int | None:
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
                self._take(index)
                return index
        return None

    def _take(self, index: int) -> None:
        candidate, (key, price) = self._pool[index], self._headings[index]
        alone = self._is_alone[index]
        self._order[index] = (
            len(candidate.line.text) + (_SEPARATED if alone else 1) + (0 if key in self._opened else price)
        )
        if alone:
            self._alone[candidate.line.text] = index
        else:
            self._seen.update(self._names[index])
        if key not in self._opened:
            self._opened.add(key)
            for other in self._under[key]:
                if other not in self._order:
                    heappush(self._heap, (-self._density(other), other))

    def _density(self, index: int) -> float:
        candidate, (key, price) = self._pool[index], self._headings[index]
        worth, seen, alone = self._worth, self._seen, self._alone
        opening = 0 if key in self._opened else price
        if self._is_alone[index]:
            name = candidate.line.text
            gain = 0.0 if name in seen or name in alone else _ALONE * worth[name]
            return gain / (len(name) + _SEPARATED + opening)
        new = [name for name in self._names[index] if name not in seen]
        gain = sum([worth[name] * (1 - _ALONE if name in alone else 1) for name in new]) if new else 0.0
        return (candidate.own + candidate.share * gain) / (len(candidate.line.text) + _EACH + opening)
