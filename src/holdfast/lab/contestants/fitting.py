"""As much text as fits a budget, whatever counts the tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from ...messages import user
from ...tokens import Estimator


def fits(text: str, budget: int, estimator: Estimator) -> bool:
    return estimator.tokens(estimator.measure(user(text))) <= budget


def end_of(text: str, budget: int, estimator: Estimator) -> str:
    """The longest end of a text within the budget."""
    length = most(len(text), lambda n: fits(text[len(text) - n :], budget, estimator))
    return text[len(text) - length :]


def start_of(text: str, budget: int, estimator: Estimator) -> str:
    """The longest start of a text within the budget."""
    return text[: most(len(text), lambda n: fits(text[:n], budget, estimator))]


def most(limit: int, allowed: Callable[[int], bool]) -> int:
    """The largest number up to the limit that is allowed, if none above it is; found from below, by doubling."""
    high = 1
    while high < limit and allowed(high):
        high *= 2
    high = min(high, limit)
    return max(0, bisect_right(range(high + 1), False, key=lambda n: n > 0 and not allowed(n)) - 1)
