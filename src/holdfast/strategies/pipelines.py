"""Pipelines: one strategy after another, for as long as the context is still too large."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..calls import Steps
from ..errors import InvalidInput
from ..outcome import Outcome
from ..view import Plan, Request, Skip, follow, merge
from .steps import steps

if TYPE_CHECKING:
    from ..types import Strategy


class Pipeline:
    """Prune first, then a window if it is still over: each stage sees what the ones before it left."""

    def __init__(self, *stages: Strategy) -> None:
        if not stages or not all(callable(stage) for stage in stages):
            raise InvalidInput("A pipeline takes one or more strategies: callables from a request to a plan.")
        self.stages = stages

    @property
    def target(self) -> int | None:
        """The limit of the last stage, if it has one: that is where the pipeline leads."""
        return getattr(self.stages[-1], "target", None)

    def __call__(self, request: Request) -> Steps[Plan | Skip]:
        plan: Plan | None = None
        answer: Plan | Skip = Skip(Outcome.NOTHING_TO_COMPACT)
        current = request
        for stage in self.stages:
            answer = yield from steps(stage, current)
            if isinstance(answer, Skip):
                continue
            plan = answer if plan is None else merge(plan, answer, request)
            current = follow(request, plan)
            limit = request.target if request.target is not None else request.budget
            if limit is not None and current.tokens <= limit:
                break
        return answer if plan is None else plan
