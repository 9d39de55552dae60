"""What `holdfast search` shows a person."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..anatomy import printable
from ..recall import Found
from ..stores import Hit
from .blocks import grid, show, whole_line
from .recalls import Opened

_STYLES = {"system": "magenta", "user": "green", "assistant": "cyan", "tool": "yellow"}


def list_hits(console: Console, query: str, found: Found, opened: Opened, narrowing: Sequence[str]) -> None:
    if not found.hits:
        show(
            console,
            [whole_line(opened.name, "bold"), Text("nothing was found", "bright_black")],
            Text(f"No event holds every word of {printable(query)!r}{_advice(narrowing)}"),
        )
        return
    first = found.hits[0]
    more = f"more: --offset {found.next}" if found.more else "that is all"
    session = opened.session or first.session_id
    show(
        console,
        [whole_line(opened.name, "bold"), Text(f"{len(found.hits):,} found, {more}", "bright_black")],
        *(_hit(hit, query, opened) for hit in found.hits),
        whole_line(f"Read one: holdfast read '{first.reference}' {opened.arguments(session)}"),
    )


def _advice(narrowing: Sequence[str]) -> str:
    if narrowing:
        return f" under these conditions ({', '.join(narrowing)}): leave some out, or try fewer words."
    return ": try fewer words, or parts of them."


def _hit(hit: Hit, query: str, opened: Opened) -> Table:
    """A line about the event, and below it the place that was found."""
    about = Text(hit.reference, "bold").append("  ")
    about.append(hit.role or hit.event.kind, f"not bold {_STYLES.get(hit.role or '', 'blue')}")
    for words in (
        printable(" ".join(hit.tools)),
        printable(hit.event.time[:16].replace("T", " ")),
        f"lane {printable(hit.event.lane)}" if hit.event.lane else "",
        f"session {printable(hit.session_id)}" if opened.is_store and opened.session is None else "",
        "archived" if hit.archived else "",
    ):
        about.append(f"  {words}" if words else "", "not bold bright_black")
    table = grid("rest")
    table.columns[0].no_wrap = False
    table.add_row(about)
    table.add_row(_marked(printable(hit.snippet), query))
    return table


def _marked(snippet: str, query: str) -> Text:
    text = Text(snippet)
    words = sorted(query.split(), key=len, reverse=True)
    text.highlight_regex(re.compile("|".join(re.escape(word) for word in words), re.IGNORECASE), "bold")
    return text
