"""Markdown as a reply is shown: plain, to the left, and without links that hide where they lead."""

from __future__ import annotations

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.syntax import Syntax
from rich.theme import Theme

LONGEST = 12_000
"""Characters that are still worth it: what is longer stays the text that it is."""
THEME = Theme(
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
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("image")
"""Tags are text like any other: nothing that was said is left out."""


class _LeftHeading(Heading):
    """A heading that stands where the text does."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _QuietCode(CodeBlock):
    """Code on the terminal's own ground."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        shown = Syntax(code, self.lexer_name, theme="ansi_dark", background_color="default", word_wrap=True)
        yield Padding(shown, (0, 0, 0, 2))


class QuietMarkdown(Markdown):
    elements = {**Markdown.elements, "heading_open": _LeftHeading, "fence": _QuietCode, "code_block": _QuietCode}  # noqa: RUF012

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.markup, self.parsed = text, _PARSER.parse(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with console.use_theme(THEME):
            yield from super().__rich_console__(console, options)
