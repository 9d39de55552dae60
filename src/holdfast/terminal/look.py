"""How things look on this terminal: signs and styles that it can show."""

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
NAME = Style(color="cyan")
GOOD = Style(color="green")
BAD = Style(color="red")
WARN = Style(color="yellow")
LOUD = Style(color="yellow", bold=True, reverse=True)
CHOSEN = Style(reverse=True)
QUIET = Style(dim=True, italic=True)

_COLOURLESS = re.compile(r"dumb|unknown|.*-mono|.*-m|vt\d+.*|ansi-m|cons25-m", re.IGNORECASE)
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_UTF8 = re.compile(r"utf-?8", re.IGNORECASE)
_COERCED = "C.UTF-8"
"""Python sets LC_CTYPE to this by itself where the locale is C, so that it says nothing about the terminal."""


class Signs(Struct, frozen=True):
    """The few signs that the chat draws itself."""

    prompt: str = "❯"
    good: str = "✓"
    bad: str = "✗"
    busy: str = "◌"
    rule: str = "─"
    full: str = "━"
    rest: str = "─"
    bar: str = "│"
    dot: str = "·"
    arrow: str = "→"
    more: str = "…"
    folded: str = "▸"
    open: str = "▾"
    down: str = "↓"
    turning: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


ASCII = Signs(">", "+", "x", "o", "-", "=", "-", "|", "-", "->", "...", ">", "v", "v", "|/-\\")


class Look(Struct, frozen=True):
    """What this terminal can show."""

    signs: Signs = Signs()
    colour: bool = True

    @property
    def filters(self) -> tuple[LineFilter, ...]:
        """What every line passes through on its way out."""
        plain = (Harmless(),) if self.colour else (Harmless(), NoColour())
        return (*plain, InAscii()) if self.signs is ASCII else plain


def look_of(environ: Mapping[str, str] = os.environ) -> Look:
    """By the locale, NO_COLOR and TERM."""
    colour = not environ.get("NO_COLOR") and not _COLOURLESS.fullmatch(environ.get("TERM") or "unknown")
    return Look(Signs() if speaks_utf8(environ) else ASCII, colour)


def speaks_utf8(environ: Mapping[str, str]) -> bool:
    """Does the terminal, by its locale? Where nothing is set it is today's usual one."""
    kind = environ.get("LC_CTYPE") or ""
    locale = environ.get("LC_ALL") or (kind if kind != _COERCED else "") or environ.get("LANG") or _COERCED
    return bool(_UTF8.search(locale))


class Harmless(LineFilter):
    """Whatever got so far: nothing on the screen steers the terminal, or turns the direction of what follows."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.control or segment.text.isprintable()
            else Segment(_STEERING.sub("", segment.text), segment.style)
            for segment in segments
        ]


class NoColour(LineFilter):
    """Bold, dim and reverse say what colours would."""

    _DEFAULT = Style.from_color(AnsiColor.default(), AnsiColor.default())

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(text, style and style + self._DEFAULT, control) for text, style, control in segments]


class InAscii(LineFilter):
    """Every character in ASCII, in as many cells as it has."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.text.isascii() else Segment("".join(map(_in_ascii, segment.text)), *segment[1:])
            for segment in segments
        ]


_ALIKE = dict(zip("‘’“”„–—•·…×→←│─━┃═█", '\'\'"""--*-.x><|-=|=#', strict=True))


@lru_cache(4096)
def _in_ascii(character: str) -> str:
    if character.isascii():
        return character
    width = cell_len(character)
    base = unicodedata.normalize("NFKD", character)[:1]
    alike = _ALIKE.get(character) or (base if base.isascii() else "?")
    return alike * width
