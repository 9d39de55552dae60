"""Symbols, styles and output filters, chosen by what the terminal supports."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct
from rich.cells import cell_len
from rich.color import Color as AnsiColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

PLAIN = Style()
DIM = Style(dim=True)
BOLD = Style(bold=True)
ACCENT = Style(color="cyan")
SUCCESS = Style(color="green")
ERROR = Style(color="red")
WARNING = Style(color="yellow")
ALERT = Style(color="yellow", bold=True, reverse=True)
SELECTED = Style(reverse=True)
MUTED = Style(dim=True, italic=True)
_COLORLESS_TERM = re.compile(r"dumb|unknown|.*-mono|.*-m|vt\d+.*|ansi-m|cons25-m", re.IGNORECASE)
_UNSAFE_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_UTF8 = re.compile(r"utf-?8", re.IGNORECASE)
_COERCED_LOCALE = "C.UTF-8"
"""Python sets LC_CTYPE to this when the locale is C, so this value proves nothing about the terminal."""


class Symbols(Struct, frozen=True):
    """Symbols drawn by the chat."""

    prompt: str = "❯"
    success: str = "✓"
    failure: str = "✗"
    busy: str = "◌"
    rule: str = "─"
    bar_full: str = "━"
    bar_empty: str = "─"
    gutter: str = "│"
    dot: str = "·"
    arrow: str = "→"
    ellipsis: str = "…"
    folded: str = "▸"
    unfolded: str = "▾"
    down: str = "↓"
    spinner: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


ASCII_SYMBOLS = Symbols(">", "+", "x", "o", "-", "=", "-", "|", "-", "->", "...", ">", "v", "v", "|/-\\")


class ChatTheme(Struct, frozen=True):
    """Symbols and colors that the terminal can show."""

    symbols: Symbols = Symbols()
    color: bool = True

    @property
    def filters(self) -> tuple[LineFilter, ...]:
        """Filters applied to every line before output."""
        plain = (ControlCharacterFilter(),) if self.color else (ControlCharacterFilter(), NoColorFilter())
        return (*plain, AsciiFilter()) if self.symbols is ASCII_SYMBOLS else plain


def detect_theme(environ: Mapping[str, str] = os.environ) -> ChatTheme:
    """Chooses a theme by locale, NO_COLOR and TERM."""
    color = not environ.get("NO_COLOR") and not _COLORLESS_TERM.fullmatch(environ.get("TERM") or "unknown")
    return ChatTheme(Symbols() if supports_utf8(environ) else ASCII_SYMBOLS, color)


def supports_utf8(environ: Mapping[str, str]) -> bool:
    """Returns whether the locale is UTF-8; True if no locale is set."""
    kind = environ.get("LC_CTYPE") or ""
    locale = (
        environ.get("LC_ALL") or (kind if kind != _COERCED_LOCALE else "") or environ.get("LANG") or _COERCED_LOCALE
    )
    return bool(_UTF8.search(locale))


class ControlCharacterFilter(LineFilter):
    """Last line of defense: removes control characters and bidirectional marks from output."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.control or segment.text.isprintable()
            else Segment(_UNSAFE_CHARACTERS.sub("", segment.text), segment.style)
            for segment in segments
        ]


class NoColorFilter(LineFilter):
    """Removes colors; bold, dim and reverse remain."""

    _DEFAULT = Style.from_color(AnsiColor.default(), AnsiColor.default())

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(text, style and style + self._DEFAULT, control) for text, style, control in segments]


class AsciiFilter(LineFilter):
    """Replaces each character with ASCII of the same cell width."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.text.isascii() else Segment("".join(map(_to_ascii, segment.text)), *segment[1:])
            for segment in segments
        ]


_ASCII_LOOKALIKES = dict(zip("‘’“”„–—•·…×→←│─━┃═█┼␣", '\'\'"""--*-.x><|-=|=#+_', strict=True))


@lru_cache(4096)
def _to_ascii(character: str) -> str:
    if character.isascii():
        return character
    width = cell_len(character)
    base = unicodedata.normalize("NFKD", character)[:1]
    alike = _ASCII_LOOKALIKES.get(character) or (base if base.isascii() else "?")
    return alike * width
