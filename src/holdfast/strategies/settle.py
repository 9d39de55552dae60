"""From where a window would like to start to where it may: never inside a turn, never empty.

A cut moves forward to a user message (S14, P4). Where the newest turn alone is too large, its user
message stays and is followed by as much of its end as fits, with tool pairs whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from ..boundaries import cut_at_or_after, cut_at_or_before, legal, unfinished
from ..outcome import Outcome
from ..view import Plan, Request, Skip


def settle(request: Request, raw: int, fits: Callable[[int], bool]) -> int:
    """The cut at a turn's start at or after `raw`; inside the newest turn where there is none."""
    view = request.view
    messages, end = view.messages, len(view.messages)
    if (turn := view.next_turn(raw)) is not None:
        return turn
    newest = view.turns[-1] if view.turns else None
    if newest is not None and newest == end - 1:
        return newest
    last = unfinished(messages)
    start = max(raw, view.leading if newest is None else newest + 1)
    cut = start + bisect_left(range(start, last + 1), True, key=fits) if start <= last else last
    cut = min(cut, last)
    if cut - 1 == newest and not legal(messages, cut):
        return newest  # it stays anyway, and so does what belongs to it
    cut = cut_at_or_after(messages, cut)
    if cut >= end and newest is None and view.split_turn is None:
        cut = cut_at_or_before(messages, end - 1)
    return cut


def archive_before(request: Request, cut: int, by: str, preamble: tuple[int, ...] = ()) -> Plan | Skip:
    """A plan for this cut, if it archives anything at all."""
    staying = {*request.staying(cut), *preamble}
    if cut <= 0 or all(index in staying for index in range(cut)):
        return Skip(Outcome.NOTHING_TO_COMPACT, "everything that is visible is to be kept")
    return Plan(cut, preamble=preamble, by=by)
