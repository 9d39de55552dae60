"""Renders text and Markdown to wrapped lines of a given width; formats numbers."""

from __future__ import annotations

import io
from collections.abc import Iterable

from markdown_it import MarkdownIt
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme
from textual.strip import Strip

MIN_WIDTH = 4
"""Narrower screens are drawn at this width and cut off."""
_WRAP_CHUNK = 2_000
"""Longer lines are split at this many characters before wrapping."""
_CONSOLE = Console(file=io.StringIO(), force_terminal=True, color_system="standard", legacy_windows=False)


def wrap_plain(text: str, width: int, style: Style) -> list[Strip]:
    """Wraps a sanitized text line by line."""
    return [strip for line in text.split("\n") for strip in wrap_text(Text(line, style), width)]


def wrap_text(text: Text, width: int) -> list[Strip]:
    """Wraps one line of text."""
    width = max(width, MIN_WIDTH)
    if cell_len(text.plain) <= width:
        return [_to_strip(text)]
    pieces = text.divide(range(_WRAP_CHUNK, len(text), _WRAP_CHUNK)) if len(text) > _WRAP_CHUNK else [text]
    return [
        _to_strip(line) for piece in pieces for line in piece.wrap(_CONSOLE, width, justify="left", overflow="fold")
    ]


def render_rich(renderable: RenderableType, width: int) -> list[Strip]:
    """Renders a rich renderable, without trailing blanks."""
    options = _CONSOLE.options.update(width=max(width, MIN_WIDTH), highlight=False)
    lines = _CONSOLE.render_lines(renderable, options, pad=False)
    return [_trim_line(line) for line in lines]


def truncate_text(text: Text, width: int, more: str) -> Strip:
    """Cuts a text to one line, ending in `more`."""
    if text.cell_len > width > 0:
        room = max(0, width - cell_len(more))
        text = text.copy()
        text.truncate(room)
        text.append(more)
    return _to_strip(text)


def with_marker(marker: str, style: Style, strips: Iterable[Strip]) -> list[Strip]:
    """Puts a marker before the first line and indents the others by its width."""
    blank = Segment(" " * cell_len(marker))
    return [Strip([Segment(marker, style) if not index else blank, *strip], None) for index, strip in enumerate(strips)]


def indent_lines(strips: Iterable[Strip], by: str = "  ", style: Style | None = None) -> list[Strip]:
    edge = Segment(by, style)
    return [Strip([edge, *strip]) for strip in strips]


def _trim_line(line: list[Segment]) -> Strip:
    while line and not (text := line[-1].text).rstrip():
        line = line[:-1]
    if line and text.endswith(" "):
        line = [*line[:-1], Segment(text.rstrip(), line[-1].style)]
    return Strip(line)


def _to_strip(text: Text) -> Strip:
    if not text.spans:
        return Strip([Segment(text.plain, _CONSOLE.get_style(text.style))] if text.plain else [])
    return Strip([segment for segment in text.render(_CONSOLE, end="") if segment.text])


MAX_MARKDOWN_CHARS = 12_000
"""Longer replies are shown as plain text."""
MARKDOWN_THEME = Theme(
    {
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.h1": "bold",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold dim",
        "markdown.item.bullet": "dim",
        "markdown.item.number": "dim",
        "markdown.block_quote": "dim",
        "markdown.hr": "dim",
        "markdown.link": "none",
        "markdown.link_url": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)
_MARKDOWN_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("image")
"""HTML is off, so that tags are shown as text."""


class _LeftHeading(Heading):
    """Left-aligned heading."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _PlainCodeBlock(CodeBlock):
    """Code block on the terminal's own background."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        shown = Syntax(code, self.lexer_name, theme="ansi_dark", background_color="default", word_wrap=True)
        yield Padding(shown, (0, 0, 0, 2))


class ReplyMarkdown(Markdown):
    """Markdown of a reply: left-aligned, without hyperlinks that hide their target."""

    elements = {  # noqa: RUF012
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "fence": _PlainCodeBlock,
        "code_block": _PlainCodeBlock,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.markup, self.parsed = text, _MARKDOWN_PARSER.parse(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with console.use_theme(MARKDOWN_THEME):
            yield from super().__rich_console__(console, options)


def format_count(count: int) -> str:
    """Formats a count as 12.3k, 200k or 1.2M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= size * 0.9995:
            value = count / size
            return f"{value:.1f}".removesuffix(".0") + letter if value < 100 else f"{value:.0f}{letter}"
    return str(count)


def format_percent(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0:.0f} %"
