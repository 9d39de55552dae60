"""Strategies by name: `sliding:20`, `prune`, or several joined to a pipeline, `prune+tokens:50k`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from ..errors import InvalidInput, InvalidLimit
from ..strategies import (
    KeepFraction,
    KeepLast,
    KeepLedger,
    Pipeline,
    PruneToolResults,
    SlidingWindow,
    TokenWindow,
    Truncate,
    TurnWindow,
)
from .limits import whole_number
from .names import not_one_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ..types import Strategy

DEFAULT = "default"
_COUNTED: dict[str, Callable[..., Strategy]] = {
    "sliding": SlidingWindow,
    "turns": TurnWindow,
    "tokens": TokenWindow,
    "last": KeepLast,
    "prune": lambda protect=40_000: PruneToolResults(protect, protect // 2),
    "ledger": KeepLedger,
    "truncate": Truncate,
}
NAMES = (DEFAULT, *_COUNTED, "fraction")


def strategy_named(text: str) -> Strategy | None:
    """The strategy that a name stands for; None is the library's own choice."""
    if text == DEFAULT:
        return None
    stages = [_stage(name) for name in text.split("+")]
    return stages[0] if len(stages) == 1 else Pipeline(*stages)


def _stage(text: str) -> Strategy:
    name, colon, number = text.strip().partition(":")
    if name == DEFAULT:
        raise InvalidInput("The strategy 'default' stands alone: it takes no number and joins no pipeline.")
    if name == "fraction":
        return KeepFraction(_part(number)) if colon else KeepFraction()
    if name not in _COUNTED:
        raise InvalidInput(not_one_of("strategy", name, NAMES))
    return _COUNTED[name](whole_number(number, f"The strategy {name!r}")) if colon else _COUNTED[name]()


def _part(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidLimit(f"The strategy 'fraction' takes a part between 0 and 1, like 0.4, not {text!r}.") from None


def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names that the last stage of a pipeline may have."""
    from click.shell_completion import CompletionItem

    done, plus, last = incomplete.rpartition("+")
    return [CompletionItem(done + plus + name) for name in NAMES if name.startswith(last)]
