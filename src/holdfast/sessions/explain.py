"""Explains a compaction: what became of each event, by which rule, and why its page has its lines and not others.

The compaction is computed again from the log, with the parameters that its event records, and compared with what is
stored byte for byte. Nothing is written.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from .. import __version__
from ..compaction import CompactionRun, Cost, Decision, Policy, resolve
from ..compaction.driver import in_thread
from ..compaction.run import checkpoint_of
from ..context import SYNTHETIC_ID_SUFFIX, Checkpoint, CompactionParameters, HeadItem, View
from ..context.events import Event, EventKind, LaneTip
from ..context.references import reference
from ..errors import HoldfastError, InvalidInput, Outcome
from ..ledger import is_ledger_page
from ..messages import Drop, Edit, Message, ToolCall, is_framed, strip_frame
from ..messages.json_text import decodable
from ..strategies import KeepLedger
from ..strategies.ledger import ExplainedLedger
from ..strategies.parameters import build_fallback, build_strategy
from ..tokens import estimator_for
from ..tokens.window import Window
from ..triggers import always
from ..types import Strategy
from .commit import prepare_view
from .history import view_from
from .live import LiveSession
from .page_lines import PageExplanation, PageLine, explain_page, page_lines

Fate = Literal["kept", "shown", "edited", "archived", "replaced"]
"""`shown`: visible as something else, such as a quoted pin; `replaced`: an earlier note that the new one supersedes."""
_MAX_SEARCHED = 2_000
"""Newest messages whose calls are searched for the names of lines."""
_HEAD_RULES = {
    "system": "system messages stay",
    "pin": "it is pinned",
    "preamble": "the strategy keeps it before the cut",
    "turn": "the newest user message stays",
    "note": "a note that stays",
}


class EventFate(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a compaction did with one event that was visible before it."""

    seq: int
    id: str
    fate: Fate
    rule: str
    tokens: int
    """Its size before."""
    lines: int = 0
    """Lines of it on the page, or in its own shortened result."""


@decodable
class Explanation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a compaction kept what it kept."""

    compaction: str
    """Id of its event."""
    seq: int
    tokens_before: int
    tokens_after: int
    events: tuple[EventFate, ...]
    """Every event that was visible before, oldest first."""
    page: PageExplanation
    """The lines shown instead of archived events; scores only where they could be computed again."""
    agrees: bool | None = None
    """Whether the compaction computed again equals the stored one byte for byte; None if it cannot be computed."""
    why: str = ""
    """Why it does not agree or cannot be computed."""
    parameters: CompactionParameters | None = None
    """How it was made; None in logs of earlier versions."""


@decodable
class CompactionPreview(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a compaction would do; nothing was written."""

    outcome: Outcome
    tokens_before: int
    tokens_after: int
    why: str = ""
    strategy: str = ""
    fallback: str = ""
    kept: tuple[int, ...] = ()
    """Seqs of the events that would stay visible, edited ones included."""
    archived: tuple[int, ...] = ()
    lines: int = 0
    """Lines of the archived messages."""
    edited: tuple[int, ...] = ()
    page: str = ""
    """The notes that would be shown instead of archived events."""
    remarks: tuple[str, ...] = ()
    cost: Cost | None = None


class CompactionEstimate(msgspec.Struct, frozen=True):
    """The first figures of a compaction, from sizes alone: what it aims at, and what it can keep as it is."""

    tokens_before: int
    tokens_after: int
    """What it compacts down to."""
    kept: int
    """Newest messages that fit into that, if there were no notes."""
    archived: int


async def explain_compaction(live: LiveSession, event_id: str) -> Explanation:
    """`SessionService.explain` on an open session."""
    event = await live.event(event_id)
    if event.kind != EventKind.COMPACTION:
        raise InvalidInput(f"{reference(event)} is a {event.kind}, not a compaction: name a compaction event.")
    stored = msgspec.convert(event.body, Checkpoint)
    again = await _recompute(live, event, stored)
    lines = _with_calls(again.view, again.page.lines or tuple(_note_lines(stored)))
    page = msgspec.structs.replace(
        again.page, lines=lines, result_lines=_with_calls(again.view, again.page.result_lines)
    )
    return Explanation(
        event.id,
        event.seq,
        stored.tokens_before,
        stored.tokens_after,
        tuple(await _fates(live, again.view, stored, [*lines, *page.result_lines])),
        page,
        again.agrees,
        again.why,
        stored.parameters,
    )


