"""Cost of a session's calls, as logged and as simulated with other compactions.

A session is replayed call by call with the provider's own figures: each prompt is the previous one plus the messages
that really followed. The cache content is known too: all of the last prompt, except where the log shows that it
expired. A compaction calls a model once and leaves as much as the tool's own compactions did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

import msgspec

from holdfast.context import Checkpoint, HeadMessage, Request, View
from holdfast.context.events import Event, EventKind
from holdfast.lab.trial import reply_positions
from holdfast.messages import Message, Text, decode_all
from holdfast.tokens import Tokenizer, Usage
from holdfast.tokens.catalog import CATALOG, price_of, prices_of
from holdfast.transcripts import Transcript, read_transcript
from holdfast.triggers.cost import KEPT_TOKENS, SUMMARY_TOKENS

WINDOWS = {"claude-code": 200_000, "codex": 258_400}
"""Windows these tools used when the sessions were recorded."""
CACHE_KEPT_SHARE = 0.9
"""A call that read less than this share of the common prompt found the cache expired."""


class Call(msgspec.Struct, frozen=True):
    """One model call as billed."""

    usage: Usage
    after_compaction: bool = False
    """The tool compacted right before this call."""

    @property
    def prompt(self) -> int:
        return self.usage.total - self.usage.output


class CompactionEffect(msgspec.Struct, frozen=True):
    """Size after a compaction, its cached part, and the length of the summary."""

    after: int
    cached: int
    summary: int = SUMMARY_TOKENS


class BilledSession(msgspec.Struct, frozen=True):
    kind: str
    model: str
    window: int
    calls: tuple[Call, ...]

    @property
    def growth(self) -> list[int]:
        return [b.prompt - a.prompt for a, b in pairwise(self.calls) if not b.after_compaction]

    def split(self, prompt: int, cached: int, reply: int) -> Usage:
        return _split(self.model, prompt, cached, reply)


class Bill(msgspec.Struct, frozen=True):
    calls: float
    summaries: float
    compactions: int

    @property
    def total(self) -> float:
        return self.calls + self.summaries


CompactDecision = Callable[[Request, Call], bool]


def logged_cost(session: BilledSession) -> float:
    """Cost in USD by the provider's own counts."""
    return _price(session, [call.usage for call in session.calls])


def simulate(
    session: BilledSession, should_compact: CompactDecision, effect: CompactionEffect, *, pauses: bool = True
) -> Bill:
    """Replays the session with the given compaction policy; without pauses, the cache never expires."""
    usual = round(median(session.growth or [0]))
    view = _new_view(effect.cached, session.calls[0].prompt - effect.cached)
    last, made, summaries = 0, [], []
    for number, call in enumerate(session.calls):
        before = session.calls[number - 1]
        if number:
            grown = usual if call.after_compaction else call.prompt - before.prompt
            _add(view, number, max(grown, effect.cached - view.tokens))
        size, read = view.tokens, call.usage.cache_read
        lost = not number or (
            pauses and not call.after_compaction and read < CACHE_KEPT_SHARE * min(before.prompt, call.prompt)
        )
        cached = min(read if lost else last, size)
        if number and should_compact(Request(view), call):
            summaries.append(session.split(size, cached, effect.summary))
            now = CompactionEffect(call.prompt, read) if call.after_compaction else effect
            size, cached = min(now.after, size), min(now.cached, now.after, size)
            view = _new_view(effect.cached, size - effect.cached, number)
        made.append(session.split(size, cached, call.usage.output))
        last = size
    return Bill(_price(session, made), _price(session, summaries), len(summaries))


def _split(model: str, prompt: int, cached: int, reply: int) -> Usage:
    """Splits a prompt for billing: new input counts as cache writes if those have a price."""
    prices = prices_of(model)
    if prices is None or prices.cache_write is None:
        return Usage(prompt - cached, reply, cached)
    return Usage(0, reply, cached, prompt - cached)


def _price(session: BilledSession, usages: list[Usage]) -> float:
    return sum(price for usage in usages if (price := price_of(usage, session.model)) is not None)


# -- a view whose messages state their own size --------------------------------------------------------


class _LiteralEstimator:
    name = "literal"

    def measure(self, message: Message) -> int:
        return self.measure_text(message.text)

    def measure_text(self, text: str) -> int:
        return int(text)

    def tokens(self, units: int) -> int:
        return units


def _new_view(fixed: int, rest: int, number: int = 0) -> View:
    view = View(_LiteralEstimator(), prompt_overhead=[str(fixed)])
    checkpoint = Checkpoint(tokens_after=fixed + rest) if number else Checkpoint()
    view.start_from(
        f"c{number}" if number else None, checkpoint, [HeadMessage("note", Message("user", (Text(str(rest)),)))]
    )
    return view


def _add(view: View, number: int, tokens: int) -> None:
    for role, size in (("assistant", 0), ("user", tokens)):
        body = {"message": {"role": role, "content": str(size)}}
        view.append(Event(f"{role}{number}", EventKind.MESSAGE, "", body, seq=number))


# -- reading -----------------------------------------------------------------------------------------


def sessions(files: list[Path]) -> Iterator[BilledSession]:
    """Sessions whose model has known prices."""
    for file in files:
        transcript = read_transcript(file)
        model = transcript.model or ""
        calls = tuple(_calls(transcript, model))
        if len(calls) > 1 and all(price_of(call.usage, model) is not None for call in calls):
            window = CATALOG.window(model)
            yield BilledSession(transcript.kind, model, min(window, WINDOWS.get(transcript.kind, window)), calls)


def _calls(transcript: Transcript, model: str) -> Iterator[Call]:
    """Calls as logged; without logged usage, as counted by the tokenizer with a cache that never expires."""
    messages, _ = decode_all(transcript.messages, transcript.format)
    tokenizer = Tokenizer()
    starts = [compaction.after for compaction in transcript.compactions]
    for place, entry in enumerate(transcript.entries):
        if (used := entry.usage) is not None:
            after_compaction = bool(starts) and starts[0] <= place
            starts = [start for start in starts if start > place]
            counted = tokenizer.measure(messages[place])  # some logs hold only the first count of a streamed reply
            yield Call(
                Usage(used.input, max(used.output, counted), used.cache_read, used.cache_write), after_compaction
            )
    if not any(entry.usage for entry in transcript.entries):
        sums = [0]
        for message in messages:
            sums.append(sums[-1] + tokenizer.measure(message))
        for last, place in pairwise([0, *reply_positions(messages)]):
            yield Call(_split(model, sums[place], sums[last], tokenizer.measure(messages[place])))


def typical_effect(found: list[BilledSession]) -> CompactionEffect | None:
    """Median effect of the tool's own compactions."""
    after_compaction = [call for session in found for call in session.calls if call.after_compaction]
    if not after_compaction:
        return None
    return CompactionEffect(
        round(median(c.prompt for c in after_compaction)), round(median(c.usage.cache_read for c in after_compaction))
    )


def expected_effect(session: BilledSession, others: list[BilledSession]) -> CompactionEffect:
    """Effect of a compaction: this session's own median, else its kind's, else the default."""
    known = typical_effect([session]) or typical_effect([other for other in others if other.kind == session.kind])
    fixed = session.calls[0].prompt
    return known or CompactionEffect(fixed + SUMMARY_TOKENS + KEPT_TOKENS, fixed)
