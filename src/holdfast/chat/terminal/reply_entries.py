"""Transcript entries of a model's reply, which change while it streams: text, reasoning and tool calls."""

from __future__ import annotations

from typing import Literal

from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from ...io.text import sanitize, sanitize_input, sanitize_line
from ..commands.copying import code_blocks
from .copying import cut_from
from .drawing import MIN_WIDTH, indent_lines, truncate_text, with_marker, wrap_plain, wrap_text
from .entries import TerminalEntry
from .markdown import MarkdownStream
from .theme import BOLD, DIM, ERROR, MUTED, PLAIN, SUCCESS, WARNING, ChatTheme

_REASONING_CHARS = 200_000
"""Characters shown of reasoning; the session keeps all."""
_REASONING_LINE_CHARS = 4_000


class TextStream:
    """Streamed text; each completed line is wrapped once."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0
        self._wrapped: list[Strip] = []
        self._tail = ""
        self._width = 0

    def add(self, piece: str) -> None:
        if self._size < _REASONING_CHARS:
            self._pieces.append(piece)
            self._size += len(piece)
            self._tail += piece

    @property
    def text(self) -> str:
        return sanitize("".join(self._pieces)).strip("\n")

    def lines(self, width: int, style: Style) -> list[Strip]:
        if width != self._width:
            self._wrapped, self._width, self._tail = [], width, "".join(self._pieces)
        tail = self._tail if self._wrapped else self._tail.lstrip("\n")
        *complete_lines, self._tail = tail.split("\n")
        while len(self._tail) > _REASONING_LINE_CHARS:
            complete_lines.append(self._tail[:_REASONING_LINE_CHARS])
            self._tail = self._tail[_REASONING_LINE_CHARS:]
        for line in complete_lines:
            self._wrapped += wrap_plain(sanitize(line), width, style)
        return self._wrapped + wrap_plain(sanitize(self._tail), width, style)


class ReplyEntry(TerminalEntry):
    """A reply as Markdown, also while it streams."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._stream = MarkdownStream(indent="  ")
        self._stream.add(text)
        self.complete = bool(text)
        self._remark = ""

    @property
    def source(self) -> str:
        """The Markdown; of a reply that is only a block of code, the code."""
        text = sanitize_input(self._stream.text).strip("\n")
        blocks = code_blocks(text) if text.startswith("```") else []
        return blocks[0] if len(blocks) == 1 and text.endswith(f"{blocks[0]}\n```") else text

    def append(self, piece: str) -> None:
        self._stream.add(piece)
        self.invalidate()

    def finish(self, remark: str = "") -> None:
        """Marks the reply complete; `remark` explains an early end."""
        self.complete, self._remark = True, remark
        self.invalidate()

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        strips = self._stream.lines(max(width - 2, MIN_WIDTH), complete=self.complete)
        remark = wrap_plain(f"({self._remark})", width - 2, WARNING) if self._remark else []
        return strips + indent_lines(remark)


class ReasoningEntry(TerminalEntry):
    """Reasoning of the model: dim, and folded when complete."""

    tight = True
    foldable = True

    def __init__(self) -> None:
        super().__init__()
        self._stream = TextStream()
        self.complete = False

    def append(self, piece: str) -> None:
        self._stream.add(piece)
        self.invalidate()

    def finish(self) -> None:
        self.complete = True
        self.invalidate()

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        symbols = theme.symbols
        if self.complete and self.folded:
            line = Text.assemble(("thought ", DIM), (sanitize_line(self._stream.text), MUTED))
            return indent_lines(
                with_marker(f"{symbols.folded} ", DIM, [truncate_text(line, width - 4, symbols.ellipsis)])
            )
        strips = self._stream.lines(width - 4, MUTED)
        return indent_lines(with_marker(f"{symbols.unfolded if self.complete else symbols.busy} ", DIM, strips))


_TOOL_RESULT_LINES = 80
"""Lines shown of an unfolded result."""
_TOOL_RESULT_CHARS = 40_000
_LIVE_OUTPUT_LINES, _LIVE_OUTPUT_CHARS = 5, 4_000
"""Shown of the output of a running call."""
_MAX_CALL_SHARE, _MIN_CALL_WIDTH = 0.65, 40
"""Maximum share of the width for a call, and the width below which it is not cut."""
_TOOL_STYLES = {"running": WARNING, "ok": SUCCESS, "failed": ERROR, "stopped": WARNING}


