"""Truncation: drops the oldest turns and leaves a note of what was dropped. Needs no model."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ..context import Plan, Request, Skip
from ..errors import Outcome
from ..messages import Message, framed_message, is_framed, user_topics
from ..models.calls import Steps
from ..tokens.budget import require_positive
from .base import BaseStrategy, run_strategy
from .windows import KEEP_TOKENS, archive_before, snap_to_turn

if TYPE_CHECKING:
    from ..types import Strategy

_NOTE = re.compile(r"(?:^|\n\n)\[Earlier conversation left out: ([\d,]+) messages(?: in ([\d,]+) rounds)?")
_MAX_ATTEMPTS = 4


class Truncate(BaseStrategy):
    """Keeps the newest whole turns, up to `keep_tokens`, behind a note of what was dropped."""

    writes_notes = True

    def __init__(self, keep_tokens: int = KEEP_TOKENS, max_tokens: int | None = None) -> None:
        require_positive("keep_tokens", keep_tokens)
        if max_tokens is not None:
            require_positive("max_tokens", max_tokens)
        self.keep_tokens = keep_tokens
        self.max_tokens = max_tokens

    @property
    def target(self) -> int | None:
        return self.max_tokens

    def __call__(self, request: Request) -> Plan | Skip:
        view, sums = request.view, request.view.token_sums
        limit = request.reachable(self.max_tokens) if self.max_tokens else request.target
        measure = sums.estimator.measure
        earlier = request.notes
        replaced = sum(map(measure, filter(is_truncation_note, earlier)))

        def allowed(cut: int, note: int) -> bool:
            return limit is None or request.plan.tokens_after_cut(cut, note) <= limit

        def fits(cut: int, note: int) -> bool:
            return sums.estimator.tokens(sums.cumulative[-1] - sums.cumulative[cut]) <= self.keep_tokens and allowed(
                cut, note
            )

        def cut_for(note: int) -> int:
            raw = bisect_left(range(len(view.messages) + 1), True, key=lambda cut: fits(cut, note))
            return snap_to_turn(request, raw, lambda cut: fits(cut, note))

        if fits(0, 0):
            return Skip(Outcome.NOTHING_TO_COMPACT, "the whole context fits")
        room = measure(truncation_note(request, len(view.messages), earlier)) - replaced
        for _ in range(_MAX_ATTEMPTS):
            cut = cut_for(room)
            note = truncation_note(request, cut, earlier)
            size = measure(note) - replaced
            plan = archive_before(request, cut, "truncation")
            if isinstance(plan, Plan) and allowed(cut, size) and size < sums.cumulative[cut]:
                live = {id(view.messages[index]) for index in view.synthetic if index >= cut}
                others = tuple(m for m in earlier if id(m) not in live and not is_truncation_note(m))
                return plan.show((*others, note))
            room = max(size, room + 1)
        return archive_before(request, cut_for(0), "truncation")


class TruncateAsSummary(BaseStrategy):
    """Drops what `keep` archives behind a note in the place of a summary; whole turns if that is not enough."""

    def __init__(self, keep: Strategy, shown_as: Callable[[str], tuple[Message, ...]], max_tokens: int | None) -> None:
        self.keep, self.shown_as, self.max_tokens = keep, shown_as, max_tokens

    def __call__(self, request: Request) -> Steps[Plan | Skip]:
        plan = yield from run_strategy(self.keep, request)
        limit = self.max_tokens or request.target
        if isinstance(plan, Plan):
            earlier = request.notes
            others = (message for message in earlier if not is_truncation_note(message))
            text = truncation_text(request, plan.cut - request.plan.cut, earlier)
            plan = plan.show((*others, *self.shown_as(text))).made_by("truncation", after=request.plan)
            after = request.at(plan).tokens
            if after < request.tokens and (limit is None or after <= limit):
                return plan
        return Truncate(max_tokens=self.max_tokens)(request)


def truncation_note(request: Request, cut: int, earlier: Sequence[Message]) -> Message:
    return framed_message(truncation_text(request, cut, earlier))


def truncation_text(request: Request, cut: int, earlier: Sequence[Message]) -> str:
    """Returns a note with the number of dropped messages by role, and the topics of the user's messages."""
    view = request.view
    stays = {*request.plan.kept_before(cut), *view.fillers}
    dropped = [m for place, m in enumerate(view.messages[:cut]) if m.role != "system" and place not in stays]
    if view.split_turn is not None and not request.plan.stays_in_head(view.split_turn, cut):
        dropped.insert(0, view.split_turn.message)
    carry = view.checkpoint.carry
    count, topics, rounds = carry.archived, carry.topics, carry.round + 1
    kinds = Counter(message.role for message in dropped)
    parts = ", ".join(f"{kinds[role]:,} {role}" for role in ("user", "assistant", "tool") if kinds[role])
    text = f"[Earlier conversation left out: {len(dropped) + count:,} messages"
    text += f" in {rounds:,} rounds" if rounds > 1 else ""
    text += f" (the last {len(dropped):,}: {parts})" if count else f" ({parts})"
    if about := user_topics(dropped, topics):
        text += " about:\n" + "\n".join(f"- {topic}" for topic in about) + "\n"
    return text + "]"


class TruncationNote(msgspec.Struct, frozen=True):
    """What a note says of the dropped messages: how many, in how many rounds, and about what."""

    count: int
    rounds: int
    topics: tuple[str, ...]


def parse_truncation_note(message: Message) -> TruncationNote | None:
    """Returns what an earlier note says, for rounds without a checkpoint."""
    if not is_truncation_note(message) or not (found := _NOTE.search(message.text)):
        return None
    topics = tuple(line[2:] for line in message.text.splitlines() if line.startswith("- "))
    return TruncationNote(int(found[1].replace(",", "")), int((found[2] or "1").replace(",", "")), topics)


def is_truncation_note(message: Message) -> bool:
    return is_framed(message) and _NOTE.search(message.text) is not None
