"""What `holdfast inspect` shows a person."""

from __future__ import annotations

import shlex
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ..anatomy import STYLES, bar, printable, side_by_side, single
from .blocks import ascii_only, grid, heading, show, whole_line
from .portrait import Portrait
from .window import SHARE

ROWS = 14
PROBLEMS = 10
OWNER = 16
"""Columns for the name of an owner."""


def draw(console: Console, portrait: Portrait, largest: int) -> None:
    plain = ascii_only(console)
    show(
        console,
        [whole_line(portrait.source.title, "bold"), _about(portrait)],
        _gauge(portrait, console.width, plain=plain),
        _shares(portrait, console.width, plain=plain),
        _facts(portrait),
        _results(portrait, largest),
        _past(portrait),
        _problems(portrait),
    )


def _about(portrait: Portrait) -> Text:
    source = portrait.source
    kind = {"messages": "messages", "holdfast": "Holdfast session"}.get(source.kind, f"{source.kind} session")
    words = [kind, portrait.format or "plain text", portrait.window.words]
    return Text(" · ".join(map(printable, words)), "bright_black")


def _gauge(portrait: Portrait, width: int, *, plain: bool) -> Text:
    """How full the window is: green, yellow from where compaction is due, red when it overflows."""
    tokens, window = portrait.tokens, portrait.window.tokens
    part = tokens / window
    style = "green" if part <= SHARE else "yellow" if part <= 1 else "red"
    line = bar([(min(tokens, window), style)], window, max(4, width - 40), plain=plain, track=True)
    return line.append(f"  {tokens:,}", "bold").append(f" of {window:,} tokens, {100 * part:.0f} %")


def _shares(portrait: Portrait, width: int, *, plain: bool) -> Table:
    parts = portrait.anatomy
    rows = [row[0] for row in side_by_side(parts, most=ROWS)]
    full = max(share.tokens for share in rows)
    table = grid("left", "right", "right", "left", "left")
    table.columns[0].max_width = 24
    for share in rows:
        counted = f"{share.count} call{'s' if share.count != 1 else ''}" if share.kind == "tool" else f"{share.count}"
        table.add_row(
            Text(printable(share.label), STYLES[share.kind]),
            Text(f"{share.tokens:,}"),
            Text(f"{100 * share.tokens / max(1, parts.tokens):.0f} %", "bright_black"),
            single(share, full, max(4, width - 60), plain=plain),
            Text(counted, "bright_black"),
        )
    return table


def _facts(portrait: Portrait) -> Table:
    source, parts, reported = portrait.source, portrait.anatomy, portrait.source.reported
    table = grid("left", "rest")

    def fact(label: str, words: str) -> None:
        table.add_row(Text(label, "bright_black"), Text(words))

    earlier = f"; {source.logged:,} in the whole log (--whole)" if source.logged > parts.messages else ""
    fact("messages", f"{parts.messages:,}{earlier}")
    if (turn := parts.largest_turn) is not None:
        fact("turns", f"{len(parts.turns):,}")
        fact("largest", f"turn {turn.number}, {turn.tokens:,} tokens, from message {turn.index}: {turn.line}")
    fact("tokens", f"{parts.tokens:,} counted with {portrait.estimator}")
    if reported is not None and portrait.covered is not None:
        where = "all of it" if reported.covers >= parts.messages else f"the first {reported.covers:,} messages"
        fact("usage", f"{reported.tokens:,} reported by the provider for {where}, {portrait.covered:,} estimated")
    for note in source.notes[:3]:
        fact("note", printable(note))
    if (more := len(source.notes) - 3) > 0:
        fact("", f"and {more} more in --json")
    return table


def _results(portrait: Portrait, largest: int) -> list[RenderableType] | None:
    results = portrait.anatomy.results[:largest]
    if not results:
        return None
    table = grid("right", "left", "right", "rest")
    for result in results:
        table.add_row(
            Text(str(result.index), "bright_black"),
            Text(printable(result.tool), STYLES["tool"]),
            Text(f"{result.tokens:,}"),
            Text(result.line, "bright_black"),
        )
    return [heading("largest results"), table]


def _past(portrait: Portrait) -> list[RenderableType] | None:
    if not portrait.source.past:
        return None
    table = grid("left", "right", "left", "right", "left")
    for past, size in zip(portrait.source.past, portrait.summaries, strict=True):
        said = f"summary of {size:,} tokens" if past.summary else "" if past.by else "no summary in the file"
        table.add_row(
            Text((past.time or "")[:19].replace("T", " "), "bright_black"),
            Text("?" if past.before is None else f"{past.before:,}"),
            Text("→"),
            Text("?" if past.after is None else f"{past.after:,}"),
            Text(", ".join(filter(None, (past.by and printable(past.by), said))), "bright_black"),
        )
    return [heading("past compactions"), table]


def _problems(portrait: Portrait) -> Text:
    problems = portrait.problems
    name = portrait.format or "openai-chat"
    if not problems:
        return Text("problems  ", "bright_black").append(f"none: valid for {name}", "green")
    out = Text(f"{len(problems)} problem{'s' if len(problems) > 1 else ''} for {name}", "bold red")
    for problem in problems[:PROBLEMS]:
        out.append(f"\n{printable(str(problem))}", "not bold default")
    if (more := len(problems) - PROBLEMS) > 0:
        out.append(f"\nand {more} more", "not bold bright_black")
    return out


def list_sessions(console: Console, path: str, rows: list[dict[str, Any]], total: int) -> None:
    """The sessions of a store, the newest first."""
    table = grid("left", "left", "right", "right", "left")
    table.columns[0].overflow = "ignore"  # to be copied: whatever else is cut off, an id is not
    table.columns[0].min_width = max((len(printable(row["id"])) for row in rows), default=None)
    table.columns[1].max_width = OWNER
    table.add_row(*(Text(name, "bright_black") for name in ("session", "owner", "events", "tokens", "last activity")))
    for row in rows:
        table.add_row(
            Text(printable(row["id"])),
            Text(printable(row["owner"] or "–")),
            Text(f"{row['events']:,}"),
            Text(f"{row['tokens']:,}"),
            Text(row["last"][:19].replace("T", " "), "bright_black"),
        )
    count = f"{total:,} session{'s' if total != 1 else ''}"
    more = total - len(rows)
    show(
        console,
        [whole_line(path, "bold"), Text(count, "bright_black")],
        table if rows else None,
        Text(f"and {more:,} older ones (all of them in --json)", "bright_black") if more > 0 else None,
        whole_line(
            f"Look into one: holdfast inspect {shlex.join([path, '--session', rows[0]['id']])}"
            if rows
            else "It holds no session yet."
        ),
    )
