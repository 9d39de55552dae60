"""Base of all strategies: a callable from a request to a plan, with limits of its own.

A strategy does no I/O. One that needs a model is a generator: it yields batches of `ModelCall` and receives a reply or
a failure for each, so that a test can replay it with fixed answers.
"""

from __future__ import annotations

from collections.abc import Generator

from ..context import Plan, Request, Skip
from ..errors import InvalidInput
from ..models.calls import Steps
from ..types import Strategy, StrategyFunction


class BaseStrategy:
    """Default limits: compacts as far as the caller asks, and commits any saving."""

    min_saving: float = 0.0
    writes_notes: bool = False
    """Whether a note or a summary takes the place of what is archived."""

    @property
    def target(self) -> int | None:
        """Tokens to compact down to; None leaves it to the caller."""
        return None


class FunctionStrategy(BaseStrategy):
    """A callable as a strategy; it may bring one of the two limits."""

    def __init__(self, function: StrategyFunction) -> None:
        self._function = function
        self._target: int | None = getattr(function, "target", None)
        self.min_saving = getattr(function, "min_saving", 0.0)
        self.writes_notes = getattr(function, "writes_notes", True)

    @property
    def target(self) -> int | None:
        return self._target

    def __call__(self, request: Request) -> Plan | Skip | Steps[Plan | Skip]:
        return self._function(request)


def as_strategy(given: Strategy | StrategyFunction) -> Strategy:
    """Returns the strategy, or wraps a function as one."""
    if isinstance(given, type):
        raise InvalidInput(f"A strategy is an object such as SlidingWindow(20), not the class {given.__name__}.")
    if isinstance(given, Strategy):
        return given
    if not callable(given):
        raise InvalidInput(f"A strategy is a callable from a request to a plan, not {type(given).__name__}.")
    return FunctionStrategy(given)


def run_strategy(strategy: StrategyFunction, request: Request) -> Steps[Plan | Skip]:
    """Runs a strategy inside a generator with `yield from`, whether or not it calls a model."""
    answer = strategy(request)
    if isinstance(answer, Generator):
        answer = yield from answer
    return answer
