"""Deciding with a model at hand: who is asked, how patiently, and who may stop it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from ..calls import Limits, Model
from ..catalog.prices import Prices, prices_of
from ..outcome import Outcome
from ..strategies import steps
from ..view import Request
from .abort import Abort
from .cost import Cost, cost_of
from .decide import Decision, idle, weigh
from .driver import Meter, Notify, drive, in_thread

if TYPE_CHECKING:
    from ..types import Strategy, Trigger


class Asking:
    """Everything about the calls of one compaction that is not the strategy's."""

    def __init__(
        self,
        model: Model | None = None,
        limits: Limits | None = None,
        notify: Notify | None = None,
        abort: Abort | None = None,
    ) -> None:
        self.model = model
        self.limits = limits or Limits()
        self.notify = notify
        self.abort = abort or Abort()
        self.meter = Meter()

    def cost(self, request: Request, decision: Decision, model: str | None = None) -> Cost | None:
        """What a compaction comes to (H4), given the model that the conversation is with."""
        if decision.composed is None:
            return None
        view, gauge = request.view, request.view.gauge
        units, before = gauge.fixed, chain((shown.message for shown in view.head), view.messages)
        for old, new in zip(before, decision.composed.shown, strict=False):
            if old is not new:
                break
            units += gauge.estimator.measure(new)
        return cost_of(
            self.meter.usage,
            prices_of(model),
            decision.tokens_before,
            decision.tokens_after,
            view.tokens_of(units),
            summarizer=(prices_of(self.meter.model) or Prices()) if self.meter.model else None,
            calls=self.meter.calls,
        )


async def decide_asking(
    request: Request,
    strategy: Strategy,
    trigger: Trigger | None,
    asking: Asking,
    *,
    min_saving: float = 0.0,
) -> Decision:
    """`decide`, with a model to ask, off the event loop's thread. An abort is an outcome; it never falls back."""
    if (nothing := idle(request, trigger)) is not None:
        return nothing
    with asking.abort.scope():
        answer = await drive(steps(strategy, request), asking.model, asking.limits, asking.notify, asking.meter)
        return await in_thread(lambda: weigh(request, strategy, answer, min_saving=min_saving))
    size = request.tokens
    return Decision(Outcome.ABORTED, size, size, "it was aborted: nothing has changed")
