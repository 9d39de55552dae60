"""One compaction, from policy to result: the path that lists, sessions, hooks and jobs all take.

    policy -> request -> trigger -> strategy -> plan -> validation -> checkpoint -> result

The caller provides the view and writes the checkpoint; every step in between is here or called from here.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, takewhile
from operator import is_
from typing import TYPE_CHECKING, Any

import msgspec

from .. import __version__
from ..context import (
    Carry,
    Checkpoint,
    CompactionParameters,
    HeadItem,
    HeadMessage,
    Plan,
    Request,
    Skip,
    View,
    event_id_ranges,
)
from ..context.checkpoint import EventIdRange
from ..context.events import message_in
from ..errors import Outcome, SummaryFailed, plain_reason
from ..messages import COMMON, HIDDEN, Edit, Message, Opaque, ToolResult, is_known, user_topics
from ..models import scrub
from ..strategies.base import run_strategy
from ..strategies.parameters import describe_parameters
from ..strategies.shortening import fit_unread_results, lift_target
from ..tokens.catalog import Prices, prices_of
from ..tokens.window import Window, WindowFacts
from .decide import Decision, validate_plan
from .driver import Abort, Notify, SummarizerRun, in_thread, without_model
from .policy import FREED, Policy
from .result import CompactionResult, Cost, Partition, cost_of

if TYPE_CHECKING:
    from ..types import Strategy

log = logging.getLogger("holdfast")


class CompactionRun:
    """One compaction of one view."""

    def __init__(
        self,
        view: View,
        policy: Policy,
        *,
        window: Window | None = None,
        session_id: str | None = None,
        model: str | None = None,
        started: float | None = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
    ) -> None:
        self.started = time.perf_counter() if started is None else started
        """When the caller began."""
        self.policy = policy
        self.model = model
        """The conversation's model, for prices."""
        self.notify = notify
        self.abort = abort
        self.bounds, self.request = policy.request(view, window, session_id)
        self._replaced_by: Strategy | None = None

    @cached_property
    def summarizer(self) -> SummarizerRun:
        """The model calls of this compaction."""
        return SummarizerRun(self.policy.summarizer, self.policy.limits, self.notify, self.abort)

    @cached_property
    def chosen(self) -> Strategy:
        """The policy's strategy."""
        request = self.request
        return self.policy.strategy_for(lift_target(request) if request.plan.unread else request)

    @property
    def strategy(self) -> Strategy:
        """The strategy that made the plan: a hook may replace the policy's."""
        return self.chosen if self._replaced_by is None else self._replaced_by

    def not_triggered(self) -> Decision | None:
        """Returns the decision to do nothing if the trigger does not fire, or the policy's own fires too soon."""
        if not (why := self.policy.why_not_due(self.request)):
            return None
        size = self.request.tokens
        return Decision(Outcome.NOT_NEEDED, size, size, why)

    def decide(self) -> Decision:
        """Asks the trigger, runs the strategy without a model, and validates its plan."""
        if (nothing := self.not_triggered()) is not None:
            return nothing
        with self._strategy_errors() as failed:
            request = self._request_for(self.chosen)
            return self._validate(request, self.chosen, without_model(run_strategy(self.chosen, request)))
        return failed[0]

    async def decide_with_model(self) -> Decision:
        """Runs the strategy with a model to call, off the event loop. An abort is an outcome, without a fallback."""
        with self._strategy_errors() as failed:
            with self.summarizer.abort.scope():
                return await self.plan_by(self.chosen)
            size = self.request.tokens
            return Decision(Outcome.ABORTED, size, size, "it was aborted: nothing has changed")
        return failed[0]

    @contextmanager
    def _strategy_errors(self) -> Iterator[list[Decision]]:
        """Makes an exception of a strategy a decision: compaction never breaks the loop of an agent."""
        failed: list[Decision] = []
        try:
            yield failed
        except SummaryFailed:  # asked for by the policy `error`
            raise
        except Exception as error:
            log.exception("the strategy %s raised an exception", type(self.strategy).__name__)
            size, why = self.request.tokens, f"the strategy failed: {plain_reason(error)}"
            failed.append(Decision(Outcome.SUMMARY_FAILED, size, size, why))

    async def plan_by(
        self, strategy: Strategy, check: Callable[[Plan | Skip], Plan | Skip] = lambda answer: answer
    ) -> Decision:
        """Runs this strategy and validates its plan; `check` sees the plan first and may raise."""
        self._replaced_by = None if strategy is self.chosen else strategy
        request = self._request_for(strategy)
        answer = await self.summarizer.drive(run_strategy(strategy, request))
        return await in_thread(lambda: self._validate(request, strategy, check(answer)))

    def _request_for(self, strategy: Strategy) -> Request:
        return fit_unread_results(self.request, strategy) if self.request.plan.unread else self.request

    def _validate(self, request: Request, strategy: Strategy, answer: Plan | Skip) -> Decision:
        if not isinstance(answer, Plan | Skip):
            raise TypeError(f"it returned {type(answer).__name__}: a strategy returns a Plan or a Skip")
        least = self.chosen.min_saving if self.policy.min_saving is None else self.policy.min_saving
        decision = validate_plan(request, strategy, answer, min_saving=least)
        remarks = tuple(self._remarks(decision))
        return msgspec.structs.replace(decision, remarks=(*decision.remarks, *remarks)) if remarks else decision

    def _remarks(self, decision: Decision) -> Iterator[str]:
        """Yields what the user should know beside the strategy's own remarks."""
        if self.request.view.usage_remark:
            yield self.request.view.usage_remark
        if missing := self.policy.missing:
            yield f"this process does not have {', '.join(missing)}: the preset's own is used"
        for kind, count in sorted(_unknown_kinds(self._shown()).items()):
            parts = "1 part" if count == 1 else f"{count} parts"
            are = "is" if count == 1 else "are"
            yield f"{parts} of unknown type `{kind}` {are} passed on unchanged and counted by bytes"
        if decision.plan is not None and decision.plan.interrupts_reasoning:
            yield "reasoning in the tool loop that still runs was removed: its signature covers messages that changed"
        yield from self._too_little_freed(decision)

    def _too_little_freed(self, decision: Decision) -> Iterator[str]:
        threshold = self.request.threshold
        if threshold is None or decision.outcome is not Outcome.COMPACTED or not self.policy.is_automatic:
            return
        if decision.tokens_after > threshold - int((threshold - self.request.view.overhead) * FREED):
            yield (
                f"only {max(0, threshold - decision.tokens_after):,} tokens are free up to the threshold of "
                f"{threshold:,}: system prompt, tools and what must stay take the rest"
            )

    def _shown(self) -> Iterator[Message]:
        """Yields the messages of the context before the compaction."""
        return chain((shown.message for shown in self.request.view.head), self.request.view.messages)

    def cost(self, decision: Decision) -> Cost | None:
        """Returns the cost of the model calls and of the lost prompt cache; None if nothing changes."""
        if decision.plan is None:
            return None
        view, meter = self.request.view, self.summarizer.meter
        same = sum(1 for _ in takewhile(bool, map(is_, self._shown(), decision.plan.messages)))
        return cost_of(
            meter.usage,
            prices_of(self.model),
            decision.tokens_before,
            decision.tokens_after,
            view.tokens_of_first(same),
            summarizer=(prices_of(meter.model) or Prices()) if meter.model else None,
            calls=meter.calls,
        )

    def parameters(self, seen: int, *, calibrated: bool) -> CompactionParameters:
        """Returns what is needed to compute this compaction again from the log."""
        policy, request = self.policy, self.request
        return CompactionParameters(
            seen=seen,
            strategy=describe_parameters(self.strategy),
            trigger=describe_parameters(policy.trigger),
            policy=policy.stored(),
            budget=request.budget,
            threshold=request.threshold,
            target=request.target,
            instructions=self.request.instructions,
            summarizer=None if policy.summarizer is None else scrub(policy.summarizer.name),
            model=self.model,
            calibrated=calibrated,
            version=__version__,
        )

    def result(
        self,
        decision: Decision,
        *,
        messages: Callable[[], list[Any]],
        partition: Callable[[], Partition],
        checkpoint: Callable[[], Checkpoint | None],
        round: int,
        format: str,
        cost: Cost | None = None,
        version: int | None = None,
    ) -> CompactionResult:
        """Returns the result; its messages, partition and checkpoint are computed when they are first read."""
        plan = decision.plan
        return CompactionResult(
            messages=messages,
            outcome=decision.outcome,
            partition=partition,
            tokens_before=decision.tokens_before,
            tokens_after=decision.tokens_after,
            tokens_saved=decision.tokens_saved,
            checkpoint=checkpoint,
            why=decision.why,
            strategy=plan.strategy if plan else "",
            fallback=plan.fallback if plan else "",
            summary=plan.summary if plan and plan.summary is not self.request.view.checkpoint.summary else None,
            remarks=decision.remarks,
            cost=cost,
            round=round,
            duration=time.perf_counter() - self.started,
            format=None if format == COMMON else format,
            version=version,
            policy=self.policy.stored(),
            bounds=self.bounds,
        )


