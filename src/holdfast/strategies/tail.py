"""Tails: what of the newest part stays: a number, a part, so many tokens, the user's words alone, or nothing."""

from __future__ import annotations

from bisect import bisect_left
from math import floor

import msgspec

from ..boundaries import cut_at_or_before, unfinished
from ..budget import positive
from ..errors import InvalidLimit
from ..outcome import Outcome
from ..view import Plan, Request, Skip
from .settle import archive_before, settle

KEEP_TOKENS = 20_000


class KeepLast:
    """L5: keep the last N messages, and more where a tool's result would lose its call."""

    def __init__(self, keep: int = 10) -> None:
        positive("keep", keep)
        self.keep = keep

    def __call__(self, request: Request) -> Plan | Skip:
        messages = request.messages
        if len(messages) + len(request.view.head) <= self.keep + 1:
            return Skip(Outcome.NOTHING_TO_COMPACT, f"there are at most {self.keep + 1} messages")
        return archive_before(request, cut_at_or_before(messages, max(0, len(messages) - self.keep)), "keep last")


class KeepFraction:
    """G4: keep the newest part of the messages, at least one; a parted pair moves into the kept part."""

    def __init__(self, part: float = 0.4) -> None:
        if isinstance(part, bool) or not isinstance(part, int | float) or not 0 < part < 1:
            raise InvalidLimit(f"The part to keep is between 0 and 1, not {part!r}.")
        self.part = part

    def __call__(self, request: Request) -> Plan | Skip:
        messages = request.messages
        keep = max(1, floor(self.part * len(messages)))
        return archive_before(request, cut_at_or_before(messages, len(messages) - keep), "keep fraction")


class KeepRecent:
    """P2: keep the newest tokens, from a user message on, and never more than the target leaves room for.

    With `fresh_only` nothing is kept that an earlier compaction kept already (P7).
    """

    def __init__(self, keep_tokens: int = KEEP_TOKENS, *, fresh_only: bool = False, leaves: float = 0.6) -> None:
        positive("keep_tokens", keep_tokens)
        self.keep_tokens = keep_tokens
        self.fresh_only = fresh_only
        self.leaves = leaves
        """What part of the room is not for them but for a summary."""

    def __call__(self, request: Request) -> Plan | Skip:
        view, gauge = request.view, request.view.gauge
        end, most = len(view.messages), self.keep_tokens
        if request.target is not None:
            most = min(most, max(0, int((request.target - request.cost(end)) * (1 - self.leaves))))

        def fits(cut: int) -> bool:
            return gauge.estimator.tokens(gauge.sums[-1] - gauge.sums[cut]) <= most

        first = view.settled if self.fresh_only else 0
        raw = max(first, bisect_left(range(end + 1), True, key=fits))
        return archive_before(request, settle(request, raw, fits), "keep recent")


class KeepNothing:
    """P20: all of it goes but the newest user message and a tool loop that is still running."""

    def __call__(self, request: Request) -> Plan | Skip:
        return archive_before(request, unfinished(request.messages), "keep nothing")


class KeepUserMessages:
    """P21: the newest messages of the user stay, up to so many tokens; the notes stand behind them."""

    def __init__(self, keep_tokens: int = KEEP_TOKENS) -> None:
        positive("keep_tokens", keep_tokens)
        self.keep_tokens = keep_tokens

    def __call__(self, request: Request) -> Plan | Skip:
        view, gauge = request.view, request.view.gauge
        cut = unfinished(view.messages)
        most = self.keep_tokens
        if request.target is not None:
            most = min(most, max(0, (request.target - request.cost(len(view.messages))) // 2))
        used, preamble = 0, []
        for index in reversed([turn for turn in view.turns if turn < cut]):
            used += gauge.sums[index + 1] - gauge.sums[index]
            if gauge.estimator.tokens(used) > most:
                break
            preamble.append(index)
        forgotten, kept_on = set(), set()
        for shown, size in reversed(list(zip(view.head, gauge.head, strict=True))):
            over = shown.kind == "turn" and not request.still_first(shown, cut)
            if shown.source and (over or shown.kind == "preamble"):
                used += size
                if gauge.estimator.tokens(used) > most:
                    forgotten.add(shown.source)
                elif over:
                    kept_on.add(shown.source)
        plan = archive_before(request, cut, "keep user messages", tuple(reversed(preamble)))
        if isinstance(plan, Skip):
            return plan
        return msgspec.structs.replace(
            plan, notes_last=True, forgotten=frozenset(forgotten), kept_on=frozenset(kept_on)
        )
