"""The front door: `compact(messages, budget=…)`, and the same from async code."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from anyio import to_thread
from anyio.from_thread import start_blocking_portal

from ..boundaries import find_problems, repair
from ..budget import positive
from ..calls import Limits
from ..errors import InvalidLimit
from ..messages import COMMON, Json, Message, decode_all, encode_all, profile_for, to_json
from ..models import model_for, reads
from ..strategies import KeepLedger, StructuredSummary
from ..tokens import Estimator, estimator_for
from ..view import HeadItem, Request, Shown, View, combined, edited, runs_of
from .abort import Abort
from .asking import Asking, decide_asking
from .carry import next_carry, standing_summary
from .cost import Cost
from .decide import Decision, decide
from .driver import Notify
from .prefix import START, PrefixCheckpoint, PrefixIds, as_checkpoint, locate
from .result import CompactionResult
from .sides import sides_of

if TYPE_CHECKING:
    from ..types import Strategy, Trigger


def compact(
    messages: Iterable[Any],
    *,
    budget: int,
    target: int | None = None,
    system: Any = None,
    tools: Any = None,
    strategy: Strategy | None = None,
    summarizer: Any = None,
    instructions: str | None = None,
    estimator: Estimator | Callable[[str], int] | str | None = None,
    format: str | None = None,
    previous: Any = None,
    trigger: Trigger | None = None,
    min_saving: float | None = None,
    limits: Limits | None = None,
    notify: Notify | None = None,
    abort: Abort | None = None,
) -> CompactionResult:
    """Compact a list of messages that must not exceed `budget` tokens.

    Under the budget nothing happens. Over it, the context is brought down to `target` (half the budget
    by default), or to the limit of the strategy that is given. No model, no key and no network are
    needed; with a `summarizer` (`"anthropic:claude-…"`, a model object, a function from text to text) that
    model writes a summary, minding your `instructions`. `result.messages` is always what to send, in the
    format that came in.
    """
    asking = Asking(model_for(summarizer), limits, notify, abort)
    work = _Work(messages, budget, target, system, tools, instructions, estimator, format, previous, asking)
    chosen = strategy or default_strategy(work.target, asking.model is not None)
    saving = least_saving(chosen, min_saving)
    if asking.model is None:
        return work.result(decide(work.request, chosen, trigger, min_saving=saving))
    with start_blocking_portal() as portal:
        ask = partial(decide_asking, work.request, chosen, trigger, asking, min_saving=saving)
        return work.result(portal.call(ask))


async def acompact(
    messages: Iterable[Any],
    *,
    budget: int,
    target: int | None = None,
    system: Any = None,
    tools: Any = None,
    strategy: Strategy | None = None,
    summarizer: Any = None,
    instructions: str | None = None,
    estimator: Estimator | Callable[[str], int] | str | None = None,
    format: str | None = None,
    previous: Any = None,
    trigger: Trigger | None = None,
    min_saving: float | None = None,
    limits: Limits | None = None,
    notify: Notify | None = None,
    abort: Abort | None = None,
) -> CompactionResult:
    """`compact` for async code: the work is done in threads, so that the event loop stays free.

    Cancelling the task stops it at once, and nothing has changed.
    """
    taken, asking = list(messages), Asking(model_for(summarizer), limits, notify, abort)
    work = await to_thread.run_sync(
        lambda: _Work(taken, budget, target, system, tools, instructions, estimator, format, previous, asking)
    )
    chosen = strategy or default_strategy(work.target, asking.model is not None)
    saving = least_saving(chosen, min_saving)
    decision = await decide_asking(work.request, chosen, trigger, asking, min_saving=saving)
    return await to_thread.run_sync(work.result, decision)


def default_strategy(target: int | None, has_model: bool) -> Strategy:
    """What compacts where nothing else is asked for: a summary that is verified, or the ledger alone."""
    return StructuredSummary(max_tokens=target) if has_model else KeepLedger(max_tokens=target)


def least_saving(strategy: Strategy, given: float | None) -> float:
    """The smallest gain worth committing: any for a window, a tenth for a summary, unless it is said."""
    usual: float = getattr(strategy, "min_saving", 0.0)
    return usual if given is None else given


class _Work:
    """One compaction of a list of messages: what came in, and what is made of a decision about it."""

    def __init__(
        self,
        messages: Iterable[Any],
        budget: int,
        target: int | None,
        system: Any,
        tools: Any,
        instructions: str | None,
        estimator: Estimator | Callable[[str], int] | str | None,
        format: str | None,
        previous: Any,
        asking: Asking,
    ) -> None:
        self.asking = asking
        self.started = time.perf_counter()
        self.target = _limits(budget, target)
        self.given, self.name = decode_all(messages, format, borrow=True)
        self.history = mended(self.given, self.name)
        view = View(estimator_for(estimator), format=self.name, beside=beside(system, tools))
        self.earlier = None if previous is None else as_checkpoint(previous)
        self.start = 0 if self.earlier is None else _resume(view, self.history, self.earlier)
        if self.earlier is None:
            view.load(self.history, PrefixIds(self.history))
        self.request = Request(view, budget=budget, target=self.target, instructions=instructions)
        self.request.reads = reads(asking.model)

    def result(self, decision: Decision) -> CompactionResult:
        view, plan, composed = self.request.view, decision.plan, decision.composed
        encoded = encode_all(view.shown() if composed is None else composed.shown, self.name)
        cost = self.asking.cost(self.request, decision)

        def checkpoint() -> PrefixCheckpoint | None:
            return self.earlier if plan is None else _checkpoint(self.request, decision, encoded, cost)

        return CompactionResult(
            messages=lambda: encoded,
            outcome=decision.outcome,
            sides=lambda: sides_of(self.given, self.history, self.start, view, decision),
            tokens_before=decision.tokens_before,
            tokens_after=decision.tokens_after,
            checkpoint=checkpoint,
            why=decision.why,
            strategy=plan.by if plan else "",
            fallback=plan.fallback if plan else "",
            summary=plan.summary if plan else None,
            remarks=decision.remarks,
            cost=cost,
            round=view.checkpoint.carry.round + (plan is not None and plan.cut > 0),
            duration=time.perf_counter() - self.started,
            format=None if self.name == COMMON else self.name,
        )


def mended(given: list[Message], name: str) -> list[Message]:
    """Repaired where it had to be, and then as it would come back in once it was sent."""
    profile = profile_for(name)
    if not find_problems(given, profile):
        return given
    return _read(encode_all(repair(given, profile), name), name)


def _read(payloads: list[Json], name: str) -> list[Message]:
    return decode_all(payloads, None if name == COMMON else name)[0]


def beside(system: Any, tools: Any) -> tuple[str, ...]:
    """The text of what stands beside the messages and takes up the window all the same."""
    texts = []
    if system:
        texts.append(system if isinstance(system, str) else to_json(_plain(system)))
    if tools:
        texts.append(to_json(_plain(tools)))
    return tuple(texts)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.model_dump(mode="json", exclude_none=True) if hasattr(value, "model_dump") else value


def _limits(budget: int, target: int | None) -> int:
    positive("budget", budget)
    if target is None:
        return max(1, budget // 2)
    positive("target", target)
    if target > budget:
        raise InvalidLimit(f"target={target} is above budget={budget}: it says how far to go below it.")
    return target


def _resume(view: View, history: list[Message], earlier: PrefixCheckpoint) -> int:
    """Put the view where the earlier checkpoint left it; returns where its live messages start."""
    start, ids, whole = locate(history, earlier)
    live = history[start:]
    if whole and earlier.edits:
        live = [edited(message, earlier.edits.get(ids[place], ())) for place, message in enumerate(live)]
    view.load(live, ids)
    head = [Shown(item.kind, item.message, item.ref) for item in earlier.head if item.message is not None]
    view.begin(earlier.boundary or START, earlier, head)
    view.settled = earlier.carry.settled
    return start


def _checkpoint(request: Request, decision: Decision, encoded: list[Json], cost: Cost | None) -> PrefixCheckpoint:
    """All that the next call needs to know of this one, as plain data."""
    view, plan, composed = request.view, decision.plan, decision.composed
    assert plan is not None and composed is not None
    before = view.checkpoint
    again = mended(_read(encoded, view.format), view.format)
    emptied = {place for place in composed.edits if not composed.live[place - plan.cut].parts}
    kept = [place for place in range(plan.cut, len(view.messages)) if place not in emptied]
    edits = {view.ids[place]: changes for place, changes in composed.edits.items()}
    for place in kept:
        if (old := before.edits.get(view.ids[place])) is not None:
            edits[view.ids[place]] = combined(old, edits.get(view.ids[place], ()))
    return PrefixCheckpoint(
        boundary=view.ids[plan.cut - 1] if plan.cut else before.boundary,
        head=tuple(HeadItem(shown.kind, shown.source, shown.message) for shown in composed.head),
        edits=edits,
        carry=next_carry(request, decision),
        archived=runs_of(view.ids, composed.archived),
        tokens_before=decision.tokens_before,
        tokens_after=decision.tokens_after,
        summary=standing_summary(request, plan),
        previous=before.boundary,
        strategy=plan.by,
        fallback=plan.fallback or None,
        remarks=plan.remarks,
        cost=None if cost is None else msgspec.to_builtins(cost),
        lead=len(again) - len(kept),
        shown=len(again),
        shown_digest=PrefixIds(again)[len(again) - 1] if again else "",
        kept=tuple(view.ids[place] for place in kept),
    )
