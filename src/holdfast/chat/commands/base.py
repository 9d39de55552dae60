"""Slash commands: types, argument parsing, and plain-text layout of their output (at most 78 columns)."""

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


class Choices(msgspec.Struct, frozen=True):
    """A list that a screen offers; the chosen value is appended to `command`, and that line is run."""

    title: str
    items: Sequence[Choice]
    command: str = ""
    empty: str = "There is nothing to choose."
    """Shown if there are no items."""
    leave: str = "back"
    """What Esc does."""


class CommandResult(msgspec.Struct, frozen=True):
    """Output of a command."""

    text: str
    draft: str | None = None
    """Text to put into the input for editing."""
    quit: bool = False
    is_verbatim: bool = False
    """True for the output of a program: it is not wrapped at the page width."""
    choices: Choices | None = None
    """Shown by a screen instead of the text."""


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


def format_page(text: str) -> str:
    """Removes control characters and wraps lines to the page width."""
    fitted = "\n".join(line for row in text.split("\n") for line in _wrap_line(printable(row).rstrip()))
    return fitted.translate(_ASCII_FALLBACKS) if _ascii_only() else fitted


def format_table(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Aligns rows in columns; the last column is clipped at the page width."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            _pad_cell(cell, width, place in right) for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(clip_line(_COLUMN_GAP.join(cells)))
    return lines


def clip_line(line: str, width: int = PAGE_WIDTH) -> str:
    """Shortens a line to the width, with an ellipsis."""
    line = line.rstrip()
    return line if cell_len(line) <= width else f"{set_cell_size(line, width - 1).rstrip()}…"


def _pad_cell(cell: str, width: int, right: bool) -> str:
    blank = " " * (width - cell_len(cell))
    return blank + cell if right else cell + blank


def _wrap_line(line: str) -> Iterator[str]:
    if cell_len(line) <= PAGE_WIDTH:
        yield line
        return
    indent = " " * min(len(line) - len(line.lstrip()), PAGE_WIDTH // 2)
    for piece in textwrap.wrap(line, PAGE_WIDTH, subsequent_indent=indent, break_on_hyphens=False):
        yield from chop_cells(piece, PAGE_WIDTH)


def _ascii_only() -> bool:
    return not (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
