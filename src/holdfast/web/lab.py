"""Reports of the lab: a list of those in a folder, and each as tables and one chart, rendered on the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..errors import InvalidInput
from ..io.text import printable
from ..messages import to_json
from .access import Access
from .addresses import decode_id, encode_id
from .html import Child, Html, document, join, link, tag, when
from .replies import page_reply, problem_reply

if TYPE_CHECKING:  # the lab takes long to import: it is imported when a report is first opened, in a thread
    from ..lab.report import KindReport, LabReport, ResultCell
    from ..lab.results import Quantity
    from ..lab.saved import SavedReport
    from ..lab.tuning import TuningAdvice

_MAX_ROWS = 60
_MAX_TEXT = 300
_LEAD = "in_context"
"""The quantity of the chart and of the sentence."""


class LabPages:
    """Pages of the reports in a folder; they name sessions of everyone, so an owner's login does not see them."""

    def __init__(self, access: Access, folder: Path | None) -> None:
        self._access, self._folder = access, folder

    def routes(self) -> list[Route]:
        return [Route("/lab", self._list), Route("/lab/{name}", self._report)]

    def _closed(self, request: Request) -> str:
        """Why there are no reports to see; empty if there may be some."""
        if self._access.owner(request.headers) is not None:
            return (
                "Reports are about sessions of every owner: they are shown where --owner and --key-file are not used."
            )
        if self._folder is None:
            return "Name the folder in which holdfast lab wrote its reports: holdfast web --reports FOLDER."
        return ""

    async def _list(self, request: Request) -> Response:
        if (why := self._closed(request)) or self._folder is None:
            return page_reply(list_page((), why))
        found = await anyio.to_thread.run_sync(_list_reports, self._folder)
        return page_reply(list_page(found, f"There are no reports in {self._folder}: holdfast lab writes them."))

    async def _report(self, request: Request) -> Response:
        if (why := self._closed(request)) or self._folder is None:
            return problem_reply(404, why, request.url.path)
        name, query = decode_id(request.path_params["name"]), request.query_params
        try:
            page = await anyio.to_thread.run_sync(
                _render, self._folder, name, query.get("kind", ""), query.get("budget", "")
            )
        except InvalidInput as problem:
            return problem_reply(404, str(problem), request.url.path)
        return page_reply(page)


def _list_reports(folder: Path) -> list[SavedReport]:
    from ..lab.saved import list_reports

    return list_reports(folder)


def _render(folder: Path, name: str, kind: str, budget: str) -> Html:
    from ..lab.report import LabReport
    from ..lab.saved import read_report

    found = read_report(folder, name)
    return report_page(name, found, kind, budget) if isinstance(found, LabReport) else tuning_page(name, found)


def list_page(reports: Sequence[SavedReport], why: str) -> Html:
    """Reports, newest first; `why` says what to do if there are none."""
    head = tag("tr", *(tag("th", name, scope="col", class_=kind) for name, kind in _LISTED))
    rows = [
        tag(
            "tr",
            tag("td", link(_text(one.name), f"/lab/{encode_id(one.name)}"), class_="main"),
            tag("td", one.kind, class_="wide"),
            tag("td", f"{one.size / 1000:,.0f} kB", class_="n wide"),
            tag("td", when(one.written)),
        )
        for one in reports
    ]
    return document(
        "Lab",
        tag("h1", "Lab reports"),
        tag("table", tag("thead", head), tag("tbody", *rows), class_="listing")
        if rows
        else tag("p", _text(why), class_="lead"),
        script="links.js",
        section="lab",
    )


_LISTED = (("Report", "main"), ("Kind", "wide"), ("Size", "n wide"), ("Written", ""))


