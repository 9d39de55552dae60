"""Terminal tables of the lab's results, readable at 100 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..lab.contestants import LEDGER, REAL
from ..lab.figures import best_value, format_count, format_milliseconds, format_number, is_best, lead_text, plural
from ..lab.report import KindReport, LabReport, ResultCell
from ..lab.results import BY_KEY, QUANTITIES, Quantity
from ..lab.surprise import HORIZONS

if TYPE_CHECKING:
    from ..lab.report import MeanInterval
    from ..lab.tuning import TuningAdvice

_WIDE_COLUMNS = tuple(quantity.key for quantity in QUANTITIES if quantity.key not in HORIZONS)
_NARROW_COLUMNS = ("names", "in_context", "edited_lines", "users", "errors", "fetch", "invented")
_LEADS = ("in_context", "edited_lines", "fetch", *HORIZONS)
_WIDE_CONSOLE = 98
_BEST, _QUIET = "bold green", "dim"


def print_lab_report(console: Console, report: LabReport) -> None:
    for kind in report.kinds:
        _print_kind(console, kind, report)
    _print_footnotes(console, report)
    for kind in report.kinds:
        _print_leads(console, kind, report)


def _print_kind(console: Console, kind: KindReport, report: LabReport) -> None:
    console.print()
    console.rule(f"{kind.kind}: {plural(kind.sessions, 'session')}, {plural(kind.cuts, 'cut')}", align="left")
    unit = report.settings.surprise_unit
    for budget in report.settings.budgets:
        cells = [cell for cell in kind.cells if cell.budget == budget]
        _print_cells(console, f"{budget:,} tokens", cells)
        _print_surprise(console, f"{budget:,} tokens: surprise, {unit}", cells)
    if kind.in_a_row:
        size = f"{kind.in_a_row[0].budget:,} tokens"
        _print_repeated(
            console, f"{size}, several compactions in a row, compared with one", kind, ("names", "in_context")
        )
        _print_repeated(
            console,
            f"{size}, several in a row, compared with one: surprise, {unit}",
            kind,
            ("surprise_1", "surprise_8"),
        )
    if kind.at_summary:
        average = round(next((cell.tokens for cell in kind.at_summary if cell.contestant == REAL), 0))
        count = kind.at_summary[0].cuts
        title = f"where the tool compacted itself ({count} times): at the size of its summary, {average:,} on average"
        _print_cells(console, title, kind.at_summary)
        _print_surprise(console, f"at the size of its summary: surprise, {unit}", kind.at_summary)
        title = f"{2 * average:,} tokens there: the summary, and as much of the newest messages"
        _print_cells(console, title, kind.after_summary)
        _print_surprise(console, f"{title}: surprise, {unit}", kind.after_summary)


def _print_cells(console: Console, title: str, cells: Sequence[ResultCell]) -> None:
    if not cells:
        return
    wide = console.width >= _WIDE_CONSOLE
    keys = _WIDE_COLUMNS if wide else _NARROW_COLUMNS
    _print_title(console, title)
    table = _new_table()
    for key in keys:
        table.add_column(BY_KEY[key].short.replace(" ", "\n"), justify="right", no_wrap=True)
    for heading in ("ok", "size", "ms") if wide else ("ok", "size"):
        table.add_column(heading, justify="right", no_wrap=True)
    best = {key: best_value(cells, key) for key in keys}
    main = _rows_with_interval(cells)
    for cell in cells:
        style = _QUIET if cell.over else ""
        values = [_value_text(cell, BY_KEY[key], best[key]) for key in keys]
        valid = "–" if cell.valid is None else f"{100 * cell.valid:.0f}%"
        size = Text(format_count(cell.tokens), "red" if cell.over else "")
        table.add_row(
            _contestant_name(cell),
            *values,
            valid,
            size,
            *([format_milliseconds(cell.milliseconds)] if wide else ()),
            style=style,
        )
        if cell.contestant in main and cell.intervals:
            spans = [_format_interval(cell.intervals.get(key), BY_KEY[key]) for key in keys]
            table.add_row(Text("  95 %", _QUIET), *spans)
    console.print(table)


def _print_surprise(console: Console, title: str, cells: Sequence[ResultCell]) -> None:
    """Prints surprise at every horizon, each with its interval."""
    if not _are_measured(cells, HORIZONS):
        return
    _print_title(console, f"{title}; lower is better")
    table = _new_table()
    for key in HORIZONS:
        table.add_column(BY_KEY[key].short, justify="right", no_wrap=True)
        table.add_column("95 %" if any(key in cell.intervals for cell in cells) else "", no_wrap=True)
    best = {key: best_value(cells, key) for key in HORIZONS}
    for cell in cells:
        values = [
            text
            for key in HORIZONS
            for text in (
                _value_text(cell, BY_KEY[key], best[key]),
                _format_interval(cell.intervals.get(key), BY_KEY[key]),
            )
        ]
        table.add_row(_contestant_name(cell), *values, style=_QUIET if cell.over else "")
    console.print(table)


def _are_measured(cells: Iterable[ResultCell], keys: Iterable[str]) -> bool:
    return any(cell.values[key] is not None for cell in cells for key in keys)


def _print_repeated(console: Console, title: str, kind: KindReport, keys: Sequence[str]) -> None:
    """Prints these quantities after several successive compactions, with their change."""
    if not _are_measured(kind.in_a_row, keys):
        return
    rounds = sorted({cell.rounds for cell in kind.in_a_row})
    _print_title(console, title)
    table = _new_table()
    for count in rounds:
        for key in keys:
            table.add_column(f"{count} times\n{BY_KEY[key].short}", justify="right", no_wrap=True)
    by = {(cell.contestant, cell.rounds): cell for cell in kind.in_a_row}
    for contestant in dict.fromkeys(cell.contestant for cell in kind.in_a_row):
        values = []
        for count in rounds:
            cells = [cell for cell in kind.in_a_row if cell.rounds == count]
            cell = by.get((contestant, count))
            for key in keys:
                if cell is None:
                    values.append(Text("–"))
                    continue
                value = _value_text(cell, BY_KEY[key], best_value(cells, key))
                if key in cell.fall:
                    value.append(f" {-round(100 * cell.fall[key]):+4d}%", _QUIET)
                values.append(value)
        table.add_row(_contestant_name(next(cell for cell in kind.in_a_row if cell.contestant == contestant)), *values)
    console.print(table)


def _print_leads(console: Console, kind: KindReport, report: LabReport) -> None:
    """Prints the ledger's lead over the best other contestant."""
    budget, unit = report.settings.focus, report.settings.surprise_unit
    leads = {lead.quantity: lead for lead in kind.leads if lead.budget == budget}
    leads_text = [lead_text(lead, unit) for key in _LEADS if (lead := leads.get(key))]
    if leads_text:
        console.print()
        console.print(f"  [bold]{kind.kind}[/] at {budget:,} tokens, {LEDGER} compared with the best other:")
        for line in leads_text:
            console.print(f"    {line}")


