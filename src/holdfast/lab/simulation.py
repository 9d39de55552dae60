"""Simulates a session under a policy: number of compactions, tokens sent, names retained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from ..compaction import compact
from ..messages import Json, Message, decode_all, encode_all
from ..strategies import KeepLedger, Pipeline, PruneToolResults, TokenWindow, Truncate
from ..tokens import Estimator
from ..transcripts import Transcript
from .measures import score_context
from .needs import HORIZON, NeededItems, find_needed
from .trial import reply_positions

if TYPE_CHECKING:
    from ..types import Strategy

THRESHOLDS = (0.5, 0.7, 0.85, 0.95)
TARGETS = (0.25, 0.5)
STRATEGIES: dict[str, Callable[[int], Strategy]] = {
    "ledger": lambda target: KeepLedger(target),
    "window": lambda target: TokenWindow(target),
    "truncation": lambda target: Truncate(keep_tokens=target, max_tokens=target),
    "pruning": lambda target: Pipeline(
        PruneToolResults(protect=max(1, target // 2), minimum=0), Truncate(keep_tokens=target, max_tokens=target)
    ),
}


class SimulatedPolicy(msgspec.Struct, frozen=True, order=True):
    """A strategy with its threshold and target as fractions of the window."""

    strategy: str
    threshold: float
    target: float

    @property
    def description(self) -> str:
        return f"{self.strategy} at {self.threshold:.0%} down to {self.target:.0%}"


POLICIES = tuple(
    SimulatedPolicy(strategy, threshold, target)
    for strategy in STRATEGIES
    for threshold in THRESHOLDS
    for target in TARGETS
    if target < threshold
)


class SimulatedRun(msgspec.Struct, frozen=True):
    """Result of one session under one policy."""

    policy: SimulatedPolicy
    calls: int
    """Number of model calls."""
    compactions: int
    sent: int
    """Input tokens over the whole session."""
    cached: int
    """Part of them that is shared with the previous call."""
    kept: tuple[float, ...]
    """Share of needed names in context after each compaction that had any."""

    @property
    def uncached(self) -> int:
        return self.sent - self.cached


class Simulation:
    """A session's messages, with caches shared by all policies."""

    def __init__(self, transcript: Transcript, window: int, estimator: Estimator) -> None:
        summaries = {item.after for item in transcript.compactions if item.summary}
        decoded, self.format = decode_all(transcript.messages, transcript.format)
        self.messages = [message for place, message in enumerate(decoded) if place not in summaries]
        self.window = window
        self.estimator = estimator
        self.scale = _provider_scale(transcript, decoded, estimator)
        self._needs: dict[int, NeededItems] = {}

    @cached_property
    def _calls(self) -> list[int]:
        return reply_positions(self.messages)

    @cached_property
    def _sums(self) -> list[int]:
        sums = [0]
        for message in self.messages:
            sums.append(sums[-1] + self.estimator.measure(message))
        return sums

    @property
    def largest(self) -> int:
        """Tokens of the whole history, scaled to the provider's count."""
        return int(self.estimator.tokens(self._sums[-1]) * self.scale)

    def run(self, policy: SimulatedPolicy) -> SimulatedRun:
        """Replays all model calls, compacting whenever the context exceeds the threshold."""
        limit, target = int(self.window * policy.threshold), int(self.window * policy.target / self.scale)
        head: list[Json] = []
        checkpoint: Any = None
        start = shown = sent = cached = last = compactions = 0
        kept: list[float] = []
        for place in self._calls:
            size = self._size(shown, start, place)
            if size > limit:
                fresh = encode_all(self.messages[start:place], self.format)
                result = compact(
                    [*head, *fresh],
                    budget=target,
                    target=target,
                    strategy=STRATEGIES[policy.strategy](target),
                    estimator=self.estimator,
                    format=self.format,
                    previous=checkpoint,
                )
                head, checkpoint, start = list(result.messages), result.checkpoint, place
                context, _ = decode_all(head, self.format)
                shown = sum(map(self.estimator.measure, context))
                smaller = self._size(shown, start, place)
                if smaller < size:
                    compactions += 1
                    last = 0
                    if (found := self._kept(context, place)) is not None:
                        kept.append(found)
                size = smaller
            sent += size
            cached += min(last, size)
            last = size
        return SimulatedRun(policy, len(self._calls), compactions, sent, cached, tuple(kept))

    def _size(self, shown: int, start: int, place: int) -> int:
        return int(self.estimator.tokens(shown + self._sums[place] - self._sums[start]) * self.scale)

    def _kept(self, context: Sequence[Message], place: int) -> float | None:
        if place not in self._needs:
            self._needs[place] = find_needed(self.messages[:place], self.messages[place : place + 6 * HORIZON])
        return score_context(context, self._needs[place]).in_context


def _provider_scale(transcript: Transcript, messages: Sequence[Message], estimator: Estimator) -> float:
    """Provider tokens per estimated token, while the whole history was visible."""
    visible = transcript.compactions[0].after if transcript.compactions else len(messages)
    for place in range(min(visible, len(messages)) - 1, -1, -1):
        usage = transcript.entries[place].usage
        if usage is not None and usage.total:
            estimated = estimator.tokens(sum(map(estimator.measure, messages[: place + 1])))
            return max(0.5, min(4.0, usage.total / max(1, estimated)))
    return 1.0
