"""Keeps the newest part verbatim: by events, turns, tokens, fraction, or user messages only.

A cut moves forward to a user message. If the newest turn alone is too large, its user message stays, followed by as
much of the turn's end as fits, with tool pairs whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection
from math import floor

from ..context import Plan, Request, Skip
from ..errors import InvalidLimit, Outcome
from ..tokens import Estimator, estimator_for
from ..tokens.budget import require_positive
from .base import BaseStrategy


def snap_to_turn(request: Request, raw: int, fits: Callable[[int], bool]) -> int:
    """Returns the first start of a turn at or after `raw`; if there is none, a cut inside the newest turn."""
    view = request.view
    end = len(view.messages)
    if (turn := next(view.turns_from(raw), None)) is not None:
        return min(turn, request.plan.last_cut)
    newest = view.turns[-1] if view.turns else None
    if newest is not None and newest == end - 1:
        return newest
    links = view.links
    last = min(links.open_tool_loop_start, request.plan.last_cut)
    start = max(raw, view.leading_system_count if newest is None else newest + 1)
    cut = start + bisect_left(range(start, last + 1), True, key=fits) if start <= last else last
    cut = min(cut, last)
    if cut - 1 == newest and not links.is_legal_cut(cut):
        return newest  # its user message stays anyway, with what belongs to it
    cut = links.cut_at_or_after(cut)
    if cut >= end and newest is None and view.split_turn is None:
        cut = links.cut_at_or_before(end - 1)
    return cut


def archives_nothing(request: Request, cut: int, keep: Collection[int | str | None] = ()) -> Skip | None:
    """Returns a skip if everything before this cut is kept."""
    cut = min(cut, request.plan.last_cut)
    staying = {*request.plan.kept_before(cut), *keep}
    if cut <= 0 or all(index in staying for index in range(cut)):
        return Skip(Outcome.NOTHING_TO_COMPACT, "every visible message is kept")
    return None


def archive_before(request: Request, cut: int, strategy: str) -> Plan | Skip:
    """Returns a plan for this cut, or a skip if it archives nothing."""
    return archives_nothing(request, cut) or request.plan.archive(cut).made_by(strategy)


AnyEstimator = Estimator | Callable[[str], int] | str | None


def window_before(
    request: Request, cut: int, strategy: str, estimator: Estimator | None, keep: tuple[int, ...] = ()
) -> Plan | Skip:
    """Returns the plan of a window: synthetic events come first, and `estimator` counts the tokens saved."""
    if skip := archives_nothing(request, cut, keep):
        return skip
    return request.plan.archive(cut, keep, synthetic_first=True).made_by(strategy, estimator=estimator)


class SlidingWindow(BaseStrategy):
    """Keeps the last N events; notes and summaries are kept before them and do not count.

    `estimator` counts `tokens_saved` of the result; the window itself counts events.
    """

    def __init__(self, max_events: int = 20, estimator: AnyEstimator = None) -> None:
        require_positive("max_events", max_events)
        self.max_events = max_events
        self.estimator = None if estimator is None else estimator_for(estimator)

    def __call__(self, request: Request) -> Plan | Skip:
        view = request.view
        if view.event_count <= self.max_events:
            return Skip(Outcome.NOTHING_TO_COMPACT, f"at most {self.max_events} events are visible")

        def fits(cut: int) -> bool:
            return view.events_from(cut) + (request.plan.newest_turn(cut) is not None) <= self.max_events

        places = range(view.leading_system_count, len(view.messages) + 1)
        raw = places[bisect_left(places, True, key=lambda cut: view.events_from(cut) <= self.max_events)]
        return window_before(request, snap_to_turn(request, raw, fits), "sliding window", self.estimator)


class TurnWindow(BaseStrategy):
    """Keeps the last N whole turns, and messages before the first user message.

    `estimator` counts `tokens_saved` of the result; the window itself counts turns.
    """

    def __init__(self, max_turns: int = 10, estimator: AnyEstimator = None) -> None:
        require_positive("max_turns", max_turns)
        self.max_turns = max_turns
        self.estimator = None if estimator is None else estimator_for(estimator)

    def __call__(self, request: Request) -> Plan | Skip:
        view = request.view
        if view.turn_count <= self.max_turns:
            return Skip(Outcome.NOTHING_TO_COMPACT, f"at most {self.max_turns} turns are visible")
        opening = range(0) if view.split_turn or view.checkpoint_id else range(view.leading_system_count, view.turns[0])
        preamble = tuple(index for index in opening if index not in view.synthetic)
        cut = view.cut_before_turn(view.turns[-self.max_turns])
        return window_before(request, cut, "turn window", self.estimator, preamble)


class TokenWindow(BaseStrategy):
    """Keeps as many of the newest events as fit, starting at a user message."""

    def __init__(self, max_tokens: int = 4_000, estimator: AnyEstimator = None) -> None:
        require_positive("max_tokens", max_tokens)
        self.max_tokens = max_tokens
        self.estimator = None if estimator is None else estimator_for(estimator)

    @property
    def target(self) -> int | None:
        """The limit; None if it is measured by an estimator of its own."""
        return self.max_tokens if self.estimator is None else None

    def __call__(self, request: Request) -> Plan | Skip:
        sums = request.view.token_sums_for(self.estimator)

        def fits(cut: int) -> bool:
            return request.plan.tokens_after_cut(cut, sums=sums) <= self.max_tokens

        if fits(0):
            return Skip(Outcome.NOTHING_TO_COMPACT, f"the context fits {self.max_tokens} tokens")
        raw = bisect_left(range(len(request.messages) + 1), True, key=fits)
        return window_before(request, snap_to_turn(request, raw, fits), "token window", self.estimator)


KEEP_TOKENS = 20_000


class KeepLast(BaseStrategy):
    """Keeps the last N messages, and more if a tool result would lose its call."""

    def __init__(self, keep: int = 10) -> None:
        require_positive("keep", keep)
        self.keep = keep

    def __call__(self, request: Request) -> Plan | Skip:
        view, end = request.view, len(request.messages)
        if end + len(view.head) <= self.keep + 1:
            return Skip(Outcome.NOTHING_TO_COMPACT, f"there are at most {self.keep + 1} messages")
        return archive_before(request, view.links.cut_at_or_before(max(0, end - self.keep)), "keep last")


class KeepFraction(BaseStrategy):
    """Keeps the newest fraction of the messages, at least one; a split tool pair is kept whole."""

    def __init__(self, part: float = 0.4) -> None:
        if isinstance(part, bool) or not isinstance(part, int | float) or not 0 < part < 1:
            raise InvalidLimit(f"part must be a number between 0 and 1, not {part!r}.")
        self.part = part

    def __call__(self, request: Request) -> Plan | Skip:
        end = len(request.messages)
        keep = max(1, floor(self.part * end))
        return archive_before(request, request.view.links.cut_at_or_before(end - keep), "keep fraction")


class KeepRecent(BaseStrategy):
    """Keeps the newest tokens, starting at a user message, within the room that the target leaves.

    With `fresh_only`, messages that an earlier compaction kept are not kept again.
    """

    def __init__(self, keep_tokens: int = KEEP_TOKENS, *, fresh_only: bool = False, leaves: float = 0.6) -> None:
        require_positive("keep_tokens", keep_tokens)
        self.keep_tokens = keep_tokens
        self.fresh_only = fresh_only
        self.leaves = leaves
        """Share of the room that is reserved for a summary."""

    def __call__(self, request: Request) -> Plan | Skip:
        view, sums = request.view, request.view.token_sums
        end, most = len(view.messages), self.keep_tokens
        if request.target is not None:
            free = int((request.target - request.plan.tokens_after_cut(end)) * (1 - self.leaves))
            most = min(most, max(0, free) + request.plan.unread_tokens)

        def fits(cut: int) -> bool:
            return sums.estimator.tokens(sums.cumulative[-1] - sums.cumulative[cut]) <= most

        first = view.previously_kept if self.fresh_only else 0
        raw = max(first, bisect_left(range(end + 1), True, key=fits))
        return archive_before(request, snap_to_turn(request, raw, fits), "keep recent")


class KeepNothing(BaseStrategy):
    """Archives everything but the newest user message and an unfinished tool loop."""

    def __call__(self, request: Request) -> Plan | Skip:
        return archive_before(request, request.view.links.open_tool_loop_start, "keep nothing")


class KeepUserMessages(BaseStrategy):
    """Keeps the newest user messages up to a number of tokens; notes follow them."""

    def __init__(self, keep_tokens: int = KEEP_TOKENS) -> None:
        require_positive("keep_tokens", keep_tokens)
        self.keep_tokens = keep_tokens

    def __call__(self, request: Request) -> Plan | Skip:
        view, sums = request.view, request.view.token_sums
        cut = min(view.links.open_tool_loop_start, request.plan.last_cut)
        most = self.keep_tokens
        if request.target is not None:
            most = min(most, max(0, (request.target - request.plan.tokens_after_cut(len(view.messages))) // 2))
        used, preamble = 0, []
        for index in reversed([turn for turn in view.turns if turn < cut]):
            used += sums.cumulative[index + 1] - sums.cumulative[index]
            if sums.estimator.tokens(used) > most:
                break
            preamble.append(index)
        dropped, kept = set(), set()
        for shown, size in reversed(list(zip(view.head, sums.head, strict=True))):
            is_past_turn = shown.kind == "turn" and not request.plan.stays_in_head(shown, cut)
            if shown.source and (is_past_turn or (shown.kind == "preamble" and shown.source not in view.pins)):
                used += size
                if sums.estimator.tokens(used) > most:
                    dropped.add(shown.source)
                elif is_past_turn:
                    kept.add(shown.source)
        if skip := archives_nothing(request, cut, preamble):
            return skip
        plan = request.plan.drop(dropped).archive(cut, (*preamble, *kept), notes_last=True)
        return plan.made_by("keep user messages")