def report_page(name: str, report: LabReport, kind: str, budget: str) -> Html:
    """Retention by contestant for one kind of session and one budget, both chosen in the address."""
    from ..lab.figures import lead_text, plural

    settings = report.settings
    chosen = next((one for one in report.kinds if one.kind == kind), report.kinds[0] if report.kinds else None)
    if chosen is None or not settings.budgets:
        return _page(name, "", tag("p", "This report measured no session.", class_="lead"))
    budgets = settings.budgets[:20]
    size = int(budget) if budget in map(str, budgets) else settings.focus
    path = f"/lab/{encode_id(name)}"

    def address(kind: str, budget: int) -> str:
        return f"{path}?{urlencode({'kind': kind, 'budget': budget}, errors='replace')}"

    leads = [lead for lead in chosen.leads if lead.budget == size and lead.quantity == _LEAD]
    facts = f"{plural(chosen.sessions, 'session')}, {plural(chosen.cuts, 'cut')}, tokens counted with "
    return _page(
        name,
        facts + settings.estimator,
        tag(
            "nav",
            *(_choice(_text(one.kind), address(one.kind, size), one is chosen) for one in report.kinds[:20]),
            aria_label="Kind of session",
        ),
        *(tag("p", _text(f"Ledger: {lead_text(lead, settings.surprise_unit)}"), class_="lead") for lead in leads),
        tag("h2", "Names in context by budget"),
        tag("p", "Colored: the ledger. Gray: all others. Higher is better.", class_="quiet"),
        tag("div", id="curve", class_="strip", data_curve=to_json(_curve(chosen, budgets))),
        tag("h2", "By contestant"),
        tag(
            "nav",
            *(_choice(f"{one:,} tokens", address(chosen.kind, one), one == size) for one in budgets),
            aria_label="Budget",
        ),
        *_tables(chosen, size),
        *_notes(report),
    )


def _choice(text: str, path: str, current: bool) -> Html:
    return link(text, path, aria_current="page" if current else None)


def _curve(kind: KindReport, budgets: Sequence[int]) -> dict[str, Any]:
    """Points of the chart: a line for each contestant, the ledger's last."""
    from ..lab.contestants import LEDGER

    at = {(cell.contestant, cell.budget): cell.values.get(_LEAD) for cell in kind.cells}
    names = dict.fromkeys(cell.contestant for cell in kind.cells)
    ordered = [*(name for name in names if name != LEDGER), *(name for name in names if name == LEDGER)][-_MAX_ROWS:]
    lines = [[at.get((name, budget)) for budget in budgets] for name in ordered]
    return {"budgets": budgets, "lines": lines, "main": bool(ordered) and ordered[-1] == LEDGER}


def _tables(kind: KindReport, budget: int) -> Iterable[Child]:
    from ..lab.results import QUANTITIES
    from ..lab.surprise import HORIZONS

    kept = [quantity for quantity in QUANTITIES if quantity.key not in HORIZONS]
    surprise = [quantity for quantity in QUANTITIES if quantity.key in HORIZONS]
    cells = [cell for cell in kind.cells if cell.budget == budget]
    yield _cells_table("Retention", cells, kept)
    if any(cell.values.get(quantity.key) is not None for cell in cells for quantity in surprise):
        yield from _section("Surprise: lower is better", cells, surprise)
    for rounds in sorted({cell.rounds for cell in kind.in_a_row})[:10]:
        title = f"After {rounds} compactions in a row, {kind.in_a_row[0].budget:,} tokens"
        yield from _section(title, [cell for cell in kind.in_a_row if cell.rounds == rounds], kept)
    if kind.at_summary:
        yield from _section("At the size of the tool's own summary", kind.at_summary, kept)


def _section(title: str, cells: Sequence[ResultCell], quantities: Sequence[Quantity]) -> Iterable[Child]:
    yield tag("h2", title)
    yield _cells_table(title, cells, quantities)


