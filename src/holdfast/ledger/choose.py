"""Choosing lines within a budget: the greatest worth for the room there is.

A line is worth the names it adds to what is already there, and the chance that it is edited as it stands.
The greedy choice by worth per character is the usual near-optimal answer to such covering problems; gains
only shrink as lines are chosen, so most of them need never be worked out again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from heapq import heapify, heappop, heappush, nlargest

import msgspec

from .lines import Line
from .names import Named

EDITED = 0.35
"""What all the lines that will be edited count for, beside all the names that will be needed."""
SHORTEST = 10
"""Lines of fewer characters say too little to be shown."""
_EACH = 8
"""Characters that one more line costs a reader, beside its own."""
_PART = 0.5
"""A part of an over-long line gives its names with half of what they stood in."""
_CANDIDATES = 6_000


class Candidate(msgspec.Struct, gc=False):
    """A line that may be chosen, with its worth while nothing is."""

    line: Line
    names: tuple[str, ...]
    own: float
    """Worth that does not depend on the other lines."""
    share: float
    """How much of its names' worth it gives."""
    density: float


def candidates(
    lines: Iterable[Line], named: Named, worth: dict[str, float], edited: dict[str, float]
) -> list[Candidate]:
    """The lines that are worth most for their length: where many may be edited, each of them counts for less."""
    found = []
    an_edit = EDITED * sum(worth.values()) / max(1.0, sum(edited.values()))
    for line in lines:
        text = line.text
        if len(text) < SHORTEST:
            continue
        names = tuple(dict.fromkeys([name for name, _ in named(text) if name in worth]))
        own = an_edit * edited.get(text, 0.0)
        share = 1.0 if line.whole else _PART
        gain = own + share * sum([worth[name] for name in names])
        if gain > 0:
            found.append(Candidate(line, names, own, share, gain / (len(text) + _EACH)))
    return nlargest(_CANDIDATES, found, key=lambda candidate: candidate.density)


def choose(
    among: Iterable[Candidate],
    worth: dict[str, float],
    *,
    room: int,
    covered: Collection[str],
    heading: Callable[[Line], tuple[str, int]],
) -> list[Line]:
    """As much worth as fits into so many characters; a line pays for the heading it is first to need."""
    seen, opened = set(covered), set[str]()
    pool = list(among)
    by_heading: dict[str, list[int]] = {}
    keys: list[tuple[str, int]] = []
    for index, candidate in enumerate(pool):
        keys.append(heading(candidate.line))
        by_heading.setdefault(keys[index][0], []).append(index)

    def density(index: int) -> float:
        candidate, (key, price) = pool[index], keys[index]
        gain = candidate.own + candidate.share * sum([worth[name] for name in candidate.names if name not in seen])
        return gain / (len(candidate.line.text) + _EACH + (0 if key in opened else price))

    heap = [(-density(index), index) for index in range(len(pool))]
    heapify(heap)
    taken: set[int] = set()
    while heap and room > SHORTEST:
        _, index = heappop(heap)
        if index in taken:
            continue
        now = density(index)
        if heap and now < -heap[0][0] - 1e-12:
            heappush(heap, (-now, index))
            continue
        key, price = keys[index]
        cost = len(pool[index].line.text) + 1 + (0 if key in opened else price)
        if now <= 0:
            break
        if cost > room:
            continue
        room -= cost
        taken.add(index)
        seen.update(pool[index].names)
        if key not in opened:
            opened.add(key)
            for other in by_heading[key]:
                if other not in taken:
                    heappush(heap, (-density(other), other))
    return [pool[index].line for index in sorted(taken)]