def checkpoint_of(
    plan: Plan, tokens_before: int, tokens_after: int, cost: Cost | None, *, previous: str | None
) -> Checkpoint:
    """Returns the checkpoint to which this plan leads; `previous` names the one that it replaces."""
    view = plan.base
    boundary = next((id for index in range(plan.cut - 1, -1, -1) if _is_stored(id := view.ids[index], view)), None)
    archived = event_id_ranges(view.ids, (index for index in plan.archived if _is_stored(view.ids[index], view)))
    dropped = (EventIdRange(shown.source, shown.source, 1) for shown in plan.dropped if shown.source in view.events)
    return Checkpoint(
        boundary=boundary or view.checkpoint.boundary,
        head=tuple(_head_item(shown, view) for shown in plan.head),
        edits=_edits(plan, boundary),
        carry=_carry(plan),
        archived=(*dropped, *archived),
        tokens_before=tokens_before,
        tokens_after=tokens_after,
        summary=plan.summary,
        previous=previous,
        strategy=plan.strategy,
        fallback=plan.fallback or None,
        remarks=plan.remarks,
        cost=None if cost is None else msgspec.to_builtins(cost),
    )


def _is_stored(id: str, view: View) -> bool:
    """Whether a log holds this message; in a list without a log, the list does."""
    return id in view.events or not view.events


