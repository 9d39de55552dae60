"""Rich consoles (plain in a pipe) and a delayed spinner."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from ..io.text import escape_controls, printable

MAX_WIDTH = 100
"""Wider output is hard to read, even on a wide screen."""
SPINNER_DELAY = 1.0
"""Seconds before the spinner appears."""


def make_console(*, stderr: bool = False) -> Console:
    """Console with colours only on a terminal and without NO_COLOR; 80 columns in a pipe."""
    plain = bool(os.environ.get("NO_COLOR"))
    made = Console(stderr=stderr, highlight=False, color_system=None if plain else "auto")
    made.width = min(made.width, MAX_WIDTH)
    made.push_render_hook(_EscapeControls())
    return made


class _EscapeControls(RenderHook):
    """Shows control characters of texts as escapes; Rich itself writes them to the terminal."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Escaped(each) for each in renderables]


class _Escaped:
    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._renderable, options):
            if segment.control or segment.text.isprintable() or segment.text == "\n":
                yield segment
            else:
                yield Segment(escape_controls(segment.text), segment.style)


@contextmanager
def show_progress(message: str | Callable[[], str]) -> Iterator[None]:
    """Show a spinner on stderr while the block runs, if stderr is a terminal and the block takes long.

    A callable message is evaluated on every refresh. Without colours, one plain line is printed instead, since a
    spinner moves the cursor.
    """
    if not sys.stderr.isatty():
        yield
        return
    shown = make_console(stderr=True)
    line = _ProgressLine(message if callable(message) else lambda: message)
    status = shown.status(line)
    start = status.start if shown.color_system else lambda: shown.print(line)
    timer = threading.Timer(SPINNER_DELAY, start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


class _ProgressLine:
    """The progress message as one line of plain text; it may quote servers, so it is never parsed as markup."""

    def __init__(self, message: Callable[[], str]) -> None:
        self._message = message

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text(f"{self._message()} …", no_wrap=True, overflow="ellipsis")


MARGIN = "  "
Block = RenderableType | list[RenderableType] | None


def grid(*columns: str) -> Table:
    """Borderless table. Columns are `left`, `right`, or `rest`: the remaining width, truncated."""
    table = Table.grid(padding=(0, 2, 0, 0), expand="rest" in columns)
    for column in columns:
        side: Literal["left", "right"] = "right" if column == "right" else "left"
        table.add_column(justify=side, no_wrap=True, overflow="ellipsis", ratio=1 if column == "rest" else None)
    return table


def print_blocks(console: Console, *blocks: Block) -> None:
    """Prints blocks with a margin and a blank line around each; a list is one block."""
    console.print()
    for block in blocks:
        if block is not None:
            for piece in block if isinstance(block, list) else [block]:
                _print_block(console, piece)
            console.print()


def _print_block(console: Console, piece: RenderableType) -> None:
    """Strips trailing spaces, so that reports can be compared and pasted."""
    if isinstance(piece, Text) and piece.overflow == "ignore":
        console.print(Text(MARGIN).append(piece), soft_wrap=True)
        return
    if isinstance(piece, Table):
        for column in piece.columns:
            if column.justify == "right":  # numbers: a narrow terminal shortens texts instead
                column.min_width = max((cell.cell_len for cell in column.cells if isinstance(cell, Text)), default=0)
    room = console.options.update(width=console.width - len(MARGIN))
    for line in console.render_lines(piece, room, pad=False):
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            last = line.pop()
            line.append(Segment(last.text.rstrip(), last.style))
        console.print(Segments([Segment(MARGIN), *line, Segment.line()]), end="")


def unwrapped_line(text: str, style: str = "") -> Text:
    """A path or a command, never wrapped or truncated by us."""
    return Text(printable(text), style, no_wrap=True, overflow="ignore")


def heading(text: str) -> Text:
    return Text(text, "bold")


def is_ascii_only(console: Console) -> bool:
    return not console.encoding.lower().startswith("utf")
