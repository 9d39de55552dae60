"""Truncation: drop the oldest turns and say what went (G6). The way out that needs no model."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from ..budget import positive
from ..messages import Message, framed, is_framed
from ..outcome import Outcome
from ..view import Plan, Request, Skip
from .settle import archive_before, settle

KEEP_TOKENS = 20_000
_NOTE = re.compile(r"\[Earlier conversation left out: ([\d,]+) messages")
_TOPICS, _TOPIC_LENGTH = 5, 80
_TRIES = 4


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
        measure = gauge.estimator.measure
        earlier = request.notes
        replaced = sum(map(measure, filter(is_truncation_note, earlier)))

        def allowed(cut: int, note: int) -> bool:
            return limit is None or request.cost(cut, note) <= limit

        def fits(cut: int, note: int) -> bool:
            return gauge.estimator.tokens(gauge.sums[-1] - gauge.sums[cut]) <= self.keep_tokens and allowed(cut, note)

        def cut_for(note: int) -> int:
            raw = bisect_left(range(len(view.messages) + 1), True, key=lambda cut: fits(cut, note))
            return settle(request, raw, lambda cut: fits(cut, note))

        if fits(0, 0):
            return Skip(Outcome.NOTHING_TO_COMPACT, "all of it is to be kept")
        room = measure(note_of(request, len(view.messages), earlier)) - replaced
        for _ in range(_TRIES):
            cut = cut_for(room)
            note = note_of(request, cut, earlier)
            size = measure(note) - replaced
            plan = archive_before(request, cut, "truncation")
            if isinstance(plan, Plan) and allowed(cut, size) and size < gauge.sums[cut]:
                others = tuple(message for message in earlier if not is_truncation_note(message))
                return Plan(cut, notes=(*others, note), by=plan.by)
            room = max(size, room + 1)
        return archive_before(request, cut_for(0), "truncation")


def note_of(request: Request, cut: int, earlier: Sequence[Message]) -> Message:
    """How many messages went, of which kinds, and what the user asked about in them."""
    view = request.view
    stays = {*request.staying(cut), *view.fillers}
    gone = [m for place, m in enumerate(view.messages[:cut]) if m.role != "system" and place not in stays]
    if view.split_turn is not None and not request.still_first(view.split_turn, cut):
        gone.insert(0, view.split_turn.message)
    count, asked = view.checkpoint.carry.archived, view.checkpoint.carry.topics
    if not count:
        count, asked = next((read for note in earlier if (read := _read_note(note))), (0, ()))
    kinds = Counter(message.role for message in gone)
    parts = ", ".join(f"{kinds[role]:,} {role}" for role in ("user", "assistant", "tool") if kinds[role])
    said = f"[Earlier conversation left out: {len(gone) + count:,} messages"
    said += f" (the last {len(gone):,}: {parts})" if count else f" ({parts})"
    if about := topics(gone, asked):
        said += " about:\n" + "\n".join(f"- {topic}" for topic in about) + "\n"
    return framed(said + "]")


def _read_note(message: Message) -> tuple[int, tuple[str, ...]] | None:
    """What an earlier note of ours said: without a checkpoint, it is all that is known."""
    if not is_truncation_note(message) or not (found := _NOTE.match(message.text)):
        return None
    lines = message.text.splitlines()
    return int(found[1].replace(",", "")), tuple(line[2:] for line in lines if line.startswith("- "))


def topics(gone: Sequence[Message], carried: Sequence[str] = ()) -> list[str]:
    """The first words of the user's messages: the first of them, and the newest."""
    asked = [*carried, *(_first_words(m) for m in gone if m.role == "user" and m.text and not is_framed(m))]
    return asked if len(asked) <= _TOPICS else [asked[0], *asked[-_TOPICS + 1 :]]


def _first_words(message: Message) -> str:
    words = " ".join(message.text.split())
    return words if len(words) <= _TOPIC_LENGTH else words[: _TOPIC_LENGTH - 1].rstrip() + "…"


def is_truncation_note(message: Message) -> bool:
    return is_framed(message) and _NOTE.match(message.text) is not None
