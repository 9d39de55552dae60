"""Markdown of a reply as wrapped lines: a finished block is drawn once and stays as it is while the rest streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, link
from markdown_it.tree import SyntaxTreeNode
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text
from textual.strip import Strip

from ...io.text import TAB_SIZE, sanitize
from .copying import code_edge
from .drawing import MIN_WIDTH, indent_lines, with_marker, wrap_text
from .theme import ACCENT, BOLD, DIM, MUTED, PLAIN

_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable(["image", "reference"])
"""HTML is off, so that tags are shown as text; and link definitions, since they would change what is already drawn."""
_MAX_OPEN_BRACKETS = 50


def _bounded_link(state: StateInline, silent: bool) -> bool:
    """Parses a link, but not in a block of many brackets without one: each is searched to the end of the block."""
    return state.src.count("[") - state.src.count("](") <= _MAX_OPEN_BRACKETS and link(state, silent)


_PARSER.inline.ruler.at("link", _bounded_link)
_HEADINGS = {"h1": Style(bold=True, underline=True), "h2": BOLD, "h3": Style(bold=True, italic=True)}
_INLINE = {"strong": BOLD, "em": Style(italic=True), "s": Style(strike=True)}
_CODE_COLORS = ANSISyntaxTheme(
    {
        Comment: DIM,
        Generic.Deleted: Style(color="red"),
        Generic.Inserted: Style(color="green"),
        Keyword: Style(color="magenta"),
        Operator.Word: Style(color="magenta"),
        Name.Builtin: Style(color="cyan"),
        Name.Class: BOLD,
        Name.Decorator: Style(color="magenta"),
        Name.Function: BOLD,
        Name.Tag: Style(color="cyan"),
        Number: Style(color="cyan"),
        String: Style(color="green"),
    }
)
"""Only colors that can be read on a dark and on a light background."""
_CODE_RULE, _QUOTE_RULE, _BULLET, _COLUMN_RULE = "│ ", "┃ ", " • ", " │ "
_MIN_COLUMN = 6
"""A table whose columns would be narrower is drawn as a list of its cells."""


def render_markdown(text: str, width: int) -> list[Strip]:
    """Draws a whole text, exactly as it would be drawn at the end of its stream."""
    stream = MarkdownStream()
    stream.add(text)
    return stream.lines(width, complete=True)


_MAX_CHARS = 200_000
"""Shown of one text; the session keeps all."""
_MAX_LINE_CHARS, _MAX_OPEN_CHARS, _MAX_TABLE_CHARS = 4_000, 5_000, 24_000
"""A longer open line, block or table is drawn as finished, and what follows as a new one."""


class MarkdownStream:
    """Markdown that arrives in pieces. Work per redraw is bounded by the open block, the one that may still change."""

    def __init__(self, indent: str = "") -> None:
        self._indent = indent
        self._pieces: list[str] = []
        self._size = 0
        self._restart(0)

    def _restart(self, width: int) -> None:
        self._width = width
        self._drawn: list[Strip] = []
        """Lines of finished blocks."""
        self._open = ""
        """Complete lines of the open block."""
        self._rest = "".join(self._pieces).lstrip("\n")
        """What was added since."""
        self._next = _Continued()

    def add(self, piece: str) -> None:
        if self._size < _MAX_CHARS:
            self._pieces.append(piece)
            self._size += len(piece)
            self._rest = self._rest + piece if self._rest or self._open or self._drawn else piece.lstrip("\n")

    def lines(self, width: int, *, complete: bool = False) -> list[Strip]:
        """Returns all lines, indented; `complete` says that nothing will be added."""
        if width != self._width:
            self._restart(width)
        self._take_lines()
        units = self._parse(self._open + sanitize(self._rest, tabs=True))
        drawn = list(self._drawn)
        for unit in units:
            drawn += self._draw(unit, after=drawn, is_open=not complete and unit is units[-1])
        return drawn

    def _take_lines(self) -> None:
        """Moves complete lines into the open block, and the blocks that they finish out of it."""
        lines, newline, self._rest = self._rest.rpartition("\n")
        while len(self._rest) > _MAX_LINE_CHARS:
            cut = self._rest.rfind(" ", 1, _MAX_LINE_CHARS) + 1 or _MAX_LINE_CHARS
            lines, newline, self._rest = f"{lines}{newline}{self._rest[:cut]}", "\n", self._rest[cut:]
        if newline:
            self._open += "".join(sanitize(line.removesuffix("\r"), tabs=True) + "\n" for line in lines.split("\n"))
            self._finish_blocks()

    def _finish_blocks(self) -> None:
        """Draws all blocks but the last, which later lines can still change."""
        if not (units := self._parse(self._open)):
            return
        *finished, last = units
        for unit in finished:
            self._drawn += self._draw(unit, after=self._drawn)
        if finished:
            self._next, self._open = _Continued(last.number, last.gap), self._open.split("\n", last.start)[last.start]
        if len(self._open) > (_MAX_TABLE_CHARS if last.node.type == "table" else _MAX_OPEN_CHARS):
            self._drawn += self._draw(last, after=self._drawn)
            self._open = f"{self._open.partition(chr(10))[0]}\n" if last.node.type == "fence" else ""
            self._next = _Continued(gap=False)

    def _parse(self, text: str) -> list[_Unit]:
        root = SyntaxTreeNode(_PARSER.parse(text))
        return list(_units(root, text.split("\n"), self._next))

    def _draw(self, unit: _Unit, *, after: Sequence[Strip], is_open: bool = False) -> list[Strip]:
        body = _draw_unit(unit, self._width, is_open)
        return indent_lines([Strip([]), *body] if after and unit.gap else body, self._indent)

    @property
    def text(self) -> str:
        """All that was added."""
        return "".join(self._pieces)


class _Continued(NamedTuple):
    """How the open block continues what is drawn: the number of its first list item, and a blank line before it."""

    number: int | None = None
    gap: bool = True


class _Unit(NamedTuple):
    """What is drawn and finished at once: a block, or one item of a list."""

    node: SyntaxTreeNode
    lines: Sequence[str]
    start: int
    gap: bool
    """Whether a blank line precedes it."""
    marker: str = ""
    number: int | None = None


def _units(parent: SyntaxTreeNode, lines: Sequence[str], first: _Continued | None = None) -> Iterator[_Unit]:
    """Yields blocks and items with the blank lines of the source between them: later text can change neither."""
    for place, node in enumerate(parent.children):
        if node.type in ("bullet_list", "ordered_list"):
            number = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
            if number is not None and first is not None and not place and first.number is not None:
                number = first.number
            for index, item in enumerate(node.children):
                own = None if number is None else number + index
                gap = first.gap if first is not None and not place and not index else _has_gap(item, lines)
                yield _Unit(item, lines, _start(item), gap, _BULLET if own is None else f"{own:>2}. ", own)
        else:
            gap = first.gap if first is not None and not place else _has_gap(node, lines)
            yield _Unit(node, lines, _start(node), gap or node.type in ("heading", "table"))


def _start(node: SyntaxTreeNode) -> int:
    return node.map[0] if node.map else 0


def _has_gap(node: SyntaxTreeNode, lines: Sequence[str]) -> bool:
    start = _start(node)
    return start > 0 and not lines[start - 1].strip(" >")


# -- blocks ----------------------------------------------------------------------------------------------


def _draw_unit(unit: _Unit, width: int, is_open: bool = False) -> list[Strip]:
    if unit.node.type != "list_item":
        return _draw_block(unit.node, unit.lines, width, is_open)
    inner = width - len(unit.marker)
    if inner < MIN_WIDTH:
        return _draw_blocks(unit.node, unit.lines, width, is_open)
    copied = "- " if unit.number is None else unit.marker.lstrip()
    return with_marker(unit.marker, DIM, _draw_blocks(unit.node, unit.lines, inner, is_open) or [Strip([])], copied)


def _draw_blocks(parent: SyntaxTreeNode, lines: Sequence[str], width: int, is_open: bool = False) -> list[Strip]:
    drawn: list[Strip] = []
    for unit in _units(parent, lines):
        drawn += [Strip([])] * (bool(drawn) and unit.gap) + _draw_unit(unit, width, is_open)
    return drawn


def _draw_block(node: SyntaxTreeNode, lines: Sequence[str], width: int, is_open: bool) -> list[Strip]:
    match node.type:
        case "heading":
            return _draw_inline(node, width, _HEADINGS.get(node.tag, MUTED))
        case "fence" | "code_block":
            return _draw_code(node, width, is_open)
        case "blockquote":
            rule, inner = _ruled(_QUOTE_RULE, width)
            return indent_lines(_draw_blocks(node, lines, inner, is_open), rule, DIM, "> ")
        case "hr":
            return wrap_text(Text("─" * width, DIM), width)
        case "table":
            return _draw_table(node, width)
        case _:
            return _draw_inline(node, width, PLAIN)


def _draw_code(node: SyntaxTreeNode, width: int, is_open: bool) -> list[Strip]:
    written = node.content.removesuffix("\n").split("\n")
    code = [line.expandtabs(TAB_SIZE) for line in written]
    colored = _lines_to_color(len(code)) if is_open else len(code)
    lexer = (node.info.split() or ["text"])[0]
    lines = [*_highlight("\n".join(code[:colored]), lexer)[:colored], *map(Text, code[colored:])]
    rule, inner = _ruled(_CODE_RULE, width)
    drawn: list[Strip] = []
    for line, own, shown in zip(lines, written, code, strict=True):
        edge = Segment(rule, code_edge(DIM, own if own != shown else None))
        drawn += [Strip([edge, *strip]) for strip in wrap_text(line, inner)]
    return drawn


def _ruled(rule: str, width: int) -> tuple[str, int]:
    """Returns a left rule and the width right of it; no rule where it would leave too little."""
    return (rule, width - len(rule)) if width - len(rule) >= MIN_WIDTH else ("", width)


def _lines_to_color(count: int) -> int:
    """Rounds down to an eighth, so that code is colored again after each eighth of its length, not at each line."""
    step = 1 << max(0, count.bit_length() - 4)
    return count - count % step


@lru_cache(maxsize=256)
def _highlight(code: str, lexer: str) -> list[Text]:
    if not code.strip():
        return [Text()] * (code.count("\n") + 1)
    colored = Syntax(code, lexer, theme=_CODE_COLORS, background_color="default").highlight(code)
    return list(colored.split("\n", allow_blank=True))


# -- tables ----------------------------------------------------------------------------------------------


def _draw_table(node: SyntaxTreeNode, width: int) -> list[Strip]:
    """Draws columns as wide as their cells; where they do not fit, the widest are narrowed and wrapped."""
    rows = [[_inline_text(cell) for cell in row.children] for part in node.children for row in part.children]
    room = width - len(_COLUMN_RULE) * (len(rows[0]) - 1)
    natural = [
        max(map(cell_len, (cell.plain for cell in column)), default=0) or 1 for column in zip(*rows, strict=True)
    ]
    widths = _narrow(natural, room)
    too_narrow = any(own < min(_MIN_COLUMN, needed) for own, needed in zip(widths, natural, strict=True))
    if too_narrow or sum(widths) > room:
        return _draw_records(rows, width)
    aligns = [str(cell.attrs.get("style", "")) for cell in node.children[0].children[0].children]
    drawn: list[Strip] = []
    for index, row in enumerate(rows):
        drawn += _draw_row(row, widths, aligns, BOLD if not index else PLAIN)
        if not index:
            rule = _COLUMN_RULE.replace(" ", "─").replace("│", "┼").join("─" * one for one in widths)
            drawn += wrap_text(Text(rule, DIM), width)
    return drawn


def _narrow(natural: Sequence[int], room: int) -> list[int]:
    """Returns widths of a sum of at most `room`: the widest columns get the same, the others all they need."""
    limit = max(natural)
    while limit > 1 and sum(min(one, limit) for one in natural) > room:
        limit -= 1
    widths = [min(one, limit) for one in natural]
    for index, one in enumerate(natural):
        if one > limit and sum(widths) < room:
            widths[index] += 1
    return widths


def _draw_row(row: Sequence[Text], widths: Sequence[int], aligns: Sequence[str], style: Style) -> list[Strip]:
    cells = [_wrapped(cell, own) for cell, own in zip(row, widths, strict=True)]
    drawn = []
    for at in range(max(map(len, cells))):
        line = Text()
        for index, cell in enumerate(cells):
            piece = cell[at] if at < len(cell) else Text()
            blank = " " * (widths[index] - piece.cell_len)
            before = (
                blank if "right" in aligns[index] else blank[: len(blank) // 2] if "center" in aligns[index] else ""
            )
            line.append(_COLUMN_RULE if index else "", DIM).append(before)
            start = len(line)
            line.append_text(piece).append(blank[len(before) :])
            line.stylize(style, start, start + len(piece))
        line.rstrip()
        drawn += wrap_text(line, max(line.cell_len, MIN_WIDTH))
    return drawn


def _draw_records(rows: Sequence[Sequence[Text]], width: int) -> list[Strip]:
    """Draws a table that is too wide as one line a cell, with the column's name."""
    drawn: list[Strip] = []
    for row in rows[1:] or rows:
        drawn += [Strip([])] if drawn else []
        for name, cell in zip(rows[0], row, strict=True):
            drawn += wrap_text(Text.assemble((f"{name.plain}: ", DIM), cell), width)
    return drawn