async def preview_compaction(live: LiveSession, view: View, policy: Policy, window: Window | None) -> CompactionPreview:
    """Plans a compaction of a view without a model and returns what it would do."""
    run = CompactionRun(view, policy, window=window, session_id=live.id, model=live.record.model)
    view = prepare_view(run, view)
    decision = await in_thread(run.decide)
    plan = decision.plan
    seqs = [view.events[id].seq if id in view.events else 0 for id in view.ids]
    if plan is None:
        return CompactionPreview(
            decision.outcome, decision.tokens_before, decision.tokens_after, decision.why, kept=_distinct(seqs)
        )
    gone = set(plan.archived)
    notes = [shown.message for shown in plan.head if shown.kind == "note"]
    return CompactionPreview(
        decision.outcome,
        decision.tokens_before,
        decision.tokens_after,
        decision.why,
        plan.strategy,
        plan.fallback,
        _distinct(seq for index, seq in enumerate(seqs) if index not in gone),
        _distinct(seq for index, seq in enumerate(seqs) if index in gone and index not in plan.superseded),
        sum(_line_count(view.messages[index]) for index in gone - plan.superseded),
        _distinct(seqs[index] for index in sorted(plan.edited)),
        "\n\n".join(map(_note_text, notes)),
        decision.remarks,
        run.cost(decision),
    )


def estimate_compaction(view: View, seq: int, policy: Policy, window: Window | None) -> CompactionEstimate:
    """Estimates a compaction of the live messages up to a seq; takes no longer for many of them."""
    bounds, _ = policy.request(view, window)
    ends, newest = view.token_sums.cumulative, view.token_sums.cumulative[-1]
    count = bisect_right(view.ids, seq, key=lambda id: view.events[id].seq if id in view.events else 0)
    tokens, least = view.tokens_with(ends[count] - newest), view.tokens_with(-newest)
    target = bounds.target if bounds.target is not None and bounds.target < tokens else least + (tokens - least) // 2
    sizes = range(count)
    first = bisect_left(sizes, -target, key=lambda index: -view.tokens_with(ends[count] - ends[index] - newest))
    return CompactionEstimate(tokens, target, count - first, first)


def _line_count(message: Message) -> int:
    texts = (message.text, *(result.text for result in message.results))
    return sum(text.count("\n") + 1 for text in texts if text)


def _distinct(seqs: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(seq for seq in seqs if seq))


class _Recomputed(msgspec.Struct, frozen=True):
    """A compaction computed again, or why it cannot be."""

    view: View
    """What was visible before it."""
    agrees: bool | None
    why: str
    page: PageExplanation


async def _recompute(live: LiveSession, event: Event, stored: Checkpoint) -> _Recomputed:
    parameters = stored.parameters or CompactionParameters(seen=event.seq - 1)
    estimator = live.estimator
    try:
        if stored.carry.counter is not None and stored.carry.counter != estimator.name:
            estimator = estimator_for(stored.carry.counter)
        strategy, why = _strategy_of(stored)
    except (HoldfastError, TypeError) as problem:
        strategy, why = None, f"the strategy cannot be built again: {problem}"
    tip = live.tip(event.lane)
    start = await live.start_of(stored.previous)
    before = LaneTip(parameters.seen, stored.previous, start, tip.base, tip.base_epoch)
    view = await view_from(live, event.lane, before, estimator, calibrated=parameters.calibrated)
    if strategy is None:
        return _Recomputed(view, None, why, PageExplanation(()))
    if type(strategy) is KeepLedger:
        strategy = ExplainedLedger(strategy.max_tokens)
    policy = resolve(
        strategy=strategy,
        budget=parameters.budget,
        target=parameters.target,
        trigger=always,
        instructions=parameters.instructions,
        min_saving=0.0,
    )
    run = CompactionRun(view, policy, session_id=live.id, model=parameters.model)
    prepare_view(run, view)
    decision = await in_thread(run.decide)
    why = _difference(decision, stored)
    rendered = strategy.rendered if isinstance(strategy, ExplainedLedger) and not why else None
    return _Recomputed(view, not why, why, explain_page(*rendered) if rendered else PageExplanation(()))


def _strategy_of(stored: Checkpoint) -> tuple[Strategy | None, str]:
    """Returns the strategy that made a compaction; None and the reason if it cannot be run again."""
    parameters = stored.parameters
    if parameters is None:
        return None, "its parameters are not recorded: it was made by another tool or an earlier version of Holdfast"
    if stored.fallback:
        strategy = build_fallback(parameters.strategy, stored.fallback)
        return strategy, "" if strategy else f"the fallback {stored.fallback} cannot be run again"
    strategy = build_strategy(parameters.strategy)
    if strategy is None and parameters.summarizer is not None:
        return None, f"it was written by {parameters.summarizer}"
    kind = parameters.strategy.get("kind")
    return strategy, "" if strategy else f"{kind} is a strategy of the application"


