"""The lab's results as tables that are readable at 100 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..lab.contestants import LEDGER, REAL
from ..lab.quantities import BY_KEY, QUANTITIES, Quantity
from ..lab.report import Cell, Kind, Lead, Report

if TYPE_CHECKING:
    from ..lab.bootstrap import Mean
    from ..lab.tuning import Advice

_ALL = tuple(quantity.key for quantity in QUANTITIES)
_NARROW = ("names", "in_context", "edited_lines", "users", "errors", "fetch", "invented")
_WIDE_ENOUGH = 98
_BEST, _QUIET = "bold green", "dim"


def draw(console: Console, report: Report) -> None:
    for kind in report.kinds:
        _draw_kind(console, kind, report)
    _footnotes(console, report)
    for kind in report.kinds:
        _headline(console, kind, report.settings.focus)


def _draw_kind(console: Console, kind: Kind, report: Report) -> None:
    console.print()
    console.rule(f"{kind.kind}: {_plural(kind.sessions, 'session')}, {_plural(kind.cuts, 'cut')}", align="left")
    for budget in report.settings.budgets:
        _draw_cells(console, f"{budget:,} tokens", [cell for cell in kind.cells if cell.budget == budget])
    if kind.in_a_row:
        _draw_rows(console, kind)
    if kind.at_summary:
        size = round(next((cell.tokens for cell in kind.at_summary if cell.contestant == REAL), 0))
        count = kind.at_summary[0].cuts
        title = f"where the tool compacted itself ({count} times): at the size of its summary, {size:,} on average"
        _draw_cells(console, title, kind.at_summary)


def _draw_cells(console: Console, title: str, cells: Sequence[Cell]) -> None:
    if not cells:
        return
    wide = console.width >= _WIDE_ENOUGH
    keys = _ALL if wide else _NARROW
    _title(console, title)
    table = _table()
    for key in keys:
        table.add_column(BY_KEY[key].short.replace(" ", "\n"), justify="right", no_wrap=True)
    for heading in ("ok", "size", "ms") if wide else ("ok", "size"):
        table.add_column(heading, justify="right", no_wrap=True)
    best = {key: best_of(cells, key) for key in keys}
    main = _main_rows(cells)
    for cell in cells:
        style = _QUIET if cell.over else ""
        values = [_value(cell, BY_KEY[key], best[key]) for key in keys]
        valid = "–" if cell.valid is None else f"{100 * cell.valid:.0f}%"
        size = Text(_count(cell.tokens), "red" if cell.over else "")
        table.add_row(_name(cell), *values, valid, size, *([_milliseconds(cell)] if wide else ()), style=style)
        if cell.contestant in main and cell.intervals:
            spans = [_span(cell.intervals.get(key), BY_KEY[key]) for key in keys]
            table.add_row(Text("  95 %", _QUIET), *spans)
    console.print(table)


def _draw_rows(console: Console, kind: Kind) -> None:
    """What several compactions in a row leave."""
    rounds = sorted({cell.rounds for cell in kind.in_a_row})
    _title(console, f"{kind.in_a_row[0].budget:,} tokens, several compactions in a row: what is left, beside one")
    table = _table()
    for count in rounds:
        for short in ("names", "in context"):
            table.add_column(f"{count} times\n{short}", justify="right", no_wrap=True)
    by = {(cell.contestant, cell.rounds): cell for cell in kind.in_a_row}
    for contestant in dict.fromkeys(cell.contestant for cell in kind.in_a_row):
        values = []
        for count in rounds:
            cells = [cell for cell in kind.in_a_row if cell.rounds == count]
            cell = by.get((contestant, count))
            for key in ("names", "in_context"):
                if cell is None:
                    values.append(Text("–"))
                    continue
                said = _value(cell, BY_KEY[key], best_of(cells, key))
                if key in cell.fall:
                    said.append(f" {-round(100 * cell.fall[key]):+4d}%", _QUIET)
                values.append(said)
        table.add_row(_name(next(cell for cell in kind.in_a_row if cell.contestant == contestant)), *values)
    console.print(table)


def _headline(console: Console, kind: Kind, budget: int) -> None:
    """One sentence a kind: how far the ledger is ahead of the best of all others."""
    leads = {lead.quantity: lead for lead in kind.leads if lead.budget == budget}
    said = [_said(lead) for key in ("in_context", "edited_lines", "fetch") if (lead := leads.get(key))]
    if said:
        console.print()
        console.print(f"  [bold]{kind.kind}[/] at {budget:,} tokens, {LEDGER} beside the best other:")
        for line in said:
            console.print(f"    {line}")


def _said(lead: Lead) -> str:
    quantity = BY_KEY[lead.quantity]
    ahead, said = lead.ahead, f"{quantity.title} {_number(lead.ledger, quantity)}, "
    said += _signed(ahead.value, quantity)
    if ahead.low is not None and ahead.high is not None:
        said += f" ({_signed(ahead.low, quantity)} to {_signed(ahead.high, quantity)})"
    return f"{said} against {lead.best}"


def _footnotes(console: Console, report: Report) -> None:
    console.print()
    lines = [
        f"Tokens are counted with {report.settings.estimator} for everyone. Red sizes are over the budget: no prize.",
        "fetch: tokens of tool results to be read again. ok: valid for its wire format (– for text alone).",
    ]
    lines += [f"Left out: {what}" for what in report.left_out]
    lines += [f"{_plural(count, 'file')} not measured: {why}" for why, count in sorted(report.not_measured.items())]
    lines += [f"Failed: {failure}" for failure in report.failures]
    for line in lines:
        _say(console, line, _QUIET)


def best_of(cells: Iterable[Cell], key: str) -> float | None:
    """The best value among those who keep to the budget."""
    values = [value for cell in cells if not cell.over and (value := cell.values[key]) is not None]
    if not values:
        return None
    return max(values) if BY_KEY[key].more_is_better else min(values)


def _main_rows(cells: Sequence[Cell]) -> set[str]:
    """The ledger, what was really written, and the best of the others: those get an interval."""
    best = max(
        (cell for cell in cells if not cell.over and cell.contestant not in (LEDGER, REAL)),
        key=lambda cell: cell.values["in_context"] or 0,
        default=None,
    )
    return {LEDGER, REAL, *((best.contestant,) if best else ())}


def _say(console: Console, line: str, style: str = "") -> None:
    """A sentence, set in from the left on each of its lines."""
    console.print(Text(fill(line, console.width, initial_indent="  ", subsequent_indent="  "), style))


def _title(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, "bold"))


def _table() -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style=_QUIET)
    table.add_column("", no_wrap=True)
    return table


def _name(cell: Cell) -> Text:
    return Text(cell.contestant, "bold" if cell.contestant == LEDGER else "")


def _value(cell: Cell, quantity: Quantity, best: float | None) -> Text:
    value = cell.values[quantity.key]
    if value is None:
        return Text("–", _QUIET)
    said = _number(value, quantity)
    is_best = not cell.over and best is not None and said == _number(best, quantity)
    wrong = quantity.key == "invented" and value > 0
    return Text(said, _BEST if is_best and not wrong else "")


def _number(value: float, quantity: Quantity) -> str:
    if quantity.share:
        return f"{value:.2f}".removeprefix("0") if value < 0.995 else "1.0"
    if quantity.key == "invented":
        return f"{value:.2f}" if 0 < value < 0.05 else f"{value:.1f}"
    return _count(value)


def _signed(value: float, quantity: Quantity) -> str:
    return f"{value:+.2f}" if quantity.share else f"{value:+,.0f}"


def _span(mean: Mean | None, quantity: Quantity) -> Text:
    if mean is None or mean.low is None or mean.high is None:
        return Text("")
    if quantity.share:
        return Text(f"{_number(mean.low, quantity)}-{_number(mean.high, quantity)}", _QUIET)
    low, high = (f"{value / 1000:.0f}k" if value >= 1000 else f"{value:.0f}" for value in (mean.low, mean.high))
    return Text(f"{low.removesuffix('k') if high.endswith('k') and low.endswith('k') else low}-{high}", _QUIET)


def _count(value: float) -> str:
    if value < 1000:
        return f"{value:.0f}"
    return f"{value / 1000:.1f}k" if value < 10_000 else f"{value / 1000:.0f}k"


def _milliseconds(cell: Cell) -> str:
    return f"{cell.milliseconds:.0f}" if cell.milliseconds >= 10 else f"{cell.milliseconds:.1f}"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def draw_advice(console: Console, advice: Advice) -> None:
    """What each policy would have kept and cost, and the one to take."""
    title = f"{_plural(advice.sessions, 'session')}, {advice.calls:,} model calls; {advice.compacted} would compact"
    _title(console, title)
    table = _table()
    for heading in ("compact\nat", "down\nto", "compac-\ntions", "tokens\nsent", "from\ncache", "input\ncost"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("names in context\nafter it", justify="right", no_wrap=True)
    for line in advice.lines:
        policy = line.policy
        table.add_row(
            policy.strategy,
            f"{policy.threshold:.0%}",
            f"{policy.target:.0%}",
            f"{line.compactions:,}",
            f"{line.sent / 1e6:,.1f}M",
            f"{line.cached / max(1, line.sent):.0%}",
            "–" if line.cost is None else f"${line.cost:,.2f}",
            "–" if line.kept is None else f"{line.kept:.2f}",
            style=_BEST if line == advice.best else "",
        )
    console.print(table)
    console.print()
    _say(console, advice.sentence)
    note = "Prices are the catalog's, for input alone; a cache that expires between two calls is not counted."
    _say(console, note, _QUIET)
