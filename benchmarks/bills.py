"""What a session's calls cost, as logged and as they would have been with other compactions (H4).

A session is lived through call by call in the provider's own figures: each prompt is what it was before plus
what really came in between. What the cache held is known too: all of the last prompt, except where the log
shows that it was lost in a pause. A compaction asks a model once and leaves what the tool's own ones left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

import msgspec

from holdfast.catalog import CATALOG
from holdfast.catalog.prices import price_of, prices_of
from holdfast.events import Event, Kind
from holdfast.lab.rolling import places_to_ask
from holdfast.messages import Message, Text, decode_all
from holdfast.tokens import Tokenizer, Usage
from holdfast.transcripts import Transcript, read_transcript
from holdfast.triggers.cost import KEPT, SUMMARY_TOKENS
from holdfast.view import Checkpoint, Request, Shown, View

WINDOWS = {"claude-code": 200_000, "codex": 258_400}
"""What these tools gave their models when the sessions were made, whatever the models can."""
LOST = 0.9
"""A call that read less than this part of what it shares with the one before it found the cache lost."""


class Call(msgspec.Struct, frozen=True):
    """One call of the model, as it was billed."""

    usage: Usage
    afresh: bool = False
    """The tool compacted right before it."""

    @property
    def prompt(self) -> int:
        return self.usage.total - self.usage.output


class Compacted(msgspec.Struct, frozen=True):
    """What a compaction leaves, how much of that stays cached, and how long its summary is."""

    after: int
    stays: int
    summary: int = SUMMARY_TOKENS


class Session(msgspec.Struct, frozen=True):
    kind: str
    model: str
    window: int
    calls: tuple[Call, ...]

    @property
    def growth(self) -> list[int]:
        return [b.prompt - a.prompt for a, b in pairwise(self.calls) if not b.afresh]

    def split(self, prompt: int, cached: int, reply: int) -> Usage:
        return _split(self.model, prompt, cached, reply)


class Bill(msgspec.Struct, frozen=True):
    calls: float
    summaries: float
    compactions: int

    @property
    def total(self) -> float:
        return self.calls + self.summaries


Compacts = Callable[[Request, Call], bool]


def logged(session: Session) -> float:
    """USD by the provider's own counts."""
    return _price(session, [call.usage for call in session.calls])


def live(session: Session, compacts: Compacts, leaves: Compacted, *, pauses: bool = True) -> Bill:
    """The session with a compaction wherever this says so; without pauses, as if none had emptied the cache."""
    usual = round(median(session.growth or [0]))
    view = _begin(leaves.stays, session.calls[0].prompt - leaves.stays)
    last, made, summaries = 0, [], []
    for number, call in enumerate(session.calls):
        before = session.calls[number - 1]
        if number:
            grown = usual if call.afresh else call.prompt - before.prompt
            _add(view, number, max(grown, leaves.stays - view.tokens))
        size, read = view.tokens, call.usage.cache_read
        lost = not number or (pauses and not call.afresh and read < LOST * min(before.prompt, call.prompt))
        cached = min(read if lost else last, size)
        if number and compacts(Request(view), call):
            summaries.append(session.split(size, cached, leaves.summary))
            now = Compacted(call.prompt, read) if call.afresh else leaves
            size, cached = min(now.after, size), min(now.stays, now.after, size)
            view = _begin(leaves.stays, size - leaves.stays, number)
        made.append(session.split(size, cached, call.usage.output))
        last = size
    return Bill(_price(session, made), _price(session, summaries), len(summaries))


def _split(model: str, prompt: int, cached: int, reply: int) -> Usage:
    """A call as it is billed: new input is written to the cache where that has a price of its own."""
    prices = prices_of(model)
    if prices is None or prices.cache_write is None:
        return Usage(prompt - cached, reply, cached)
    return Usage(0, reply, cached, prompt - cached)


def _price(session: Session, usages: list[Usage]) -> float:
    return sum(price for usage in usages if (price := price_of(usage, session.model)) is not None)


# -- a view in which a message says how large it is --------------------------------------------------


class _Said:
    name = "as said"

    def measure(self, message: Message) -> int:
        return self.measure_text(message.text)

    def measure_text(self, text: str) -> int:
        return int(text)

    def tokens(self, units: int) -> int:
        return units


def _begin(fixed: int, rest: int, number: int = 0) -> View:
    view = View(_Said(), beside=[str(fixed)])
    checkpoint = Checkpoint(tokens_after=fixed + rest) if number else Checkpoint()
    view.begin(f"c{number}" if number else None, checkpoint, [Shown("note", Message("user", (Text(str(rest)),)))])
    return view


def _add(view: View, number: int, tokens: int) -> None:
    for role, size in (("assistant", 0), ("user", tokens)):
        body = {"message": {"role": role, "content": str(size)}}
        view.append(Event(f"{role}{number}", Kind.MESSAGE, "", body, seq=number))


# -- reading -----------------------------------------------------------------------------------------


def sessions(files: list[Path]) -> Iterator[Session]:
    """Those of a model whose prices are known."""
    for file in files:
        transcript = read_transcript(file)
        model = transcript.model or ""
        calls = tuple(_calls(transcript, model))
        if len(calls) > 1 and all(price_of(call.usage, model) is not None for call in calls):
            window = CATALOG.window(model)
            yield Session(transcript.kind, model, min(window, WINDOWS.get(transcript.kind, window)), calls)


def _calls(transcript: Transcript, model: str) -> Iterator[Call]:
    """As logged; of a log without usage, as the tokenizer counts and a cache that is never lost would give."""
    messages, _ = decode_all(transcript.messages, transcript.format)
    tokenizer = Tokenizer()
    starts = [compaction.after for compaction in transcript.compactions]
    for place, entry in enumerate(transcript.entries):
        if (used := entry.usage) is not None:
            afresh = bool(starts) and starts[0] <= place
            starts = [start for start in starts if start > place]
            said = tokenizer.measure(messages[place])  # some logs hold only the first count of a streamed reply
            yield Call(Usage(used.input, max(used.output, said), used.cache_read, used.cache_write), afresh)
    if not any(entry.usage for entry in transcript.entries):
        sums = [0]
        for message in messages:
            sums.append(sums[-1] + tokenizer.measure(message))
        for last, place in pairwise([0, *places_to_ask(messages)]):
            yield Call(_split(model, sums[place], sums[last], tokenizer.measure(messages[place])))


def usual(found: list[Session]) -> Compacted | None:
    """What the tool's own compactions left, in the middle of them."""
    afresh = [call for session in found for call in session.calls if call.afresh]
    if not afresh:
        return None
    return Compacted(round(median(c.prompt for c in afresh)), round(median(c.usage.cache_read for c in afresh)))


def leaves(session: Session, others: list[Session]) -> Compacted:
    """What a compaction of this session leaves: as its own did, or its kind's, or what stays by default."""
    known = usual([session]) or usual([other for other in others if other.kind == session.kind])
    fixed = session.calls[0].prompt
    return known or Compacted(fixed + SUMMARY_TOKENS + KEPT, fixed)
