"""One session lived through under one policy: how often it compacts, what it sends, and what it still knows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec

from ..compaction import compact
from ..messages import Json, Message, decode_all, encode_all
from ..tokens import Estimator
from ..transcripts import Transcript
from .measures import measure
from .needs import HORIZON, Needs, needs
from .policies import STRATEGIES, Policy
from .rolling import places_to_ask


class Run(msgspec.Struct, frozen=True):
    """What one session came to under one policy."""

    policy: Policy
    calls: int
    """Of the model."""
    compactions: int
    sent: int
    """Input tokens over the whole session."""
    cached: int
    """Of those, what every call shares with the one before it."""
    kept: tuple[float, ...]
    """Names in context, at each compaction where any were needed."""

    @property
    def uncached(self) -> int:
        return self.sent - self.cached


class Simulation:
    """A session's messages with what is worked out once for all policies."""

    def __init__(self, transcript: Transcript, window: int, estimator: Estimator) -> None:
        summaries = {item.after for item in transcript.compactions if item.summary}
        decoded, self.format = decode_all(transcript.messages, transcript.format)
        self.messages = [message for place, message in enumerate(decoded) if place not in summaries]
        self.window = window
        self.estimator = estimator
        self.scale = _scale(transcript, decoded, estimator)
        self._needs: dict[int, Needs] = {}

    @cached_property
    def _asked(self) -> list[int]:
        return places_to_ask(self.messages)

    @cached_property
    def _sums(self) -> list[int]:
        sums = [0]
        for message in self.messages:
            sums.append(sums[-1] + self.estimator.measure(message))
        return sums

    @property
    def largest(self) -> int:
        """Tokens of the whole history, as the provider would count them."""
        return int(self.estimator.tokens(self._sums[-1]) * self.scale)

    def run(self, policy: Policy) -> Run:
        """Before each call of the model the context is looked at, and compacted if it is over the threshold."""
        limit, target = int(self.window * policy.threshold), int(self.window * policy.target / self.scale)
        head: list[Json] = []
        checkpoint: Any = None
        start = shown = sent = cached = last = compactions = 0
        kept: list[float] = []
        for place in self._asked:
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
        return Run(policy, len(self._asked), compactions, sent, cached, tuple(kept))

    def _size(self, shown: int, start: int, place: int) -> int:
        return int(self.estimator.tokens(shown + self._sums[place] - self._sums[start]) * self.scale)

    def _kept(self, context: Sequence[Message], place: int) -> float | None:
        if place not in self._needs:
            self._needs[place] = needs(self.messages[:place], self.messages[place : place + 6 * HORIZON])
        return measure(context, self._needs[place]).in_context


def _scale(transcript: Transcript, messages: Sequence[Message], estimator: Estimator) -> float:
    """Tokens that the provider counted for one that is estimated, while the whole history was visible."""
    visible = transcript.compactions[0].after if transcript.compactions else len(messages)
    for place in range(min(visible, len(messages)) - 1, -1, -1):
        usage = transcript.entries[place].usage
        if usage is not None and usage.total:
            estimated = estimator.tokens(sum(map(estimator.measure, messages[: place + 1])))
            return max(0.5, min(4.0, usage.total / max(1, estimated)))
    return 1.0
