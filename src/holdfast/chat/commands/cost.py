"""/cost: tokens and money of the session and of this run of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...tokens import Usage
from ..cost import ModelCost
from .base import ChatCommand, CommandResult, format_table, split_arguments

if TYPE_CHECKING:
    from ..chat import Chat

_HEADER = ("", "calls", "input", "output", "cache read", "cache write", "USD")
_UNKNOWN = "unknown"


async def _run_cost(chat: Chat, argument: str) -> CommandResult:
    split_arguments(argument, 0, COST.usage)
    costs = await chat.costs()
    rows = [
        *_rows("this session", costs.session, costs.session_compactions),
        *_rows("this run", costs.run, costs.run_compactions),
    ]
    if not rows:
        return CommandResult("No model has reported any usage yet.")
    groups = (*costs.session, *costs.session_compactions, *costs.run, *costs.run_compactions)
    unpriced = sorted({cost.model or "the summarizer" for cost in groups if cost.price is None})
    note = [f"The model catalog has no price for all tokens of {', '.join(unpriced)}."] if unpriced else []
    ends = "Prices are the catalog's list prices. Calls that failed or were stopped report no usage."
    return CommandResult("\n".join([*format_table([_HEADER, *rows], right=range(1, 7)), "", *note, ends]))


def _rows(title: str, replies: Sequence[ModelCost], compactions: Sequence[ModelCost]) -> list[Sequence[str]]:
    """Returns the total of the replies, with a row for each model if there are several, and that of the summaries."""
    if not replies and not compactions:
        return []
    rows = [_row(title, _total(replies))]
    rows += [_row(f"  {cost.model}", cost) for cost in replies] if len(replies) > 1 else []
    return [*rows, _row("  compactions", _total(compactions))]


def _total(costs: Sequence[ModelCost]) -> ModelCost:
    total = ModelCost("")
    for cost in costs:
        total = total.plus(cost.usage, cost.price, cost.calls)
    return total


def _row(title: str, cost: ModelCost) -> Sequence[str]:
    counts = (f"{getattr(cost.usage, name):,}" for name in Usage.__struct_fields__)
    return (title, f"{cost.calls:,}", *counts, _UNKNOWN if cost.price is None else f"{cost.price:.4f}")


COST = ChatCommand("cost", "/cost", "show the tokens and money used so far", _run_cost)
