"""Windows: keep the newest part, verbatim, counted in events, turns or tokens (S8-S10, S14)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from ..budget import positive
from ..outcome import Outcome
from ..tokens import Estimator, estimator_for
from ..view import Plan, Request, Skip
from .settle import archive_before, settle

AnyEstimator = Estimator | Callable[[str], int] | str | None


class SlidingWindow:
    """S8: keep the last N real events; notes and summaries survive, come first and do not count."""

    def __init__(self, max_events: int = 20, estimator: AnyEstimator = None) -> None:
        positive("max_events", max_events)
        self.max_events = max_events
        self.estimator = None if estimator is None else estimator_for(estimator)

    def __call__(self, request: Request) -> Plan | Skip:
        view = request.view
        if view.event_count <= self.max_events:
            return Skip(Outcome.NOTHING_TO_COMPACT, f"at most {self.max_events} events are visible")

        def fits(cut: int) -> bool:
            return view.events_from(cut) + (request.newest_turn(cut) is not None) <= self.max_events

        places = range(view.leading, len(view.messages) + 1)
        raw = places[bisect_left(places, True, key=lambda cut: view.events_from(cut) <= self.max_events)]
        return archive_before(request, settle(request, raw, fits), "sliding window")


class TurnWindow:
    """S9: keep the last N whole turns; what came before the first user message survives."""

    def __init__(self, max_turns: int = 10, estimator: AnyEstimator = None) -> None:
        positive("max_turns", max_turns)
        self.max_turns = max_turns
        self.estimator = None if estimator is None else estimator_for(estimator)

    def __call__(self, request: Request) -> Plan | Skip:
        view = request.view
        if view.turn_count <= self.max_turns:
            return Skip(Outcome.NOTHING_TO_COMPACT, f"at most {self.max_turns} turns are visible")
        preamble = () if view.split_turn or view.checkpoint_id else tuple(range(view.leading, view.turns[0]))
        return archive_before(request, view.turns[-self.max_turns], "turn window", preamble)


class TokenWindow:
    """S10: keep the longest run of newest events that fits, from a user message on."""

    def __init__(self, max_tokens: int = 4_000, estimator: AnyEstimator = None) -> None:
        positive("max_tokens", max_tokens)
        self.max_tokens = max_tokens
        self.estimator = None if estimator is None else estimator_for(estimator)

    @property
    def target(self) -> int | None:
        """The limit, where it is counted as the session counts."""
        return self.max_tokens if self.estimator is None else None

    def __call__(self, request: Request) -> Plan | Skip:
        gauge = request.view.gauge_for(self.estimator)

        def fits(cut: int) -> bool:
            return request.cost(cut, gauge=gauge) <= self.max_tokens

        if fits(0):
            return Skip(Outcome.NOTHING_TO_COMPACT, f"all of it fits {self.max_tokens} tokens")
        raw = bisect_left(range(len(request.messages) + 1), True, key=fits)
        return archive_before(request, settle(request, raw, fits), "token window")