def _cells_table(label: str, cells: Sequence[ResultCell], quantities: Sequence[Quantity]) -> Html:
    from ..lab.contestants import LEDGER
    from ..lab.figures import best_value, format_count, format_milliseconds, format_number, is_best

    best = {quantity.key: best_value(cells, quantity.key) for quantity in quantities}

    def value(cell: ResultCell, quantity: Quantity) -> Html:
        found = cell.values.get(quantity.key)
        text = "–" if found is None else format_number(found, quantity)
        return tag("strong", text) if is_best(cell, quantity, best[quantity.key]) else join(text)

    columns: list[tuple[str, str, Callable[[ResultCell], Child]]] = [
        *((one.short, one.about, lambda cell, one=one: value(cell, one)) for one in quantities),
        ("ok", "valid for the wire format", lambda cell: "–" if cell.valid is None else f"{cell.valid:.0%}"),
        ("size", "tokens of the result", lambda cell: format_count(cell.tokens)),
        ("ms", "median time of a compaction", lambda cell: format_milliseconds(cell.milliseconds)),
    ]
    head = tag(
        "tr",
        tag("th", "Contestant", scope="col"),
        *(tag("th", name, scope="col", class_="n", title=about) for name, about, _ in columns),
    )
    rows = [
        tag(
            "tr",
            tag("th", _text(cell.contestant), scope="row", class_="own" if cell.contestant == LEDGER else None),
            *(tag("td", draw(cell), class_="n") for _, _, draw in columns),
            class_="archived" if cell.over else None,
        )
        for cell in cells[:_MAX_ROWS]
    ]
    return _scrolling(label, tag("table", tag("thead", head), tag("tbody", *rows), class_="cells"))


def _notes(report: LabReport) -> Iterable[Child]:
    lines = [
        "Bold: the best value within the budget. Dim: over the budget by more than 5 %.",
        *(f"Left out: {what}" for what in report.left_out),
        *(f"{count:,} not measured: {why}" for why, count in sorted(report.not_measured.items())),
        *(f"Failed: {failure}" for failure in report.failures),
    ]
    yield tag("h2", "Notes")
    yield from (tag("p", _text(line), class_="quiet") for line in lines[:_MAX_ROWS])


def tuning_page(name: str, advice: TuningAdvice) -> Html:
    """Cost and retention of each policy, and the recommended one."""
    from ..lab.figures import plural

    head = tag("tr", *(tag("th", column, scope="col", class_=kind) for column, kind in _POLICY_COLUMNS))
    rows = [
        tag(
            "tr",
            tag("th", _text(one.policy.strategy), scope="row", class_="own" if one == advice.best else None),
            *(
                tag("td", tag("strong", text) if one == advice.best else text, class_="n")
                for text in (
                    f"{one.policy.threshold:.0%}",
                    f"{one.policy.target:.0%}",
                    f"{one.compactions:,}",
                    f"{one.sent / 1e6:,.1f}M",
                    f"{one.cached / max(1, one.sent):.0%}",
                    "–" if one.cost is None else f"${one.cost:,.2f}",
                    "–" if one.kept is None else f"{one.kept:.2f}",
                )
            ),
        )
        for one in advice.lines[:_MAX_ROWS]
    ]
    counted = f"{plural(advice.sessions, 'session')}, {plural(advice.calls, 'model call')}"
    return _page(
        name,
        f"{counted}; {advice.compacted:,} would compact",
        tag("p", _text(advice.sentence), class_="lead"),
        _scrolling("Policies", tag("table", tag("thead", head), tag("tbody", *rows), class_="cells")),
    )


_POLICY_COLUMNS = (
    ("Strategy", ""),
    ("compact at", "n"),
    ("down to", "n"),
    ("compactions", "n"),
    ("tokens sent", "n"),
    ("from cache", "n"),
    ("input cost", "n"),
    ("names in context", "n"),
)


def _page(name: str, facts: str, *body: Child) -> Html:
    title = tag("div", tag("h1", _text(name)), tag("p", _text(facts), class_="quiet"), class_="title")
    return document(f"{_text(name)} · Lab", title, *body, script="lab.js", section="lab")


def _scrolling(label: str, table: Html) -> Html:
    """Returns a table that scrolls by itself where the screen is narrow."""
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=label)


def _text(text: str) -> str:
    return printable(text)[:_MAX_TEXT]
