"""One compaction of a list of messages, from what came in to a result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from ..budget import positive
from ..errors import InvalidInput, InvalidLimit
from ..messages import COMMON, Json, Message, decode_all, encode_all, to_json
from ..models import reads
from ..tokens import Estimator, estimator_for
from ..view import HeadItem, Request, Shown, View, edited, runs_of
from .asking import Asking
from .carry import next_carry, next_edits, standing_summary
from .cost import Cost
from .decide import Decision
from .mending import mended, numbers_in, read_back
from .prefix import START, PrefixCheckpoint, PrefixIds, as_checkpoint, counted_on, locate
from .result import CompactionResult
from .sides import sides_of


class Work:
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
        numbers: Sequence[int] | None,
        asking: Asking,
    ) -> None:
        self.asking = asking
        self.started = time.perf_counter()
        self.target = _limits(budget, target)
        self.given, self.name = decode_all(messages, format, borrow=True)
        self.history = mended(self.given, self.name)
        view = View(estimator_for(estimator), format=self.name, beside=beside(system, tools))
        self.earlier = None if previous is None else as_checkpoint(previous)
        self.start, whole = 0, True
        if self.earlier is None:
            view.load(self.history, PrefixIds(self.history))
        else:
            self.start, whole = _resume(view, self.history, self.earlier)
        view.named = self._named(view, numbers, whole)
        self.request = Request(
            view,
            budget=budget,
            target=self.target,
            instructions=instructions,
            reads=reads(asking.model),
            asks=asking.model is not None,
        )

    def _named(self, view: View, numbers: Sequence[int] | None, whole: bool) -> Sequence[int]:
        """The numbers of the live messages, where these cannot just be counted; then none.

        What mending put in is none of the caller's messages, and has no number of its own.
        """
        given, history, earlier = self.given, self.history, self.earlier
        if numbers is not None and len(numbers) != len(given):
            raise InvalidInput(f"There are {len(numbers)} numbers for {len(given)} messages: give each message one.")
        if numbers is not None and not all(type(number) is int and number > 0 for number in numbers):
            raise InvalidInput("The numbers of messages are whole and above nought.")
        if numbers is None:
            counts = earlier is None and view.synthetic  # a page without its checkpoint says what to count on from
            if counts or (history is given and not (earlier and earlier.numbers)):
                return ()
            numbers = range(1, len(given) + 1) if whole or earlier is None else counted_on(earlier, len(given))
        return (numbers if history is given else numbers_in(history, given, numbers))[self.start :]

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


def _resume(view: View, history: list[Message], earlier: PrefixCheckpoint) -> tuple[int, bool]:
    """Put the view where the earlier checkpoint left it; tells where that starts, and if it is in the whole history."""
    start, ids, whole = locate(history, earlier)
    live = history[start:]
    if whole and earlier.edits:
        live = [edited(message, earlier.edits.get(ids[place], ())) for place, message in enumerate(live)]
    view.load(live, ids)
    head = [Shown(item.kind, item.message, item.ref) for item in earlier.head if item.message is not None]
    view.begin(earlier.boundary or START, earlier, head)
    view.settled = earlier.carry.settled
    return start, whole


def _checkpoint(request: Request, decision: Decision, encoded: list[Json], cost: Cost | None) -> PrefixCheckpoint:
    """All that the next call needs to know of this one, as plain data."""
    view, plan, composed = request.view, decision.plan, decision.composed
    assert plan is not None and composed is not None
    before = view.checkpoint
    again = mended(read_back(encoded, view.format), view.format)
    emptied = {place for place in composed.edits if not composed.live[place - plan.cut].parts}
    kept = [place for place in range(plan.cut, len(view.messages)) if place not in emptied]
    ids = tuple(view.ids[place] for place in kept)
    return PrefixCheckpoint(
        boundary=view.ids[plan.cut - 1] if plan.cut else before.boundary,
        head=tuple(HeadItem(shown.kind, shown.source, shown.message) for shown in composed.head),
        edits=next_edits(view, composed, ids),
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
        kept=ids,
        numbers=tuple(view.named[place] for place in kept) if view.named else (),
    )
