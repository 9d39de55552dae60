"""Slash commands: types, argument parsing, and layout of their output at a given width."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from rich.cells import cell_len, chop_cells, set_cell_size

from ...errors import InvalidInput
from ...io.text import printable

if TYPE_CHECKING:
    from ..chat import Chat

    CommandHandler = Callable[[Chat, str], Awaitable["CommandResult"]]
    """Called with the chat and the text after the command name."""
    CommandCompleter = Callable[[Chat, Sequence[str]], Awaitable[Iterable[str]]]
    """Called with the words after the name, the last unfinished; returns completions of the last word."""


class Table(msgspec.Struct, frozen=True):
    """Rows in columns; laid out when the width is known."""

    rows: Sequence[Sequence[str]]
    right: Collection[int] = ()
    """Columns aligned to the right."""
    labels: bool = True
    """Whether the first column names what is in the others."""
    header: bool = False
    """Whether the first row names the columns."""
    clip: bool = False
    """Cut the last column where it does not fit, instead of wrapping it."""


class Choice(msgspec.Struct, frozen=True):
    """One row of a list to choose from."""

    value: str
    """Argument of the command that is run if it is chosen."""
    title: str
    detail: str = ""
    """Short; at the right edge of the title's row, where there is room."""
    about: str = ""
    """A second row."""
    current: bool = False
    """Selected when the list opens."""
    preview: str = ""
    """Shown below the list while it is selected."""


ContentSearch = Callable[[str], Awaitable[Collection[str]]]
"""Returns the values of the items that contain all of the words."""


class Choices(msgspec.Struct, frozen=True):
    """A list that a screen offers; the chosen value is appended to `command`, and that line is run."""

    title: str
    items: Sequence[Choice]
    command: str = ""
    empty: str = "There is nothing to choose."
    """Shown if there are no items."""
    leave: str = "back"
    """What Esc does."""
    enter: str = "choose"
    """What Enter does."""
    search: ContentSearch | None = None
    """Finds items by what they contain; called with the typed words."""


class CommandResult(msgspec.Struct, frozen=True):
    """Output of a command."""

    text: str
    draft: str | None = None
    """Text to put into the input for editing."""
    quit: bool = False
    is_verbatim: bool = False
    """True for the output of a program: it is not wrapped at the page width."""
    blocks: tuple[str | Table, ...] = ()
    """The same as `text`, to be laid out for a screen; empty if `text` has no tables."""
    choices: Choices | None = None
    """Shown by a screen instead of the text."""
    copied: str | None = None
    """Text for the clipboard."""
    opened: str | None = None
    """Text to open in an editor."""


class ChatCommand(msgspec.Struct, frozen=True):
    """A slash command with its usage, help text, handler and completer."""

    name: str
    """Without the slash."""
    usage: str
    about: str
    run: CommandHandler
    complete: CommandCompleter | None = None


def split_arguments(argument: str, most: int, usage: str) -> list[str]:
    """Splits an argument into `most` words, padded with empty ones; raises `InvalidInput` if there are more."""
    words = argument.split()
    if len(words) > most:
        raise InvalidInput(f"Unexpected argument {words[most]!r}: the usage is {usage}.")
    return words + [""] * (most - len(words))


def split_first_word(argument: str) -> tuple[str, str]:
    """Returns the first word and the rest as written."""
    word, rest = [*argument.split(None, 1), "", ""][:2]
    return word, rest.strip()


PAGE_WIDTH = 78
_COLUMN_GAP = "  "
_ASCII_FALLBACKS = str.maketrans("━╸─│├└→…–“”·", '##-|+`>~-""*')


def page(*blocks: str | Table, choices: Choices | None = None) -> CommandResult:
    """Returns an output of paragraphs and tables; its text is laid out for the page width."""
    return CommandResult("\n".join(line for line, _ in lay_out(blocks, PAGE_WIDTH)), blocks=blocks, choices=choices)


def lay_out(blocks: Iterable[str | Table], width: int) -> Iterator[tuple[str, int]]:
    """Yields printable lines of at most this width, each with the length of the label that it starts with."""
    for block in blocks:
        if isinstance(block, Table):
            yield from _table_lines(block, width)
        else:
            yield from ((line, 0) for row in block.split("\n") for line in _wrap_line(printable(row).rstrip(), width))


def format_page(text: str, width: int = PAGE_WIDTH) -> str:
    """Removes control characters and wraps lines to the width."""
    fitted = "\n".join(line for line, _ in lay_out([text], width))
    return fitted.translate(_ASCII_FALLBACKS) if _ascii_only() else fitted


_MIN_LAST_COLUMN = 12
"""A last column narrower than this goes below the others."""


def _table_lines(table: Table, width: int) -> Iterator[tuple[str, int]]:
    """Yields the rows; only the last column is wrapped, and below the others on a narrow screen."""
    rows = [[printable(cell) for cell in row] for row in table.rows]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    *_, last = widths or [0]
    start = sum(widths[:-1]) + len(_COLUMN_GAP) * (len(widths) - 1)
    below = start + min(last, _MIN_LAST_COLUMN) > width
    for place, row in enumerate(rows):
        cells = [
            _pad_cell(cell, own, at in table.right) for at, (cell, own) in enumerate(zip(row, widths, strict=True))
        ]
        line, label = _COLUMN_GAP.join(cells).rstrip(), len(cells[0]) if table.labels else 0
        if table.header and not place:
            yield clip_line(line, width), len(line)
        elif cell_len(line) <= width:
            yield line, label
        elif below and len(cells) > 1:
            indent = _COLUMN_GAP * 2
            yield from ((piece, label) for piece in _wrap_line(_COLUMN_GAP.join(cells[:-1]).rstrip(), width))
            tail = indent + cells[-1].strip()
            yield from ((piece, 0) for piece in ([clip_line(tail, width)] if table.clip else _wrap_line(tail, width)))
        elif table.clip:
            yield clip_line(line, width), label
        else:
            head, indent = line[: len(line) - len(cells[-1].rstrip())], " " * start
            for number, piece in enumerate(_wrap_line(cells[-1].rstrip(), width - start)):
                yield (f"{head}{piece}", label) if not number else (f"{indent}{piece}", 0)


def clip_line(line: str, width: int = PAGE_WIDTH) -> str:
    """Shortens a line to the width, with an ellipsis."""
    line = line.rstrip()
    return line if cell_len(line) <= width else f"{set_cell_size(line, width - 1).rstrip()}…"


def _pad_cell(cell: str, width: int, right: bool) -> str:
    blank = " " * (width - cell_len(cell))
    return blank + cell if right else cell + blank


def _wrap_line(line: str, width: int) -> Iterator[str]:
    if cell_len(line) <= width:
        yield line
        return
    indent = " " * min(len(line) - len(line.lstrip()), width // 2)
    for piece in textwrap.wrap(line, max(width, 1), subsequent_indent=indent, break_on_hyphens=False):
        yield from chop_cells(piece, max(width, 2))


def _ascii_only() -> bool:
    return not (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