def _print_footnotes(console: Console, report: LabReport) -> None:
    console.print()
    lines = [
        f"Tokens are counted with {report.settings.estimator} for all contestants. Red sizes are over the budget.",
        "fetch: tokens of tool results to read again. ok: valid for the wire format (– for plain text).",
    ]
    if any(_are_measured(kind.cells + kind.at_summary, HORIZONS) for kind in report.kinds):
        by = report.settings.surprise_by or "PPMd, a compressor"
        lines.append(f"surprise: the agent's own text in its next steps, predicted from the context by {by}.")
    lines += [f"Left out: {what}" for what in report.left_out]
    lines += [f"{plural(count, 'file')} not measured: {why}" for why, count in sorted(report.not_measured.items())]
    lines += [f"Failed: {failure}" for failure in report.failures]
    for line in lines:
        _print_sentence(console, line, _QUIET)


def _rows_with_interval(cells: Sequence[ResultCell]) -> set[str]:
    """The ledger, the real summary, and the best other: rows shown with an interval."""
    best = max(
        (cell for cell in cells if not cell.over and cell.contestant not in (LEDGER, REAL)),
        key=lambda cell: cell.values["in_context"] or 0,
        default=None,
    )
    return {LEDGER, REAL, *((best.contestant,) if best else ())}


def _print_sentence(console: Console, line: str, style: str = "") -> None:
    """Prints a sentence wrapped with a left margin."""
    console.print(Text(fill(line, console.width, initial_indent="  ", subsequent_indent="  "), style))


def _print_title(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, "bold"))


def _new_table() -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style=_QUIET)
    table.add_column("", no_wrap=True)
    return table


def _contestant_name(cell: ResultCell) -> Text:
    return Text(cell.contestant, "bold" if cell.contestant == LEDGER else "")


def _value_text(cell: ResultCell, quantity: Quantity, best: float | None) -> Text:
    value = cell.values[quantity.key]
    if value is None:
        return Text("–", _QUIET)
    return Text(format_number(value, quantity), _BEST if is_best(cell, quantity, best) else "")


def _format_interval(mean: MeanInterval | None, quantity: Quantity) -> Text:
    if mean is None or mean.low is None or mean.high is None:
        return Text("")
    if quantity.share or quantity.key in HORIZONS:
        return Text(f"{format_number(mean.low, quantity)}-{format_number(mean.high, quantity)}", _QUIET)
    low, high = (f"{value / 1000:.0f}k" if value >= 1000 else f"{value:.0f}" for value in (mean.low, mean.high))
    return Text(f"{low.removesuffix('k') if high.endswith('k') and low.endswith('k') else low}-{high}", _QUIET)


def print_tuning_advice(console: Console, advice: TuningAdvice) -> None:
    """Prints retention and cost of each policy, and the recommended one."""
    title = f"{plural(advice.sessions, 'session')}, {advice.calls:,} model calls; {advice.compacted} would compact"
    _print_title(console, title)
    table = _new_table()
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
    _print_sentence(console, advice.sentence)
    note = "Prices are from the catalog, for input only; cache expiry between calls is ignored."
    _print_sentence(console, note, _QUIET)