def _head_item(shown: HeadMessage, view: View) -> HeadItem:
    """A reference if the event is shown unchanged, else the message itself."""
    if not view.events:
        return HeadItem(shown.kind, shown.source, shown.message)
    if (event := view.events.get(shown.source or "")) is None:
        return HeadItem(shown.kind, None, shown.message)
    return HeadItem(shown.kind, event.id, None if message_in(event) == shown.message else shown.message)


def _edits(plan: Plan, boundary: str | None) -> dict[str, tuple[Edit, ...]]:
    """Edits of the messages after the boundary, also of hidden ones."""
    view = plan.base
    start = 0 if boundary not in view.events else view.events[boundary].seq
    edits: dict[str, tuple[Edit, ...]] = {id: (HIDDEN,) for id, seq in view.hidden.items() if seq > start}
    for index in range(plan.cut, len(view.messages)):
        if changes := plan.edited.get(index, view.messages[index]).edits:
            edits[view.ids[index]] = changes
    return edits


def _carry(plan: Plan) -> Carry:
    """Everything later compactions need from before the boundary. Only archived messages raise the round."""
    view, before = plan.base, plan.base.checkpoint.carry
    archived, numbers = [view.messages[index] for index in plan.archived], view.numbers
    count = len({numbers[index] for index in plan.archived}) if numbers else len(archived)
    if view.given_numbers:
        before_boundary = max([before.before_boundary, *view.given_numbers[: plan.cut]])
    else:
        before_boundary = before.before_boundary + plan.cut
    kept_until = view.version if view.events else len(view.messages) - plan.cut
    return Carry(
        round=before.round + plan.archives,
        archived=before.archived + count + len(plan.dropped),
        format=None if view.format == COMMON else view.format,
        counter=view.token_sums.estimator.name,
        calibration=view.calibration.reset_size(),
        pins=tuple(sorted(plan.pins)),
        policy=view.policy,
        window=None if view.window_facts == WindowFacts() else view.window_facts,
        prompt=view.prompt_units,
        topics=tuple(user_topics(archived, before.topics)),
        before_boundary=before_boundary,
        kept_until=kept_until if plan.cut else before.kept_until,
        ledger=before.ledger if plan.ledger is None else plan.ledger(),
        state=before.state if plan.state is None else plan.state,
        memory=before.memory if plan.memory is None else plan.memory,
    )


def _unknown_kinds(messages: Iterable[Message]) -> Counter[str]:
    """Counts the parts that no codec knows, by their type."""
    found: Counter[str] = Counter()
    for message in messages:
        if message.format is None:
            continue
        for part in message.parts:
            for item in part.content if type(part) is ToolResult else (part,):
                if type(item) is Opaque and not is_known(item):
                    found[item.kind] += 1
    return found
