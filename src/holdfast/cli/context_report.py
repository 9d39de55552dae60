"""Terminal output of `holdfast inspect`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ..compaction.bars import KIND_STYLES, bar, share_bar
from ..compaction.breakdown import ContextBreakdown, align_shares
from ..io.text import printable
from ..messages import Problem
from ..tokens import Calibration
from .console import grid, heading, is_ascii_only, print_blocks, unwrapped_line
from .model_window import BUDGET_SHARE, ModelWindow
from .sources import Source


class ContextReport(msgspec.Struct, frozen=True):
    """Token breakdown, window, past compactions and problems of one context."""

    source: Source
    window: ModelWindow
    estimator: str
    format: str
    breakdown: ContextBreakdown
    covered_estimate: int | None
    """Estimated tokens of the messages that the provider's count covers."""
    summaries: tuple[int, ...]
    """Token counts of past summaries."""
    problems: Sequence[Problem]

    @property
    def tokens(self) -> int:
        """The session's size; of a file, the provider's count plus an estimate of newer messages, or an estimate."""
        reported = self.source.reported
        if self.source.size is not None:
            return self.source.size.tokens
        if reported is None or self.covered_estimate is None:
            return self.breakdown.tokens
        return Calibration.from_report(self.covered_estimate, reported.tokens).tokens(self.breakdown.tokens)


MAX_SHARE_ROWS = 14
MAX_PROBLEMS = 10
_MIN_WIDTH_OF_BARS = 56
OWNER_WIDTH = 16
"""Column width for the owner's name."""


def print_context_report(console: Console, report: ContextReport, largest: int) -> None:
    plain = is_ascii_only(console)
    print_blocks(
        console,
        [unwrapped_line(report.source.title, "bold"), _subtitle(report)],
        _window_gauge(report, console.width, plain=plain),
        _share_table(report, console.width, plain=plain),
        _context_facts(report),
        _largest_results(report, largest),
        _past_compactions(report),
        _problem_list(report),
    )


def _subtitle(report: ContextReport) -> Text:
    source = report.source
    kind = {"messages": "messages", "holdfast": "Holdfast session"}.get(source.kind, f"{source.kind} session")
    fields = [kind, report.format or "plain text", report.window.description]
    return Text(" · ".join(map(printable, fields)), "bright_black")


def _window_gauge(report: ContextReport, width: int, *, plain: bool) -> Text:
    """Fill level of the window: green, yellow once compaction is due, red on overflow."""
    tokens, window = report.tokens, report.window.tokens
    part = tokens / window
    style = "green" if part <= BUDGET_SHARE else "yellow" if part <= 1 else "red"
    line = bar([(min(tokens, window), style)], window, max(4, width - 40), plain=plain, track=True)
    return line.append(f"  {tokens:,}", "bold").append(f" of {window:,} tokens, {100 * part:.0f} %")


def _share_table(report: ContextReport, width: int, *, plain: bool) -> Table:
    parts = report.breakdown
    rows = [row[0] for row in align_shares(parts, most=MAX_SHARE_ROWS)]
    full = max(share.tokens for share in rows)
    has_bars = width >= _MIN_WIDTH_OF_BARS
    table = grid("left", "right", "right", *(["left"] if has_bars else []), "left")
    table.columns[0].max_width = 24
    for share in rows:
        counted = f"{share.count} call{'s' if share.count != 1 else ''}" if share.kind == "tool" else f"{share.count}"
        table.add_row(
            Text(printable(share.label), KIND_STYLES[share.kind]),
            Text(f"{share.tokens:,}"),
            Text(f"{100 * share.tokens / max(1, parts.tokens):.0f} %", "bright_black"),
            *([share_bar(share, full, max(4, width - 60), plain=plain)] if has_bars else []),
            Text(counted, "bright_black"),
        )
    return table


