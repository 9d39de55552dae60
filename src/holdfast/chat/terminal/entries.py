"""Transcript entries: prompts, replies, tool calls, compactions and notes; each draws itself at a given width."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from ...hooks.events import CompactionCompleted
from ...io.text import sanitize, sanitize_line
from ..commands.base import Table, lay_out
from .drawing import (
    MIN_WIDTH,
    format_count,
    format_percent,
    indent_lines,
    truncate_text,
    with_marker,
    wrap_plain,
    wrap_text,
)
from .markdown import MarkdownStream
from .theme import ACCENT, BOLD, DIM, ERROR, MUTED, PLAIN, SUCCESS, WARNING, ChatTheme

__all__ = [
    "CommandOutputEntry",
    "CompactionEntry",
    "CompactionProgressEntry",
    "NoteEntry",
    "PromptEntry",
    "ReasoningEntry",
    "ReplyEntry",
    "SessionHeaderEntry",
    "TerminalEntry",
    "ToolCallEntry",
]


class TerminalEntry:
    """Base of transcript entries; caches its lines until it changes or the width does."""

    tight = False
    """True if no blank line separates it from another tight entry."""
    foldable = False
    """True if it can be unfolded to show more."""

    def __init__(self) -> None:
        self.folded = True
        self.number = 0
        """Number of the event that it begins to show, if known: entries before it show the events before."""
        self.lines: list[Strip] = []
        """Lines as last drawn."""
        self._drawn_width = 0

    def fits(self, width: int) -> bool:
        return self._drawn_width == width

    def invalidate(self) -> None:
        self._drawn_width = 0

    def set_folded(self, folded: bool) -> None:
        if self.foldable and folded != self.folded:
            self.folded = folded
            self.invalidate()

    def redraw(self, width: int, theme: ChatTheme) -> None:
        self.lines = self.draw(width, theme)
        self._drawn_width = width

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        raise NotImplementedError


class CompactionProgressEntry(TerminalEntry):
    """A running compaction: current step, characters written, elapsed seconds."""

    def __init__(self, tokens: int, manual: bool, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._tokens, self._manual = tokens, manual
        self._clock, self._started = clock, clock()
        self.what = "choosing what to keep"
        self.characters = 0

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        seconds = int(self._clock() - self._started)
        written = f" {theme.symbols.dot} {self.characters:,} characters" if self.characters else ""
        why = "" if self._manual else ", the window is nearly full"
        first = Text.assemble(("compacting", BOLD), (f" {format_count(self._tokens)} tokens{why}", DIM))
        second = f"{sanitize_line(self.what)}{written} {theme.symbols.dot} {seconds} s {theme.symbols.dot} Esc stops it"
        strips = [*wrap_text(first, width - 4), *wrap_plain(second, width - 4, DIM)]
        return indent_lines(with_marker(f"{theme.symbols.busy} ", WARNING, strips))


class CompactionEntry(TerminalEntry):
    """A finished compaction: tokens before and after, message counts, and, unfolded, the summary."""

    foldable = True

    def __init__(self, done: CompactionCompleted, notice: str = "") -> None:
        super().__init__()
        self._done = done
        self._summary = sanitize(done.summary or "").strip()
        self.notice = notice
        self.foldable = bool(self._summary)

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        symbols = theme.symbols
        drawn = [self._rule(width, theme)]
        drawn += indent_lines(wrap_plain(f" {symbols.dot} ".join(self._facts()), width - 2, DIM))
        for remark in self._done.remarks:
            drawn += indent_lines(wrap_plain(sanitize(remark), width - 2, DIM))
        if self._summary:
            drawn += self._summary_lines(width, theme)
        if self.notice:
            drawn += indent_lines(wrap_plain(sanitize(self.notice), width - 2, MUTED))
        return drawn

    def _rule(self, width: int, theme: ChatTheme) -> Strip:
        done, rule = self._done, theme.symbols.rule
        sizes = f"{format_count(done.tokens_before)} {theme.symbols.arrow} {format_count(done.tokens_after)} tokens"
        saved = format_percent(done.tokens_before - done.tokens_after, done.tokens_before)
        rest = f" {theme.symbols.dot} {saved} less {theme.symbols.dot} round {done.round} "
        line = Text.assemble((f"{rule * 2} ", DIM), ("compacted ", BOLD), (sizes, ACCENT), (rest, DIM))
        line.append(rule * max(0, width - line.cell_len), DIM)
        return truncate_text(line, width, theme.symbols.ellipsis)

    def _facts(self) -> list[str]:
        done = self._done
        live = bool(done.seconds or done.kept)  # one that was read from the log has neither
        facts = [f"{done.archived:,} messages archived" + (f", {done.kept:,} kept" if live else "")]
        if done.summarizer and not done.fallback:
            facts.append(f"summary by {sanitize_line(done.summarizer)}")
        if done.fallback:
            facts.append(f"{sanitize_line(done.fallback)} instead of a summary")
        return [*facts, f"{done.seconds:.1f} s"] if live else facts

    def _summary_lines(self, width: int, theme: ChatTheme) -> list[Strip]:
        count = self._summary.count("\n") + 1
        if self.folded:
            return indent_lines(
                wrap_plain(f"{theme.symbols.folded} summary, {count} line{'s' * (count != 1)} (Ctrl-O)", width - 2, DIM)
            )
        head = indent_lines(wrap_plain(f"{theme.symbols.unfolded} summary", width - 2, DIM))
        return head + indent_lines(wrap_plain(self._summary, width - 6, DIM), f"    {theme.symbols.gutter} ", DIM)


NoteTone = Literal["quiet", "aside", "warning", "problem"]
_NOTE_STYLES: dict[NoteTone, Style] = {"quiet": DIM, "aside": MUTED, "warning": WARNING, "problem": ERROR}


class NoteEntry(TerminalEntry):
    """A short notice or error."""

    tight = True

    def __init__(self, text: str, tone: NoteTone = "quiet") -> None:
        super().__init__()
        self.text, self._tone = sanitize(text).strip(), tone

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        strips = wrap_plain(self.text, width - 4, _NOTE_STYLES[self._tone])
        symbol = {"warning": "! ", "problem": f"{theme.symbols.failure} "}.get(self._tone, f"{theme.symbols.dot} ")
        return indent_lines(with_marker(symbol, _NOTE_STYLES[self._tone], strips))


_ORIGIN_LABELS = {"handed_off": "handoff", "forked": "branch"}


class SessionHeaderEntry(TerminalEntry):
    """Title, folder, model and age of the session, and the main keys."""

    def __init__(self, how: str, title: str, folder: str, model: str, age: str = "") -> None:
        super().__init__()
        self._title = sanitize_line(title) or "New session"
        used = "" if not age else "last used just now" if age == "now" else f"last used {age} ago"
        self._about = [part for part in (*map(sanitize_line, (folder, model)), used, _ORIGIN_LABELS.get(how)) if part]

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        dot = f" {theme.symbols.dot} "
        title = truncate_text(Text(self._title, BOLD), width - 2, theme.symbols.ellipsis)
        keys = dot.join(("/help lists the commands", "Esc stops", "Ctrl-O unfolds", "Ctrl-D quits"))
        return indent_lines(
            [title, *wrap_plain(dot.join(self._about), width - 2, DIM), *wrap_plain(keys, width - 2, DIM)]
        )


class CommandOutputEntry(TerminalEntry):
    """Output of a command, laid out for the width of the screen; labels are dim."""

    tight = True

    def __init__(self, *blocks: str | Table) -> None:
        super().__init__()
        self._blocks = [block if isinstance(block, Table) else sanitize(block).strip("\n") for block in blocks]

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        lines = (Text.assemble((line[:label], DIM), line[label:]) for line, label in lay_out(self._blocks, width - 2))
        return indent_lines(strip for line in lines for strip in wrap_text(line, width - 2))


_PROMPT_LINES = 12
"""Lines shown of a long folded prompt."""


class PromptEntry(TerminalEntry):
    """A prompt or command of the user; a waiting prompt is shown with its reason."""

    def __init__(self, text: str, waiting: str = "") -> None:
        super().__init__()
        self.text = text
        self.waiting, self.tight = waiting, bool(waiting)
        """Reason why it is not delivered yet; empty once it is."""
        self._lines = sanitize(text).strip("\n").split("\n")
        self.foldable = len(self._lines) > _PROMPT_LINES

    def set_waiting(self, why: str) -> None:
        self.waiting, self.tight = why, bool(why)
        self.invalidate()

    def mark_delivered(self) -> None:
        self.set_waiting("")

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        symbol = f"{theme.symbols.prompt} "
        if self.waiting:
            line = Text.assemble((f"{self.waiting}: ", DIM), (sanitize_line(self.text), MUTED))
            return with_marker(symbol, DIM, [truncate_text(line, width - 2, theme.symbols.ellipsis)])
        is_command = self.text.startswith(("/", "!"))
        shown = self._lines[:_PROMPT_LINES] if self.folded else self._lines
        strips = wrap_plain("\n".join(shown), width - 2, ACCENT if is_command else BOLD)
        drawn = with_marker(symbol, DIM if is_command else ACCENT, strips)
        if left := len(self._lines) - len(shown):
            drawn += indent_lines(
                wrap_plain(f"{theme.symbols.folded} {left:,} more line{'s' * (left != 1)}", width - 2, DIM)
            )
        return drawn


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
        head = Text.assemble((self._name, BOLD if self.state == "running" else PLAIN))
        if self._line:
            head.append(f" {self._line}", DIM)
            room = min(room, max(_MIN_CALL_WIDTH, int(width * _MAX_CALL_SHARE)))
        if head.cell_len > room:
            head.truncate(max(room - len(symbols.ellipsis), 0))
            head.append(symbols.ellipsis, DIM)
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
