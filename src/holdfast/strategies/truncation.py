"""Truncation: drop the oldest turns and say what went (G6). The way out that needs no model."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from ..budget import positive
from ..messages import Message, framed, is_framed
from ..types import Outcome
from ..view import Plan, Request, Skip
from .settle import archive_before, settle

KEEP_TOKENS = 20_000
_OPENING = "[Earlier conversation left out:"
_TOPICS, _TOPIC_LENGTH = 5, 80


class Truncate:
    """Keep the newest whole turns, at most so many tokens of them, behind a note of what is missing."""

    def __init__(self, keep_tokens: int = KEEP_TOKENS, max_tokens: int | None = None) -> None:
        positive("keep_tokens", keep_tokens)
        if max_tokens is not None:
            positive("max_tokens", max_tokens)
        self.keep_tokens = keep_tokens
        self.max_tokens = max_tokens

    @property
    def target(self) -> int | None:
        return self.max_tokens

    def __call__(self, request: Request) -> Plan | Skip:
        view, gauge = request.view, request.view.gauge
        limit = self.max_tokens or request.target
        usual = gauge.estimator.measure(note_of(request, len(view.messages)))

        def fits(cut: int, note: int = usual) -> bool:
            verbatim = gauge.estimator.tokens(gauge.sums[-1] - gauge.sums[cut])
            return verbatim <= self.keep_tokens and (limit is None or request.cost(cut, note) <= limit)

        if fits(0, 0):
            return Skip(Outcome.NOTHING_TO_COMPACT, "all of it is to be kept")
        raw = bisect_left(range(len(view.messages) + 1), True, key=fits)
        cut = settle(request, raw, fits)
        plan = archive_before(request, cut, "truncation")
        note = note_of(request, cut)
        size = gauge.estimator.measure(note)
        if isinstance(plan, Skip) or not fits(cut, size) or size >= gauge.sums[cut]:
            return plan
        earlier = [shown.message for shown in view.head if shown.kind == "note"]
        earlier += [view.messages[index] for index in view.synthetic if index < cut]
        kept = tuple(message for message in earlier if not is_truncation_note(message))
        return Plan(cut, notes=(*kept, note), by=plan.by)


def note_of(request: Request, cut: int) -> Message:
    """How many messages went, of which kinds, and what the user asked about in them."""
    gone = [m for index, m in enumerate(request.messages[:cut]) if m.role != "system"]
    carried = request.view.checkpoint.carry
    kinds = Counter(message.role for message in gone)
    parts = ", ".join(f"{kinds[role]} {role}" for role in ("user", "assistant", "tool") if kinds[role])
    said = f"{_OPENING} {len(gone) + carried.archived} messages ({parts})"
    if asked := topics(gone, carried.topics):
        said += " about:\n" + "\n".join(f"- {topic}" for topic in asked) + "\n"
    return framed(said + "]")


def topics(gone: Sequence[Message], carried: Sequence[str] = ()) -> list[str]:
    """The first words of the user's messages: the first of them, and the newest."""
    asked = [*carried, *(_first_words(m) for m in gone if m.role == "user" and m.text and not is_framed(m))]
    return asked if len(asked) <= _TOPICS else [asked[0], *asked[-_TOPICS + 1 :]]


def _first_words(message: Message) -> str:
    words = " ".join(message.text.split())
    return words if len(words) <= _TOPIC_LENGTH else words[: _TOPIC_LENGTH - 1].rstrip() + "…"


def is_truncation_note(message: Message) -> bool:
    return is_framed(message) and message.text.startswith(_OPENING)