def _wrapped(text: Text, width: int) -> list[Text]:
    lines = wrap_text(text, width) if text.cell_len > width else None
    return [text] if lines is None else [_to_text(line) for line in lines]


def _to_text(strip: Strip) -> Text:
    return Text.assemble(*((segment.text.rstrip("\n"), segment.style or "") for segment in strip))


# -- text in a line --------------------------------------------------------------------------------------


def _draw_inline(node: SyntaxTreeNode, width: int, style: Style) -> list[Strip]:
    text = _inline_text(node)
    text.style = style
    return [strip for line in text.split("\n", allow_blank=True) for strip in wrap_text(line, width)]


def _inline_text(node: SyntaxTreeNode) -> Text:
    text = Text()
    for child in node.children:
        _append_inline(text, child, PLAIN)
    return text


def _append_inline(text: Text, node: SyntaxTreeNode, style: Style) -> None:
    """Appends a piece of a line; the target of a link follows its text, so that neither hides the other."""
    match node.type:
        case "softbreak" | "hardbreak":
            text.append("\n")
        case "code_inline":
            text.append(_one_line(node.content), style + ACCENT)
        case _ if node.children:
            start = len(text)
            for child in node.children:
                _append_inline(text, child, style + _INLINE.get(node.type, PLAIN))
            target = str(node.attrs.get("href", "")) if node.type == "link" else ""
            if target and text.plain[start:] not in (target, target.removeprefix("mailto:")):
                text.append(f" ({_one_line(target)})", DIM)
        case _:
            text.append(_one_line(node.content), style)


def _one_line(content: str) -> str:
    """Returns the content without what a character reference may have put into it."""
    return content if content.isprintable() and content.isascii() else " ".join(sanitize(content).split("\n"))
