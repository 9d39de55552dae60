"""What a report says of the summary: who wrote it, what stood in for it, what it cost, what to mind (P15, H4)."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from ..anatomy import printable
from ..compaction import Cost
from ..tokens import tokens_in
from .blocks import grid
from .run import Run


def told(run: Run) -> list[RenderableType] | None:
    """None where no model had a part in it, and none was missed."""
    result, table = run.result, grid("left", "left")
    if (written := _written(run)) is not None:
        table.add_row(Text("summary", "bright_black"), written)
    if result.cost is not None and result.cost.calls:
        table.add_row(Text("cost", "bright_black"), Text(_spent(result.cost)))
        table.add_row(Text("saves", "bright_black"), Text(_saved(result.cost)))
    for column in table.columns:
        column.no_wrap = False
    for remark in result.remarks:
        table.add_row(Text("remark", "bright_black"), Text(printable(remark), "yellow"))
    if run.notice is not None:
        table.add_row(Text("notice", "bright_black"), Text(run.notice))
    return [table] if table.row_count else None


def _written(run: Run) -> Text | None:
    result, way = run.result, run.way
    if run.summary is not None:
        tokens = tokens_in(run.estimator, run.summary)
        return Text(f"{tokens:,} tokens, written by {way.summarizer}")
    if not result.fallback:
        return None
    if way.model is not None:
        return Text(f"none: the {result.fallback} stands in for {way.summarizer}", "yellow")
    resort = f", the last resort of {way.preset.name}," if way.preset else ""
    return Text(f"none: no --summarizer was named, so the {result.fallback}{resort} stands in", "yellow")


def _spent(cost: Cost) -> str:
    usage = cost.usage
    read = usage.input + usage.cache_read + usage.cache_write
    if not read + usage.output:
        return f"{_calls(cost.calls)}, tokens not reported"
    price = "" if cost.price is None else f", {_dollars(cost.price)}"
    return f"{_calls(cost.calls)}, {read:,} tokens in, {usage.output:,} out{price}"


def _saved(cost: Cost) -> str:
    saved = f"{cost.saved_per_call:,} tokens a call"
    if cost.pays_after is None:
        return f"{saved}; it does not pay for itself"
    return f"{saved}; pays for itself after {_calls(cost.pays_after)}"


def _calls(number: int) -> str:
    return f"{number:,} call" if number == 1 else f"{number:,} calls"


def _dollars(price: float) -> str:
    return f"${price:,.2f}" if price >= 1 else f"${price:.4f}"
