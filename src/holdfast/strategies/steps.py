"""A strategy that may ask a model, inside another one."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ..calls import Steps
from ..view import Plan, Request, Skip

if TYPE_CHECKING:
    from ..types import Strategy


def steps(strategy: Strategy, request: Request) -> Steps[Plan | Skip]:
    """What a strategy does, asking or not, to be gone along with by `yield from`."""
    answer = strategy(request)
    if isinstance(answer, Generator):
        answer = yield from answer
    return answer
