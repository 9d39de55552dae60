"""Pipelines: one strategy after another, until the context is small enough."""

from __future__ import annotations

from ..context import Plan, Request, Skip
from ..errors import InvalidInput, Outcome
from ..models.calls import Steps
from ..types import Strategy, StrategyFunction
from .base import BaseStrategy, as_strategy, run_strategy


class Pipeline(BaseStrategy):
    """Runs stages in order until the target is met; each stage sees the result of those before it."""

    def __init__(self, *stages: Strategy | StrategyFunction) -> None:
        if not stages or not all(callable(stage) for stage in stages):
            raise InvalidInput("A pipeline takes one or more strategies: callables from a request to a plan.")
        self.stages = tuple(map(as_strategy, stages))
        self.writes_notes = any(getattr(stage, "writes_notes", True) for stage in self.stages)

    @property
    def target(self) -> int | None:
        """The target of the last stage."""
        return self.stages[-1].target

    def __call__(self, request: Request) -> Steps[Plan | Skip]:
        answer: Plan | Skip = Skip(Outcome.NOTHING_TO_COMPACT)
        limit = request.target if request.target is not None else request.budget
        current = request
        for stage in self.stages:
            answer = yield from run_strategy(stage, current)
            if isinstance(answer, Plan):
                current = request.at(answer)
                if limit is not None and current.tokens <= limit:
                    break
        return answer if current is request else current.plan
