"""Figures of a report as text, the same in the terminal and in a browser."""

from __future__ import annotations

from collections.abc import Iterable

from .report import LedgerLead, ResultCell
from .results import BY_KEY, Quantity
from .surprise import HORIZONS


def best_value(cells: Iterable[ResultCell], key: str) -> float | None:
    """Best value among contestants within the budget."""
    values = [value for cell in cells if not cell.over and (value := cell.values.get(key)) is not None]
    if not values:
        return None
    return max(values) if BY_KEY[key].more_is_better else min(values)


def is_best(cell: ResultCell, quantity: Quantity, best: float | None) -> bool:
    """Whether a value reads like the best one; invented names are never good."""
    value = cell.values.get(quantity.key)
    if value is None or best is None or cell.over or (quantity.key == "invented" and value > 0):
        return False
    return format_number(value, quantity) == format_number(best, quantity)


def lead_text(lead: LedgerLead, surprise_unit: str) -> str:
    """The ledger's value and its lead over the best other contestant."""
    quantity = BY_KEY[lead.quantity]
    unit = f" {surprise_unit}" if lead.quantity in HORIZONS else ""
    ahead, text = lead.ahead, f"{quantity.title} {format_number(lead.ledger, quantity)}{unit}, "
    text += format_signed(ahead.value, quantity)
    if ahead.low is not None and ahead.high is not None:
        text += f" ({format_signed(ahead.low, quantity)} to {format_signed(ahead.high, quantity)})"
    return f"{text} against {lead.best}"


def format_number(value: float, quantity: Quantity) -> str:
    if quantity.key in HORIZONS:
        return f"{value:.2f}"
    if quantity.share:
        return f"{value:.2f}".removeprefix("0") if value < 0.995 else "1.0"
    if quantity.key == "invented":
        return f"{value:.2f}" if 0 < value < 0.05 else f"{value:.1f}"
    return format_count(value)


def format_signed(value: float, quantity: Quantity) -> str:
    return f"{value:+.2f}" if quantity.share or quantity.key in HORIZONS else f"{value:+,.0f}"


def format_count(value: float) -> str:
    if value < 1000:
        return f"{value:.0f}"
    return f"{value / 1000:.1f}k" if value < 10_000 else f"{value / 1000:.0f}k"


def format_milliseconds(milliseconds: float) -> str:
    return f"{milliseconds:.0f}" if milliseconds >= 10 else f"{milliseconds:.1f}"


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
