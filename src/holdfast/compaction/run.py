"""One compaction, from policy to result: the path that lists, sessions, hooks and jobs all take.

    policy -> request -> trigger -> strategy -> plan -> validation -> checkpoint -> result

The caller provides the view and writes the checkpoint; every step in between is here or called from here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, takewhile
from operator import is_
from typing import TYPE_CHECKING

import msgspec

from .. import __version__
from ..context import Checkpoint, CompactionParameters, Plan, Skip, View
from ..errors import Outcome, SummaryFailed, plain_reason
from ..ledger import weights_digest
from ..messages import COMMON, Json
from ..models import scrub
from ..strategies.base import run_strategy
from ..strategies.parameters import describe_parameters
from ..tokens.catalog import Prices, prices_of
from ..tokens.window import Window
from .decide import Decision, validate_plan
from .driver import SummarizerRun, in_thread, without_model
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
        summarizer: SummarizerRun | None = None,
        *,
        window: Window | None = None,
        session_id: str | None = None,
        model: str | None = None,
        started: float | None = None,
    ) -> None:
        self.started = time.perf_counter() if started is None else started
        """When the caller began."""
        self.policy = policy
        self.model = model
        """The conversation's model, for prices."""
        self.summarizer = summarizer or SummarizerRun(policy.summarizer, policy.limits)
        """The model calls of this compaction."""
        self.bounds, self.request = policy.request(view, window, session_id)
        self.chosen = policy.strategy_for(self.request)
        """The policy's strategy."""
        self.strategy = self.chosen
        """The strategy that made the plan: a hook may replace the policy's."""
        self.min_saving = self.chosen.min_saving if policy.min_saving is None else policy.min_saving

    def not_triggered(self) -> Decision | None:
        """Returns the decision to do nothing if the trigger does not fire, or the policy's own fires too soon."""
        request, size = self.request, self.request.tokens
        if not self.policy.trigger(request):
            return Decision(Outcome.NOT_NEEDED, size, size, "the trigger did not fire")
        if not self.policy.is_automatic or (request.budget is not None and size > request.budget):
            return None
        appended = request.view.appended_tokens
        if appended is None or appended >= request.gap:
            return None
        why = f"{appended:,} tokens were appended since the last compaction: the next comes after {request.gap:,}"
        return Decision(Outcome.NOT_NEEDED, size, size, why)

    def decide(self) -> Decision:
        """Asks the trigger, runs the strategy without a model, and validates its plan."""
        if (nothing := self.not_triggered()) is not None:
            return nothing
        with self._strategy_errors() as failed:
            return self._validate(self.chosen, without_model(run_strategy(self.chosen, self.request)))
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
        self.strategy = strategy
        answer = await self.summarizer.drive(run_strategy(strategy, self.request))
        return await in_thread(lambda: self._validate(strategy, check(answer)))

    def _validate(self, strategy: Strategy, answer: Plan | Skip) -> Decision:
        if not isinstance(answer, Plan | Skip):
            raise TypeError(f"it returned {type(answer).__name__}: a strategy returns a Plan or a Skip")
        decision = validate_plan(self.request, strategy, answer, min_saving=self.min_saving)
        remarks = tuple(self._policy_remarks(decision))
        return msgspec.structs.replace(decision, remarks=(*decision.remarks, *remarks)) if remarks else decision

    def _policy_remarks(self, decision: Decision) -> Iterator[str]:
        """Yields what stood in for objects of another process, and whether an automatic compaction freed too little."""
        if self.request.view.usage_remark:
            yield self.request.view.usage_remark
        if missing := self.policy.missing:
            yield f"this process does not have {', '.join(missing)}: the preset's own is used"
        threshold = self.request.threshold
        if threshold is None or decision.outcome is not Outcome.COMPACTED or not self.policy.is_automatic:
            return
        if decision.tokens_after > threshold - int((threshold - self.request.view.overhead) * FREED):
            yield (
                f"only {max(0, threshold - decision.tokens_after):,} tokens are free up to the threshold of "
                f"{threshold:,}: system prompt, tools and what must stay take the rest"
            )

    def cost(self, decision: Decision) -> Cost | None:
        """Returns the cost of the model calls and of the lost prompt cache; None if nothing changes."""
        if decision.plan is None:
            return None
        view, meter = self.request.view, self.summarizer.meter
        before = chain((shown.message for shown in view.head), view.messages)
        same = sum(1 for _ in takewhile(bool, map(is_, before, decision.plan.messages)))
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
            weights=weights_digest(),
            version=__version__,
        )

    def result(
        self,
        decision: Decision,
        *,
        messages: Callable[[], Sequence[Json]],
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