def _context_facts(report: ContextReport) -> Table:
    source, parts, reported = report.source, report.breakdown, report.source.reported
    table = grid("left", "rest")

    def fact(label: str, text: str) -> None:
        table.add_row(Text(label, "bright_black"), Text(text))

    earlier = f"; {source.logged:,} in the whole log (--whole)" if source.logged > parts.messages else ""
    fact("messages", f"{parts.messages:,}{earlier}")
    if (turn := parts.largest_turn) is not None:
        fact("turns", f"{len(parts.turns):,}")
        fact("largest", f"turn {turn.number}, {turn.tokens:,} tokens, from message {turn.index}: {turn.line}")
    fact("tokens", f"{parts.tokens:,} counted with {report.estimator}")
    if source.size is not None:
        fact("size", f"{source.size.tokens:,} {source.size.basis}")
        for remark in source.size.remarks:
            fact("remark", remark)
    if reported is not None and report.covered_estimate is not None:
        where = "all of it" if reported.covers >= parts.messages else f"the first {reported.covers:,} messages"
        fact(
            "usage", f"{reported.tokens:,} reported by the provider for {where}, {report.covered_estimate:,} estimated"
        )
    for note in source.notes[:3]:
        fact("note", printable(note))
    if (more := len(source.notes) - 3) > 0:
        fact("", f"and {more} more in --json")
    return table


def _largest_results(report: ContextReport, largest: int) -> list[RenderableType] | None:
    results = report.breakdown.results[:largest]
    if not results:
        return None
    table = grid("right", "left", "right", "rest")
    for result in results:
        table.add_row(
            Text(str(result.index), "bright_black"),
            Text(printable(result.tool), KIND_STYLES["tool"]),
            Text(f"{result.tokens:,}"),
            Text(result.line, "bright_black"),
        )
    return [heading("largest results"), table]


def _past_compactions(report: ContextReport) -> list[RenderableType] | None:
    if not report.source.past_compactions:
        return None
    table = grid("left", "right", "left", "right", "left")
    for past, size in zip(report.source.past_compactions, report.summaries, strict=True):
        summary = f"summary of {size:,} tokens" if past.summary else "" if past.by else "summary not in the file"
        table.add_row(
            Text((past.time or "")[:19].replace("T", " "), "bright_black"),
            Text("?" if past.before is None else f"{past.before:,}"),
            Text("→"),
            Text("?" if past.after is None else f"{past.after:,}"),
            Text(", ".join(filter(None, (past.by and printable(past.by), summary))), "bright_black"),
        )
    return [heading("past compactions"), table]


def _problem_list(report: ContextReport) -> Text:
    problems = report.problems
    name = report.format or "openai-chat"
    if not problems:
        return Text("problems  ", "bright_black").append(f"none: valid for {name}", "green")
    out = Text(f"{len(problems)} problem{'s' if len(problems) > 1 else ''} for {name}", "bold red")
    for problem in problems[:MAX_PROBLEMS]:
        out.append(f"\n{printable(str(problem))}", "not bold default")
    if (more := len(problems) - MAX_PROBLEMS) > 0:
        out.append(f"\nand {more} more", "not bold bright_black")
    return out


def print_session_list(console: Console, path: str, rows: list[dict[str, Any]], total: int) -> None:
    """Prints the sessions of a store, newest first."""
    table = grid("left", "left", "right", "right", "left")
    table.columns[0].overflow = "ignore"  # ids are for copying: never truncate them
    table.columns[0].min_width = max((len(printable(row["short"])) for row in rows), default=None)
    table.columns[1].max_width = OWNER_WIDTH
    table.add_row(*(Text(name, "bright_black") for name in ("session", "owner", "events", "tokens", "last activity")))
    for row in rows:
        table.add_row(
            Text(printable(row["short"])),
            Text(printable(row["owner"] or "–")),
            Text(f"{row['events']:,}"),
            Text(f"{row['tokens']:,}"),
            Text(row["last"][:19].replace("T", " "), "bright_black"),
        )
    count = f"{total:,} session{'s' if total != 1 else ''}"
    more = total - len(rows)
    print_blocks(
        console,
        [unwrapped_line(path, "bold"), Text(count, "bright_black")],
        table if rows else None,
        Text(f"and {more:,} older sessions (--json lists all)", "bright_black") if more > 0 else None,
        unwrapped_line(
            f"To inspect one: holdfast inspect {shlex.join([path, '--session', rows[0]['short']])}"
            if rows
            else "No sessions yet."
        ),
    )