def _difference(decision: Decision, stored: Checkpoint) -> str:
    """Returns how a compaction computed again differs from the stored one; empty if it does not."""
    assert stored.parameters is not None
    if decision.plan is None:
        difference = f"computed again, the outcome is {decision.outcome.value}: {decision.why}"
    else:
        again = checkpoint_of(decision.plan, decision.tokens_before, decision.tokens_after, None, previous=None)
        if _shown_bytes(again) == _shown_bytes(stored):
            return ""
        difference = "computed again, it shows something else"
    if stored.parameters.version != __version__:
        return f"{difference}; Holdfast {stored.parameters.version} made it"
    return f"{difference}; an event may have been redacted since"


def _shown_bytes(checkpoint: Checkpoint) -> bytes:
    """Returns all that a checkpoint shows, encoded."""
    return msgspec.json.encode((checkpoint.boundary, checkpoint.head, checkpoint.edits), order="sorted")


async def _fates(live: LiveSession, view: View, stored: Checkpoint, lines: Iterable[PageLine]) -> list[EventFate]:
    start = 0 if stored.boundary is None else (await live.event(stored.boundary)).seq
    head = {item.ref: item for item in stored.head if item.ref}
    kept_from = next((seq for id in view.ids if id in view.events and (seq := view.events[id].seq) > start), None)
    rule = "nothing after it is kept" if kept_from is None else f"it lies before {reference(kept_from)}, the cut"
    counts = Counter(source for line in lines for source in line.sources)
    notes, sums = {view.ids[index] for index in view.synthetic}, view.token_sums
    sizes = [(shown.source or "", size) for shown, size in zip(view.head, sums.head, strict=True)]
    sizes += [(id, sums.cumulative[at + 1] - sums.cumulative[at]) for at, id in enumerate(view.ids)]
    found = []
    for id, units in sizes:
        event = view.events.get(id)
        if event is None or id.endswith(SYNTHETIC_ID_SUFFIX):
            continue
        fate: tuple[Fate, str]
        if (item := head.get(id)) is not None:
            fate = ("kept", _HEAD_RULES[item.kind]) if item.message is None else ("shown", _shown_rule(item))
        elif event.seq > start:
            fate = _edited(stored.edits.get(id, ()), view.checkpoint.edits.get(id, ()))
        else:
            fate = ("replaced", "a newer note replaces it") if id in notes else ("archived", rule)
        tokens = sums.estimator.tokens(units)
        found.append(EventFate(event.seq, id, *fate, tokens, counts[event.seq]))
    return found


def _shown_rule(item: HeadItem) -> str:
    return f"{_HEAD_RULES[item.kind]}, without its middle" if item.kind == "turn" else _HEAD_RULES[item.kind]


def _edited(edits: tuple[Edit, ...], before: tuple[Edit, ...]) -> tuple[Fate, str]:
    new = [edit for edit in edits if edit not in before]
    if not new:
        return "kept", "it lies after the cut"
    if all(isinstance(edit, Drop) for edit in new):
        return "edited", "reasoning that would no longer verify was dropped"
    return "edited", "a long result or request was shortened"


def _note_lines(stored: Checkpoint) -> Iterator[PageLine]:
    """Yields the lines of the stored notes, with the sources that a page cites."""
    for item in stored.head:
        if item.kind == "note" and item.message is not None:
            writer = "" if is_ledger_page(item.message) else f"written by {_writer(stored)}"
            yield from page_lines(_note_text(item.message), writer)


def _with_calls(view: View, lines: tuple[PageLine, ...]) -> tuple[PageLine, ...]:
    """Adds to each line the newest other call that has its most needed name: what it is needed for."""
    wanted: dict[str, set[int]] = {}
    for line in lines:
        if line.names:
            wanted.setdefault(line.names[0], set()).update(line.sources)
    found: dict[str, tuple[int, str]] = {}
    newest = reversed(list(zip(view.ids, view.messages, strict=True))[-_MAX_SEARCHED:])
    for id, message in newest:
        for call in (part for part in message.parts if isinstance(part, ToolCall)):
            event, text = view.events.get(id), call.arguments_text
            for name in [name for name in wanted if name in text]:
                if event is not None and event.seq not in wanted[name]:
                    found[name] = event.seq, call.name
                    del wanted[name]
    return tuple(
        msgspec.structs.replace(line, named_in=found[line.names[0]])
        if line.names and line.names[0] in found and found[line.names[0]][0] not in line.sources
        else line
        for line in lines
    )


def _writer(stored: Checkpoint) -> str:
    named = stored.parameters and stored.parameters.summarizer
    return named or stored.strategy or "a model"


def _note_text(message: Message) -> str:
    return strip_frame(message) if is_framed(message) else message.text
