"""Triggers by how full a window is, each with its document's rule (P2, P24, L4, W1, G2)."""

from __future__ import annotations

import msgspec

from ..budget import BelowWindow, Fraction, LayerBudget, Threshold, Utilization, WorkstreamBudget, fraction, positive
from ..view import Request


class OverBudget(msgspec.Struct, frozen=True):
    """Fires above the request's budget; given a threshold and a window, above that (P2)."""

    threshold: Threshold | None = None
    window: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.threshold, Fraction | BelowWindow):
            positive("window", self.window)

    def __call__(self, request: Request) -> bool:
        limit = request.budget if self.threshold is None else self.threshold.tokens(self.window)
        return limit is not None and request.tokens > limit


def pi_trigger(window: int, reserve_tokens: int = 16_384) -> OverBudget:
    """P2: context > window - reserve."""
    positive("window", window)
    return OverBudget(BelowWindow(reserve_tokens), window)


class LayerTrigger(msgspec.Struct, frozen=True):
    """L4: never at keep + 1 messages or fewer; else at the threshold of the layer's budget."""

    budget: LayerBudget = LayerBudget()

    def __call__(self, request: Request) -> bool:
        if len(request.messages) + len(request.view.head) <= self.budget.keep_last + 1:
            return False
        return request.tokens >= self.budget.threshold


class WorkstreamTrigger(msgspec.Struct, frozen=True):
    """W1: fires at or above the workstream's threshold."""

    budget: WorkstreamBudget = WorkstreamBudget()

    def __call__(self, request: Request) -> bool:
        return request.tokens >= self.budget.threshold


class OverUtilization(msgspec.Struct, frozen=True):
    """G2: fires when the messages use more than four fifths of what system and output leave."""

    part: float = 0.80
    limit: int = 200_000
    max_output: int = 16_384

    def __post_init__(self) -> None:
        fraction("part", self.part)
        Utilization(0, 0, self.limit, self.max_output)

    def __call__(self, request: Request) -> bool:
        gauge = request.view.gauge
        system = gauge.estimator.tokens(gauge.fixed)
        return Utilization(system, request.tokens - system, self.limit, self.max_output).over(self.part)
