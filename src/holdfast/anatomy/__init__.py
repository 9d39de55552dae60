"""Where the tokens of a context are, for a person: taken apart, in bars, in single lines that are safe to print."""

from .anatomy import KINDS, Anatomy, Kind, Result, Share, Turn, anatomy, side_by_side
from .bars import STYLES, Piece, bar, single, stacked
from .glimpse import first_line, glimpse, printable

__all__ = [
    "KINDS",
    "STYLES",
    "Anatomy",
    "Kind",
    "Piece",
    "Result",
    "Share",
    "Turn",
    "anatomy",
    "bar",
    "first_line",
    "glimpse",
    "printable",
    "side_by_side",
    "single",
    "stacked",
]
