"""Strategies by name: `sliding:20`, or `prune+tokens:50k` for a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import InvalidInput, InvalidLimit
from ..io.arguments import parse_count, unknown_name_message
from .ledger import KeepLedger
from .pipeline import Pipeline
from .pruning import PruneToolResults
from .truncation import Truncate
from .windows import KeepFraction, KeepLast, SlidingWindow, TokenWindow, TurnWindow

if TYPE_CHECKING:
    from ..types import Strategy

DEFAULT_STRATEGY = "default"
STRATEGY_NAMES = (DEFAULT_STRATEGY, "sliding", "turns", "tokens", "last", "prune", "ledger", "truncate", "fraction")
_STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "sliding": SlidingWindow,
    "turns": TurnWindow,
    "tokens": TokenWindow,
    "last": KeepLast,
    "prune": lambda protect=40_000: PruneToolResults(protect, protect // 2),
    "ledger": KeepLedger,
    "truncate": Truncate,
}


def parse_strategy(text: str) -> Strategy | None:
    """Returns the named strategy; None means the library's default."""
    if text == DEFAULT_STRATEGY:
        return None
    stages = [_parse_stage(name) for name in text.split("+")]
    return stages[0] if len(stages) == 1 else Pipeline(*stages)


def _parse_stage(text: str) -> Strategy:
    name, colon, number = text.strip().partition(":")
    if name == DEFAULT_STRATEGY:
        raise InvalidInput("The strategy 'default' takes no number and cannot be part of a pipeline.")
    if name == "fraction":
        return KeepFraction(_parse_fraction(number)) if colon else KeepFraction()
    if name not in _STRATEGIES:
        raise InvalidInput(unknown_name_message("strategy", name, STRATEGY_NAMES))
    return _STRATEGIES[name](parse_count(number, f"The strategy {name!r}")) if colon else _STRATEGIES[name]()


def _parse_fraction(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidLimit(f"The strategy 'fraction' takes a number between 0 and 1, like 0.4, not {text!r}.") from None
