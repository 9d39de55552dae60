"""Plain text for any face: at most 78 columns, nothing that drives a terminal, ASCII lines where it must be."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Collection, Iterator, Sequence

from rich.cells import cell_len, chop_cells, set_cell_size

from ...anatomy import printable

WIDTH = 78
_GAP = "  "
_ASCII = str.maketrans("━╸─│├└→…–“”·", '##-|+`>~-""*')


def shown(text: str) -> str:
    """A text as a page has it: safe, and in lines that are not too long."""
    fitted = "\n".join(line for said in text.split("\n") for line in _wrapped(printable(said).rstrip()))
    return fitted.translate(_ASCII) if _ascii_only() else fitted


def table(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Rows in columns; the last column takes the room that is left, and is cut off there."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            _padded(cell, width, place in right) for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(clipped(_GAP.join(cells)))
    return lines


def clipped(line: str, width: int = WIDTH) -> str:
    """One line, with a mark where something had to go."""
    line = line.rstrip()
    return line if cell_len(line) <= width else f"{set_cell_size(line, width - 1).rstrip()}…"


def _padded(cell: str, width: int, right: bool) -> str:
    blank = " " * (width - cell_len(cell))
    return blank + cell if right else cell + blank


def _wrapped(line: str) -> Iterator[str]:
    if cell_len(line) <= WIDTH:
        yield line
        return
    indent = " " * min(len(line) - len(line.lstrip()), WIDTH // 2)
    for piece in textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False):
        yield from chop_cells(piece, WIDTH)


def _ascii_only() -> bool:
    return not (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