class ToolCallEntry(TerminalEntry):
    """A tool call in one line; unfolded, its result."""

    tight = True

    def __init__(self, call: str, name: str, line: str) -> None:
        super().__init__()
        self.call = call
        self.state: Literal["running", "ok", "failed", "stopped"] = "running"
        self._name, self._line = sanitize_line(name)[:60], sanitize_line(line)
        self._awaiting_approval = False
        self._preview: list[Text] = []
        self._result_lines: list[str] = []
        self._line_count = 0
        self._live_output = ""

    def set_awaiting_approval(self, awaiting: bool) -> None:
        """Marks whether the user is being asked to approve it."""
        self._awaiting_approval = awaiting
        self.invalidate()

    def set_preview(self, lines: list[Text]) -> None:
        """Keeps what the user was asked to approve: a diff stays readable."""
        self._preview, self.foldable = lines, True
        self.invalidate()

    def add_output(self, piece: str) -> None:
        """Shows the end of the output while the call runs."""
        self._live_output = (self._live_output + piece)[-_LIVE_OUTPUT_CHARS:]
        self.invalidate()

    def finish(self, text: str, *, failed: bool) -> None:
        self.state = "failed" if failed else "ok"
        self._line_count = len(text.splitlines())
        self._result_lines = sanitize(text[:_TOOL_RESULT_CHARS]).rstrip().split("\n") if text.strip() else []
        self.foldable = bool(self._result_lines or self._preview)
        self.invalidate()

    def stop(self) -> None:
        self.state = "stopped"
        self.invalidate()

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        drawn = [self._head(width, theme)]
        if self.state == "running" and self._live_output.strip():
            tail = sanitize(self._live_output).rstrip().split("\n")[-_LIVE_OUTPUT_LINES:]
            live = wrap_plain("\n".join(tail), width - 6, DIM)[-_LIVE_OUTPUT_LINES:]
            drawn += indent_lines(live, f"    {theme.symbols.gutter} ", DIM)
        if not self.folded:
            gutter = f"    {theme.symbols.gutter} "
            for line in self._preview:
                drawn += indent_lines(wrap_text(line, width - 6), gutter, DIM)
            result = wrap_plain("\n".join(self._result_lines[:_TOOL_RESULT_LINES]), width - 6, PLAIN)
            drawn += indent_lines(result, gutter, DIM)
            if (left := self._line_count - min(len(self._result_lines), _TOOL_RESULT_LINES)) > 0:
                drawn += wrap_plain(f"    {theme.symbols.ellipsis} {left:,} more line{'s' * (left != 1)}", width, DIM)
        return drawn

    def _head(self, width: int, theme: ChatTheme) -> Strip:
        symbols = theme.symbols
        symbol = {"running": symbols.busy, "ok": symbols.success}.get(self.state, symbols.failure)
        end = f" {symbols.dot} {self._outcome()}"
        room = width - 4 - len(end)
        head = Text.assemble((self._name, BOLD if self.state == "running" else PLAIN), " " if self._line else "")
        line = Text(self._line)
        if self._line:
            room = min(room, max(_MIN_CALL_WIDTH, int(width * _MAX_CALL_SHARE)))
        if line.cell_len > (left := room - head.cell_len):
            line.truncate(max(left - len(symbols.ellipsis), 0))
            line.append(symbols.ellipsis if left > 0 else "")
        head.append(line.plain, DIM if line.plain == self._line else cut_from(DIM, self._line))
        failed = ERROR if self.state == "failed" else DIM
        return indent_lines(
            with_marker(
                f"{symbol} ", _TOOL_STYLES[self.state], [truncate_text(head.append(end, failed), width - 4, "")]
            )
        )[0]

    def _outcome(self) -> str:
        if self.state in ("running", "stopped"):
            return "waiting for you" if self._awaiting_approval and self.state == "running" else self.state
        lines = "1 line" if self._line_count == 1 else f"{self._line_count:,} lines"
        return f"failed, {lines}" if self.state == "failed" else lines
